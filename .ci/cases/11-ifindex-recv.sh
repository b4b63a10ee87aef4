#!/usr/bin/env bash
# The receiver's interface is deleted, and is back with its name and address, and another index.
. "$(dirname "$0")/prelude.sh"
mount -t tmpfs t /run
ip link add br0 type bridge mcast_snooping 0
ip link set br0 up
attach() {
  ip link add "v$1" type veth peer name eth0 netns "case-$1"
  ip link set "v$1" master br0 up
  ip -n "case-$1" addr add "10.0.0.$2/24" dev eth0
  ip -n "case-$1" link set lo up
  ip -n "case-$1" link set eth0 up
  ip -n "case-$1" route add 239.0.0.0/8 dev eth0
}
ip netns add case-A
ip netns add case-B
attach A 1
attach B 2
random 12000000 f
ip netns exec case-A "$FONTANA" send f -i eth0 --rate 8M --ticket-file t >s.log 2>&1 &
sender=$!
until_true 50 test -s t
(
  ip netns exec case-B timeout 45 "$FONTANA" recv "$(cat t)" -i eth0 -o out --silence 20 >r.log 2>&1
  echo $? >code
) &
receiver=$!
sleep 4
ip -n case-B link del eth0
sleep 1
attach B 2
wait $receiver
kill -0 $sender 2>/dev/null && state=alive || state=dead
stop_sender
[ "$(cat code)" = 0 ] && cmp -s f out/f && right "recv 0, sender $state"
wrong "recv $(cat code), sender $state ($sent): $(last s.log 2) $(last r.log 2)"
