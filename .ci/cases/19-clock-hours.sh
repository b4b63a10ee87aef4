#!/usr/bin/env bash
# The receiver's clock is two hours ahead, as where two systems on a host disagree about local time.
# Its losses have to be repaired, and its end to be known.
. "$(dirname "$0")/prelude.sh"
export FAKETIME_DONT_FAKE_MONOTONIC=1
random 3000000 f
"$FONTANA" send f --receivers 1 --for 30 -i lo --ticket-file t >s.log 2>&1 &
sender=$!
until_true 50 test -s t
start=$SECONDS
FONTANA_SIMULATE_LOSS=10% timeout 40 faketime -f +2h "$FONTANA" recv t -i lo -o out >r.log 2>&1
received=$?
wait $sender
sent=$?
elapsed=$((SECONDS - start))
grep -q "2 h\|1 h 59 min\|hours" r.log || wrong "nothing is said of the clock: $(last r.log 5)"
grep -q "ahead of this host" s.log || wrong "the sender says nothing of the clock: $(last s.log 5)"
[ $sent = 0 ] && [ $received = 0 ] && right "sender 0 after $elapsed s; $(last r.log 3)"
wrong "sender $sent, receiver $received after $elapsed s: $(last s.log 3) $(last r.log 5)"
