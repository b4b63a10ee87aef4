#!/usr/bin/env bash
# The file system knows no fsync (some FUSE, CIFS: EINVAL).
. "$(dirname "$0")/prelude.sh"
mkdir d
random 1500000 d/a
for i in 1 2 3; do
  random 3000 "d/$i"
done
ln -s a d/l
start_sender d --rate 40M
timeout -k 2 30 strace -f -qq -o st -e trace=fsync -e "inject=fsync:error=EINVAL" \
  "$FONTANA" recv "$(cat t)" -i lo -o o --sandbox off --silence 8 >r.log 2>&1
received=$?
stop_sender
count_faults
for i in a 1 2 3; do
  cmp -s "d/$i" "o/d/$i" || wrong "recv $received, $faults faults, $i is missing: $(last r.log 3)"
done
[ $received = 0 ] && right "recv $received, 4 files, $faults faults; $(last r.log 2)"
wrong "recv $received, $faults faults: $(last r.log 3)"
