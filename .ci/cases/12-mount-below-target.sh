#!/usr/bin/env bash
# A mount point is below the target directory.
. "$(dirname "$0")/prelude.sh"
mkdir -p src/boot src/etc out/src/boot
random 3000000 src/boot/k
random 3000000 src/etc/e
mount -t tmpfs t out/src/boot
start_sender src
receive -o out
stop_sender
cmp -s src/boot/k out/src/boot/k && cmp -s src/etc/e out/src/etc/e && [ $received = 0 ] &&
  right "recv $received"
wrong "recv $received: $(last r.log 3); $(find out | tr '\n' ' ')"
