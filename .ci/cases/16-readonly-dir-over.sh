#!/usr/bin/env bash
# The second version replaces a file in a directory of mode 0555; the receiver is not root.
. "$(dirname "$0")/prelude.sh"
mkdir -p in/ro out
echo 1 >in/ro/a
chmod 444 in/ro/a
chmod 555 in/ro
chown 65534 out
"$FONTANA" keygen k >/dev/null
"$FONTANA" send in --watch --sign k -i lo --ticket-file t >s.log 2>&1 &
until_true 50 test -s t
user="setpriv --reuid 65534 --clear-groups"
$user "$FONTANA" recv "$(cat t)" -i lo --watch --delete -o out >r.log 2>&1 &
until_true 100 test -e out/in/ro/a || wrong "no first version: $(last r.log 3)"
sleep 1
mode=$(stat -c %a out/in/ro)
chmod 644 in/ro/a
echo 2 >in/ro/a
chmod 444 in/ro/a
arrived() { [ "$(cat out/in/ro/a 2>/dev/null)" = 2 ]; }
until_true 150 arrived && right "mode $mode $(stat -c %a out/in/ro)"
wrong "mode $mode; $(last s.log 2) $(last r.log 4)"
