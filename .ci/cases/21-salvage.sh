#!/usr/bin/env bash
# The sender dies when 60 % of 300 files is sent, which it sends once: complete ones have names.
. "$(dirname "$0")/prelude.sh"
mkdir d
for i in $(seq 300); do
  random 100000 "d/$i"
done
start_sender d --rate 20M --push 0
(timeout 50 "$FONTANA" recv "$(cat t)" -i lo -o out --silence 5 >r.log 2>&1; echo $? >code) &
receiver=$!
sleep 7.5
kill -9 $sender
wait $receiver
named=$(find out/d -type f 2>/dev/null | wc -l)
for file in out/d/*; do
  cmp -s "$file" "d/${file##*/}" || wrong "$file has other bytes"
done
[ "$named" -gt 100 ] && right "$named of 300 files have names, recv $(cat code) $(last r.log 3)"
wrong "$named of 300 files have names; recv $(cat code): $(last r.log 3)"
