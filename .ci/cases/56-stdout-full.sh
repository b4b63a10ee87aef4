#!/usr/bin/env bash
# Standard output is full or closed: no command that has a result ends with success or a panic.
. "$(dirname "$0")/prelude.sh"
mkdir d
for i in $(seq 2000); do
  echo "$i" >"d/a-long-name-$i"
done
random 3000000 d/f
start_sender d --rate 30M
for command in "recv $(cat t) -i lo --list" "publish d --web http://a.example/" \
  "send d --dry-run --json" "resume ." "keygen k"; do
  # shellcheck disable=SC2086 # words of a command line
  timeout 20 "$FONTANA" $command >/dev/full 2>e && wrong "success of $command on a full output"
  grep -q panicked e && wrong "panic of $command: $(last e)"
  # shellcheck disable=SC2086
  timeout 20 "$FONTANA" $command 2>e | head -c 1 >/dev/null
  grep -q panicked e && wrong "panic of $command on a closed pipe: $(last e)"
done
timeout 20 "$FONTANA" recv "$(cat t)" -i lo --json -o o1 >/dev/full 2>e
full=$?
timeout 20 "$FONTANA" recv "$(cat t)" -i lo -o o3 >&- 2>&- <&-
closed=$?
diff -r d o3/d >/dev/null || wrong "with closed descriptors: recv $closed, files are missing"
stop_sender
[ $closed = 0 ] && right "full output: recv --json $full; closed descriptors: $closed"
wrong "with closed descriptors: recv $closed"
