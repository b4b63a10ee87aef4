#!/usr/bin/env bash
# A link of MTU 1380 is on the path, and no ICMP comes back: it works, or the message says why not.
. "$(dirname "$0")/prelude.sh"
mount -t tmpfs t /run
for host in A R B; do
  ip netns add "case-$host"
  ip -n "case-$host" link set lo up
done
ip link add a0 netns case-A type veth peer name a1 netns case-R
ip link add b1 netns case-R type veth peer name b0 netns case-B
ip -n case-A addr add 10.1.0.1/24 dev a0
ip -n case-R addr add 10.1.0.2/24 dev a1
ip -n case-R addr add 10.2.0.2/24 dev b1
ip -n case-B addr add 10.2.0.1/24 dev b0
ip -n case-R link set b1 mtu 1380
for end in A:a0 R:a1 R:b1 B:b0; do
  ip -n "case-${end%:*}" link set "${end#*:}" up
done
ip -n case-A route add default via 10.1.0.2
ip -n case-B route add default via 10.2.0.2
ip netns exec case-R sysctl -qw net.ipv4.ip_forward=1
ip netns exec case-A nft -f - <<'NFT' || wrong "no nftables"
table ip f {
  chain i {
    type filter hook input priority 0
    ip protocol icmp drop
  }
}
NFT
random 5000000 f
ip netns exec case-A "$FONTANA" send f --to 10.2.0.1:7701 -i a0 --ttl 8 --controlled-network \
  --rate 20M --ticket-file t >s.log 2>&1 &
sender=$!
until_true 50 test -s t
ip netns exec case-B timeout 45 "$FONTANA" recv "$(cat t)" -i b0 -o out --silence 12 >r.log 2>&1
received=$?
stop_sender
[ $received = 0 ] && cmp -s f out/f && right "recv $received"
grep -qi 'symbol-size\|mtu' r.log && right "it says: $(last r.log 3)"
wrong "recv $received: $(last r.log 5) sender $(last s.log 3)"
