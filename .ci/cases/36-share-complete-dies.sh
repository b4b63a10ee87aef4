#!/usr/bin/env bash
# Four receivers share, the sender has gone, and the one that is complete is killed.
. "$(dirname "$0")/prelude.sh"
mount -t tmpfs t /run
ip link add br0 type bridge mcast_snooping 0
ip link set br0 up
for n in 0 1 2 3 4; do
  ip netns add "case-$n"
  ip link add "v$n" type veth peer name eth0 netns "case-$n"
  ip link set "v$n" master br0 up
  ip -n "case-$n" addr add "10.0.0.$((n + 1))/24" dev eth0
  ip -n "case-$n" link set lo up
  ip -n "case-$n" link set eth0 up
  ip -n "case-$n" route add 239.0.0.0/8 dev eth0
  ip netns exec "case-$n" ethtool -K eth0 tso off gso off tx-udp-segmentation off
  [ $n -lt 2 ] || ip netns exec "case-$n" nft -f - <<NFT
table ip f {
  chain i {
    type filter hook input priority 0
    udp dport 7701 numgen inc mod 10 $n drop
  }
}
NFT
done
sleep 1
random 10000000 f
ip netns exec case-0 timeout 10 "$FONTANA" send f -i eth0 --for 0.1 --ticket-file t \
  >s0.log 2>&1
receivers=()
for n in 1 2 3 4; do
  (
    ip netns exec "case-$n" timeout 45 "$FONTANA" recv "$(cat t)" -i eth0 -o "o$n" \
      --share=3M --silence 12 >"r$n.log" 2>&1
    echo $? >"code$n"
  ) &
  receivers+=($!)
done
sleep 2
ip netns exec case-0 "$FONTANA" send f -i eth0 --rate 20M --push 0 >s.log 2>&1
sleep 1.5
kill -9 "$(pgrep -f 'recv fontana.*o1 ' | tail -1)"
wait "${receivers[@]}"
for n in 2 3 4; do
  cmp -s f "o$n/f" || wrong "receiver $n: $(cat "code$n") $(last "r$n.log" 2); $(last r1.log 2)"
done
right "the other three are complete: $(last r2.log)"
