#!/usr/bin/env bash
# A host receives versions into a directory (recv --watch) from which it sends (send --watch).
. "$(dirname "$0")/prelude.sh"
mkdir src mid out
random 8000000 src/f
"$FONTANA" keygen k1 >/dev/null
"$FONTANA" keygen k2 >/dev/null
"$FONTANA" send src --watch --sign k1 -i lo --rate 20M --ticket-file t1 >s1.log 2>&1 &
until_true 100 test -s t1
"$FONTANA" recv "$(cat t1)" -i lo --watch -o mid >r1.log 2>&1 &
sleep 1
"$FONTANA" send mid --watch --sign k2 -i lo --to 239.255.77.2:7701 --rate 20M --ticket-file t2 \
  >s2.log 2>&1 &
until_true 100 test -s t2
"$FONTANA" recv "$(cat t2)" -i lo --watch -o out >r2.log 2>&1 &
sleep 10
echo 1 >src/g
sleep 6
echo 2 >src/h
sleep 15
versions=$(grep -c 'new version' s2.log)
own=$(find out -path '*mid/.fontana*' | wc -l)
cmp -s src/f out/mid/src/f && [ "$(cat out/mid/src/h 2>/dev/null)" = 2 ] && [ "$own" = 0 ] &&
  [ "$versions" -le 4 ] && right "$versions versions, none of our own files at the last host"
wrong "$versions versions, $own own files at the last host: $(last s2.log 3) $(last r2.log 3)"
