#!/usr/bin/env bash
# The receiver's clock is in 1970, and it reports; the sender waits for it.
. "$(dirname "$0")/prelude.sh"
export FAKETIME_DONT_FAKE_MONOTONIC=1
random 3000000 f
"$FONTANA" keygen k >/dev/null
"$FONTANA" send f --sign k --receivers 1 --for 30 -i lo --ticket-file t >s.log 2>&1 &
sender=$!
until_true 50 test -s t
start=$SECONDS
timeout 40 faketime '1970-01-02 00:00:00' "$FONTANA" recv "$(cat t)" -i lo -o out \
  --label a >r.log 2>&1 &
wait $sender
sent=$?
elapsed=$((SECONDS - start))
grep -q "before the date of this program" r.log || wrong "the receiver says nothing: $(last r.log 5)"
grep -q "behind this host" s.log || wrong "the sender says nothing of the clock: $(last s.log 5)"
[ $sent = 0 ] && right "sender 0 after $elapsed s; $(last r.log 3)"
wrong "sender $sent after $elapsed s: $(last s.log 3) $(last r.log 5)"
