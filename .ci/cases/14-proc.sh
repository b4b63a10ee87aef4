#!/usr/bin/env bash
# Files whose size is said to be 0 (/proc/cpuinfo), or wrong (/sys): no success with empty ones.
. "$(dirname "$0")/prelude.sh"
start_sender /proc/cpuinfo
seconds=10 receive -o out
stop_sender
first="cpuinfo: recv $received send $sent; $(last s.log 1)"
start_sender /sys/kernel/mm --rate 20M
seconds=20 receive -o out2
stop_sender
second="sys: recv $received send $sent; $(last s.log 2) $(last r.log 2)"
[ "$(stat -c %s out/cpuinfo 2>/dev/null)" = 0 ] &&
  wrong "success with an empty file: $first; $second"
right "$first; $second"
