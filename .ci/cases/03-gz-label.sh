#!/usr/bin/env bash
# A web server labels x.tar.gz with Content-Encoding: x-gzip; the bytes are the file's.
. "$(dirname "$0")/prelude.sh"
mkdir w
random 2000000 w/x.tar.gz
cd w
ticket=$(published x.tar.gz --web http://127.0.0.1:8001/)
cd ..
web gz 8001 w
timeout 40 "$FONTANA" recv "$ticket" -o out >r.log 2>&1
received=$?
cmp -s w/x.tar.gz out/x.tar.gz && [ $received = 0 ] && right "recv $received"
wrong "recv $received: $(last r.log 3)"
