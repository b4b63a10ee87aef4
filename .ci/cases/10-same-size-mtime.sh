#!/usr/bin/env bash
# A file has the size and the time that the manifest says (--manifest), and other bytes.
. "$(dirname "$0")/prelude.sh"
random 5000000 f
touch -d @1 f
start_sender f --manifest m --rate 30M
stop_sender
random 5000000 f
touch -d @1 f
start_sender f --manifest m --rate 30M
seconds=15 receive -o out --timeout 5
stop_sender
[ $received = 0 ] && cmp -s f out/f && right "recv $received send $sent"
[ $sent = 8 ] && right "send $sent: $(last s.log 2)"
wrong "recv $received send $sent: $(last s.log 2) $(last r.log 2)"
