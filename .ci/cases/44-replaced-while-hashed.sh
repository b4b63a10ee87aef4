#!/usr/bin/env bash
# Files are replaced, truncated and replaced again while the sender hashes them; others arrive.
. "$(dirname "$0")/prelude.sh"
mkdir d
for i in 1 2 3 4 5 6; do
  random 40000000 "d/$i"
done
random 1000 n
(
  for _ in 1 2 3 4 5 6 7 8; do
    sleep .04
    for i in 2 4; do
      cp n d/.n
      mv d/.n "d/$i"
    done
    truncate -s 100 d/5
  done
) &
start_sender d --rate 100M
sleep 1
[ -s t ] || wrong "no ticket: $(last s.log 3)"
receive -o out
stop_sender
for i in 1 3 6; do
  cmp -s "d/$i" "out/d/$i" || wrong "recv $received send $sent, $i is missing: $(last s.log 3)"
done
right "recv $received send $sent $(last s.log 3)"
