#!/usr/bin/env bash
# A file gets another name while it is sent; its bytes do not change.
. "$(dirname "$0")/prelude.sh"
random 60000000 f
start_sender f --rate 60M
sleep 1
ln f f2
seconds=15 receive -o out
sleep 1
stop_sender
cmp -s f out/f && [ $received = 0 ] && [ $sent = 130 ] && right "recv $received send $sent"
wrong "recv $received send $sent: $(last s.log 2) $(last r.log 2)"
