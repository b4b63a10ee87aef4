#!/usr/bin/env bash
# One small file of a tree grows while it is sent; all others arrive.
. "$(dirname "$0")/prelude.sh"
mkdir d
for i in $(seq 3000); do
  random 8000 "d/f$i"
done
start_sender d --rate 50M
sleep 2
echo x >>d/f17
seconds=25 receive -o out
stop_sender
missing=0
for i in $(seq 3000); do
  [ "$i" = 17 ] || cmp -s "d/f$i" "out/d/f$i" || missing=$((missing + 1))
done
[ $missing = 0 ] && right "recv $received send $sent, 3000 files, none is missing"
wrong "$missing of 3000 files are missing; recv $received send $sent:" \
  "$(last s.log 2) $(last r.log 2)"
