#!/usr/bin/env bash
# Two mirrors in the middle of a synchronization lack a file each; together they are complete.
. "$(dirname "$0")/prelude.sh"
mkdir -p w/p
random 3000000 w/p/a.bin
random 3000000 w/p/b.bin
cd w
ticket=$(published p --web http://127.0.0.1:8001/ --web http://127.0.0.1:8002/)
cd ..
web missing 8001 w a.bin
web missing 8002 w b.bin
timeout 50 "$FONTANA" recv "$ticket" -o out >r.log 2>&1
received=$?
cmp -s w/p/a.bin out/p/a.bin && cmp -s w/p/b.bin out/p/b.bin && [ $received = 0 ] &&
  right "recv $received"
wrong "recv $received: $(last r.log 4)"
