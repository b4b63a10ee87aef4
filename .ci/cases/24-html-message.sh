#!/usr/bin/env bash
# A login page (200, text/html, 26 bytes) is in the place of the file: the message says what came.
. "$(dirname "$0")/prelude.sh"
mkdir w
random 2000000 w/x
cd w
ticket=$(published x --web http://127.0.0.1:8001/)
cd ..
web html 8001 w
timeout 50 "$FONTANA" recv "$ticket" -o out --timeout 5 >r.log 2>&1
received=$?
[ ! -e out/x ] && grep -qi 'html\|bytes instead\|26 bytes' r.log &&
  right "recv $received $(grep used r.log)"
wrong "recv $received, $(wc -l <web8001.log) requests: $(last r.log 3)"
