#!/usr/bin/env bash
# The only mirror is away (503) for a minute: it is asked until the user's own limit (--timeout).
. "$(dirname "$0")/prelude.sh"
mkdir w
random 20000000 w/x
cd w
ticket=$(published x --web http://127.0.0.1:8001/)
cd ..
web down 8001 w 2
start=$SECONDS
(
  timeout -k 1 55 "$FONTANA" recv "$ticket" -o out --max-rate 20M --timeout 200 >r.log 2>&1
  echo $? >code
) &
until_true 500 test -s code
elapsed=$((SECONDS - start))
[ -s code ] || right "still trying after $elapsed s"
[ "$(cat code)" = 0 ] && right "0 after $elapsed s"
wrong "recv $(cat code) after $elapsed s although --timeout 200: $(last r.log 3)"
