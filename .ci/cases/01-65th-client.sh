#!/usr/bin/env bash
# The server is busy with 64 clients: the 65th waits, and does not give up.
. "$(dirname "$0")/prelude.sh"
random 14000000 image
"$FONTANA" serve image --listen 127.0.0.1:7780 >serve.log 2>&1 &
until_true 100 grep -q fontana: serve.log
ticket=$(grep -o "fontana://[^' ]*" serve.log | head -1)
for i in $(seq 64); do
  "$FONTANA" recv "$ticket" --max-rate 2M -o "d$i" >"l$i" 2>&1 &
done
sleep 3
start=$SECONDS
(timeout -k 2 50 "$FONTANA" recv "$ticket" -o d >l 2>&1; echo $? >code) &
until_true 480 test -s code
elapsed=$((SECONDS - start))
[ -s code ] || right "still waiting after $elapsed s"
[ "$(cat code)" = 0 ] && right "0 after $elapsed s"
wrong "recv $(cat code) after $elapsed s: $(last l 4)"
