#!/usr/bin/env bash
# The target's file system knows no chmod (bindfs --chmod-deny).
. "$(dirname "$0")/prelude.sh"
mkdir real mnt
random 3000000 f
chmod 644 f
bindfs --chmod-deny --chown-ignore real mnt || wrong "no bindfs"
start_sender f
receive -o mnt
stop_sender
cmp -s f mnt/f
same=$?
files=$(ls -a mnt | tr '\n' ' ')
umount mnt
[ $same = 0 ] && [ $received = 0 ] && right "recv $received; $(last r.log 2)"
wrong "recv $received: $(last r.log 2) files $files"
