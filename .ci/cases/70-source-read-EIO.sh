#!/usr/bin/env bash
# One read of the source fails once while it is sent (EIO: a restarted NFS server, a USB disk).
. "$(dirname "$0")/prelude.sh"
mkdir d
random 30000000 d/a
random 30000000 d/b
start_sender d --rate 50M
strace -f -qq -o st -p "$sender" -e trace=pread64 -e inject=pread64:error=EIO:when=5 &
sleep 1
seconds=30 receive -o out --silence 6
stop_sender
count_faults
[ $received = 0 ] && diff -r d out/d && right "recv $received send $sent $faults faults"
wrong "recv $received, sender $sent, $faults faults: $(last s.log 3)"
