//! The routers of a network in one value, without a clock and without sockets: the links of the
//! simulator, and frames instead of its packets.
//!
//! Each node of the graph is a router, to which one host may be connected. A datagram to a group is
//! broadcast along the tree of its source, as with [`fontana_sim::Multicast::Broadcast`]; one to a
//! host takes the next hops of the simulator. Each link that it crosses takes one off its TTL (RFC
//! 1812, section 5.3.1). The link from a router to its own host takes nothing.
//!
//! Routers offer subcast (Li, Cheriton, "OTERS", 1998): a datagram to the [address of a
//! router](router_address) carries an IP packet to the group ([`encapsulate`]), which this router
//! sends down the tree of the group's source.

use fontana_net::Frame;
use fontana_proto::{Instant, SplitMix64};
use fontana_sim::{DueEvent, EventQueue, Fate, Link, LinkId, NodeId, Topology};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Most frames in transit; further ones are dropped and counted. Some seconds of the heaviest
/// experiment.
const MOST_IN_TRANSIT: usize = 1 << 17;

/// The bit that the address of a router has, and that of its host has not.
const ROUTER_BIT: u32 = 1 << 23;

/// The address of a node's router: in 10.128.0.0/9. A host would not send to its own address by
/// its interface.
pub(super) fn router_address(node: NodeId) -> IpAddr {
    match node.address() {
        IpAddr::V4(host) => Ipv4Addr::from_bits(host.to_bits() | ROUTER_BIT).into(),
        other @ IpAddr::V6(_) => other,
    }
}

/// Counts the datagrams that cross a network.
pub(crate) trait Traffic {
    /// A host has sent a datagram with this UDP payload.
    fn on_transmit(&mut self, now: Instant, payload: &[u8]);
    /// A router forwards a datagram to a link, which passes it or drops it: one packet-hop.
    fn on_forward(&mut self, now: Instant, payload: &[u8]);
}

/// The routers and their links.
#[derive(Debug)]
pub(super) struct Routers {
    topology: Topology,
    links: Vec<Link>,
    /// One for each link, as in a simulation with the same seed.
    random: Vec<SplitMix64>,
    queue: EventQueue<Arrival>,
    /// The links that leave each node in the tree of a source.
    trees: BTreeMap<NodeId, Vec<Vec<LinkId>>>,
    /// The source of the group, along whose tree routers subcast.
    root: NodeId,
    /// The next hop of each node towards a host.
    next_hops: BTreeMap<NodeId, Vec<Option<LinkId>>>,
    stats: RouterStats,
}

/// What the routers have done so far, beside forwarding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouterStats {
    /// UDP datagrams that hosts have sent.
    pub(super) entered: u64,
    /// Frames that were dropped because too many were in transit.
    pub(super) overflow: u64,
}

/// A frame arrives at a node.
#[derive(Clone, Debug)]
struct Arrival {
    at: NodeId,
    from: Origin,
    packet: Routed,
}

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The node's own host.
    Host,
    Link,
}

/// A datagram in transit.
#[derive(Clone, Debug)]
struct Routed {
    frame: Arc<Frame>,
    datagram: Datagram,
    source: NodeId,
    to: Target,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Group,
    Host(NodeId),
    /// To the group, below this router.
    Below(NodeId),
}

impl Target {
    /// The node that its next hops lead to.
    fn node(self) -> Option<NodeId> {
        match self {
            Self::Group => None,
            Self::Host(node) | Self::Below(node) => Some(node),
        }
    }
}

/// What routers read of an IPv4 packet with a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Datagram {
    from: Ipv4Addr,
    to: Ipv4Addr,
    ttl: u8,
    /// Bytes of the IP packet.
    length: usize,
}

/// Bytes of the headers of Ethernet, IPv4 without options, and UDP.
const ETHERNET: usize = Frame::ETHERNET_HEADER;
const IPV4: usize = 20;
const UDP: usize = 8;

impl Routers {
    /// Routers that lose and delay as in a simulation with this seed. `root`: the source of the
    /// group.
    pub(super) fn new(topology: Topology, seed: u64, root: NodeId) -> Self {
        let edges = topology.edges();
        Self {
            links: edges.iter().map(|edge| Link::new(Arc::clone(&edge.config))).collect(),
            random: (1..=edges.len() as u64).map(|lane| SplitMix64::new(seed, lane)).collect(),
            topology,
            queue: EventQueue::new(),
            trees: BTreeMap::new(),
            root,
            next_hops: BTreeMap::new(),
            stats: RouterStats::default(),
        }
    }

    /// Takes a frame that a node's host has sent by `now`. All but UDP datagrams are ignored: a
    /// broadcast needs no membership reports.
    pub(super) fn enter(&mut self, now: Instant, at: NodeId, frame: Frame) {
        let Some(datagram) = Datagram::parse(frame.bytes()) else { return };
        let node = |address: Ipv4Addr| NodeId::of(SocketAddr::new(address.into(), 0));
        let to = match node(datagram.to) {
            Some(NodeId(router)) if router & ROUTER_BIT != 0 => {
                Target::Below(NodeId(router & !ROUTER_BIT))
            }
            Some(host) => Target::Host(host),
            None if datagram.to.is_multicast() => Target::Group,
            None => return,
        };
        let Some(source) = node(datagram.from) else { return };
        self.stats.entered += 1;
        let packet = Routed { frame: Arc::new(frame), datagram, source, to };
        self.put(now, Arrival { at, from: Origin::Host, packet });
    }

    /// Forwards what has arrived by `until`, in the order of its times, up to the next frame for a
    /// host.
    pub(super) fn poll(
        &mut self,
        until: Instant,
        traffic: &mut impl Traffic,
    ) -> Option<DueEvent<Delivery>> {
        while let Some(DueEvent { at: now, event }) = self.queue.pop_until(until) {
            let Arrival { at: node, from, packet } = event;
            if from == Origin::Host {
                traffic.on_transmit(now, packet.payload());
            }
            let packet = match packet.to {
                Target::Below(router) if router == node => match packet.decapsulated(self.root) {
                    Some(inner) => inner,
                    None => continue,
                },
                _ => packet,
            };
            let is_for_host = packet.to == Target::Host(node);
            if !is_for_host {
                self.forward(now, node, &packet, traffic);
            }
            // A subcast comes back to its sender, whose system would drop it for its own address.
            let is_to_group = packet.to == Target::Group && from == Origin::Link;
            let is_own = node.address() == packet.datagram.from;
            let is_delivered = is_for_host || is_to_group && !is_own;
            if is_delivered {
                let event = Delivery { node, frame: packet.into_frame() };
                return Some(DueEvent { at: now, event });
            }
        }
        None
    }

    /// When the next frame arrives anywhere.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.queue.next_at()
    }

    pub(super) fn stats(&self) -> RouterStats {
        self.stats
    }

    fn forward(&mut self, now: Instant, node: NodeId, packet: &Routed, traffic: &mut impl Traffic) {
        // A datagram whose TTL becomes 0 is not forwarded.
        let Some(ttl @ 1..) = packet.datagram.ttl.checked_sub(1) else { return };
        let datagram = Datagram { ttl, ..packet.datagram };
        let ahead = Routed { datagram, ..packet.clone() };
        for link in self.leaving(node, packet) {
            traffic.on_forward(now, packet.payload());
            let index = link.0 as usize;
            let (Some(hop), Some(random)) = (self.links.get_mut(index), self.random.get_mut(index))
            else {
                continue;
            };
            let Fate::Arrives(arrival) = hop.offer(now, datagram.length as u32, random) else {
                continue;
            };
            let Some(edge) = self.topology.edges().get(index) else { continue };
            let packet = ahead.clone();
            self.put(arrival.at, Arrival { at: edge.to, from: Origin::Link, packet });
        }
    }

    /// The links to which a node forwards a packet.
    fn leaving(&mut self, node: NodeId, packet: &Routed) -> Vec<LinkId> {
        let topology = &self.topology;
        let index = node.0 as usize;
        if let Some(to) = packet.to.node() {
            let next = self.next_hops.entry(to).or_insert_with(|| topology.next_hops(to));
            return next.get(index).copied().flatten().into_iter().collect();
        }
        let tree = self.trees.entry(packet.source).or_insert_with(|| tree(topology, packet.source));
        tree.get(index).cloned().unwrap_or_default()
    }

    fn put(&mut self, at: Instant, arrival: Arrival) {
        if self.queue.len() >= MOST_IN_TRANSIT {
            self.stats.overflow += 1;
            return;
        }
        self.queue.schedule(at, arrival);
    }
}

/// A frame for the host of a node.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) node: NodeId,
    pub(super) frame: Frame,
}

/// The links of a source's tree that leave each node, in the order of the nodes that they lead to.
fn tree(topology: &Topology, source: NodeId) -> Vec<Vec<LinkId>> {
    let paths = topology.shortest_paths(source);
    let mut leaving = vec![Vec::new(); topology.node_count() as usize];
    for link in (0..topology.node_count()).filter_map(|node| paths.link_to(NodeId(node))) {
        let from = topology.edges().get(link.0 as usize).map(|edge| edge.from.0 as usize);
        if let Some(links) = from.and_then(|from| leaving.get_mut(from)) {
            links.push(link);
        }
    }
    leaving
}

impl Routed {
    /// What a host has sent to others: the UDP payload, also of an encapsulated packet.
    fn payload(&self) -> &[u8] {
        let payload = self.udp_payload();
        match self.to {
            Target::Below(_) => payload.get(IPV4 + UDP..).unwrap_or_default(),
            Target::Group | Target::Host(_) => payload,
        }
    }

    fn udp_payload(&self) -> &[u8] {
        let bytes = self.frame.bytes();
        bytes.get(ETHERNET + IPV4 + UDP..ETHERNET + self.datagram.length).unwrap_or_default()
    }

    /// The packet inside, which follows the tree of `root`; `None` if it is none to the group.
    fn decapsulated(&self, root: NodeId) -> Option<Self> {
        // The link address of a group: RFC 1112, section 6.4.
        const PREFIX: [u8; 3] = [0x01, 0x00, 0x5e];
        let packet = self.udp_payload();
        let [_, b, c, d] = *packet.get(16..)?.first_chunk::<4>()?;
        let source_and_type = self.frame.bytes().get(6..ETHERNET)?;
        let address = [&PREFIX[..], &[b & 0x7f, c, d]].concat();
        let frame = Frame::new(&[&address, source_and_type, packet].concat());
        let datagram = Datagram::parse(frame.bytes()).filter(|inner| inner.to.is_multicast())?;
        Some(Self { frame: Arc::new(frame), datagram, source: root, to: Target::Group })
    }

    /// The frame with the TTL that is left.
    fn into_frame(self) -> Frame {
        let mut frame = Arc::unwrap_or_clone(self.frame);
        if let Some(header) = frame.bytes_mut().get_mut(ETHERNET..ETHERNET + IPV4) {
            set_ttl(header, self.datagram.ttl);
        }
        frame
    }
}

impl Datagram {
    /// Reads a frame; `None` if it has no UDP datagram in an IPv4 packet without options, which is
    /// all that sockets of the hosts send.
    fn parse(frame: &[u8]) -> Option<Self> {
        const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
        const VERSION_4_OF_20_BYTES: u8 = 0x45;
        const PROTOCOL_UDP: u8 = 17;
        let (ethernet, packet) = frame.split_at_checked(ETHERNET)?;
        let header = packet.first_chunk::<IPV4>()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_udp = ethernet.last_chunk() == Some(&TYPE_IPV4)
            && header[0] == VERSION_4_OF_20_BYTES
            && header[9] == PROTOCOL_UDP
            && (IPV4 + UDP..=packet.len()).contains(&length);
        let address = |from: usize| {
            let bytes: [u8; 4] = header.get(from..)?.first_chunk().copied()?;
            Some(Ipv4Addr::from(bytes))
        };
        let (from, to, ttl) = (address(12)?, address(16)?, header[8]);
        is_udp.then_some(Self { from, to, ttl, length })
    }
}

/// The IPv4 packet with a UDP datagram to a group, for a router. `None` if the payload is
/// too long. The datagram has no checksum (RFC 768): that of the outer one covers it.
pub(super) fn encapsulate(
    from: Ipv4Addr,
    (group, port): (Ipv4Addr, u16),
    ttl: u8,
    payload: &[u8],
) -> Option<Vec<u8>> {
    const PROTOCOL_UDP: u8 = 17;
    let of_udp = u16::try_from(UDP + payload.len()).ok()?;
    let length = of_udp.checked_add(IPV4 as u16)?;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, ttl, PROTOCOL_UDP, 0, 0]);
    packet.extend(from.octets());
    packet.extend(group.octets());
    let words = packet.chunks_exact(2).filter_map(|word| word.first_chunk().copied());
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(word))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    if let Some(bytes) = packet.get_mut(10..12) {
        bytes.copy_from_slice(&checksum.to_be_bytes());
    }
    packet.extend(port.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend(of_udp.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    Some(packet)
}

/// Changes the TTL of an IPv4 header, and its checksum (RFC 1624, equation 3).
fn set_ttl(header: &mut [u8], ttl: u8) {
    let word = |header: &[u8], at: usize| {
        let bytes = header.get(at..).and_then(|rest| rest.first_chunk().copied());
        u32::from(u16::from_be_bytes(bytes.unwrap_or_default()))
    };
    let before = word(header, 8);
    if let Some(byte) = header.get_mut(8) {
        *byte = ttl;
    }
    let mut sum = (!word(header, 10) & 0xffff) + (!before & 0xffff) + word(header, 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !(sum as u16);
    if let Some(bytes) = header.get_mut(10..12) {
        bytes.copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_sim::{LinkConfig, LossModel};
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 0);

    fn at(milliseconds: u32) -> Instant {
        Instant::ZERO + MS * milliseconds
    }

    /// The checksum of a header (RFC 1071).
    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).enumerate().filter(|(index, _)| *index != 5);
        let sum: u32 = words.map(|(_, w)| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    fn frame(from: NodeId, to: Ipv4Addr, ttl: u8, payload: &[u8]) -> Frame {
        let length = IPV4 + UDP + payload.len();
        let mut bytes = vec![0; ETHERNET + length];
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        let header = &mut bytes[ETHERNET..][..IPV4];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        (header[8], header[9]) = (ttl, 17);
        header[12..16].copy_from_slice(&address(from).octets());
        header[16..20].copy_from_slice(&to.octets());
        let sum = checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes[ETHERNET + IPV4 + UDP..].copy_from_slice(payload);
        Frame::new(&bytes)
    }

    fn address(node: NodeId) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, node.0 as u8)
    }

    fn router_of(node: NodeId) -> Ipv4Addr {
        let address = Ipv4Addr::new(10, 128, 0, node.0 as u8);
        assert_eq!(router_address(node), address);
        address
    }

    /// Counts by the first byte of the payload.
    #[derive(Default)]
    struct Counts {
        sent: BTreeMap<u8, u32>,
        hops: BTreeMap<u8, u32>,
    }

    impl Traffic for Counts {
        fn on_transmit(&mut self, _now: Instant, payload: &[u8]) {
            *self.sent.entry(first(payload)).or_default() += 1;
        }

        fn on_forward(&mut self, _now: Instant, payload: &[u8]) {
            *self.hops.entry(first(payload)).or_default() += 1;
        }
    }

    fn first(payload: &[u8]) -> u8 {
        payload.first().copied().unwrap_or_default()
    }

    /// Node 1 with nodes 2, 3 and 4 below, and node 5 below node 4. Links take 10 ms.
    fn star(loss: LossModel) -> Routers {
        let mut topology = Topology::new();
        topology.add_nodes(6);
        let wire = LinkConfig::wire(10 * MS);
        for below in [2, 3, 4] {
            topology.connect(NodeId(1), NodeId(below), wire.clone());
        }
        topology.connect(NodeId(4), NodeId(5), wire.with_loss(loss));
        Routers::new(topology, 1, NodeId(2))
    }

    /// When which node gets a frame, and its TTL.
    fn deliveries(routers: &mut Routers, counts: &mut Counts) -> Vec<(u64, u32, u8)> {
        let mut all: Vec<_> = std::iter::from_fn(|| routers.poll(at(1_000), counts))
            .map(|DueEvent { at, event: Delivery { node, frame } }| {
                let header = &frame.bytes()[ETHERNET..][..IPV4];
                let sum = u16::from_be_bytes([header[10], header[11]]);
                assert_eq!(sum, checksum(header), "the checksum is that of the header");
                (at.as_nanos() / 1_000_000, node.0, header[8])
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_datagram_to_the_group_reaches_all_others_by_the_tree_of_its_source() {
        let (mut routers, mut counts) = (star(LossModel::None), Counts::default());
        routers.enter(at(5), NodeId(2), frame(NodeId(2), GROUP, 64, b"a"));
        let expected = [(15, 1, 63), (25, 3, 62), (25, 4, 62), (35, 5, 61)];
        assert_eq!(deliveries(&mut routers, &mut counts), expected);
        assert_eq!((counts.sent[&b'a'], counts.hops[&b'a']), (1, 4));
    }

    #[test]
    fn a_datagram_crosses_one_link_less_than_its_ttl() {
        for (ttl, expected) in [(0, 0), (1, 0), (2, 1), (3, 3), (4, 4), (5, 4)] {
            let (mut routers, mut counts) = (star(LossModel::None), Counts::default());
            routers.enter(at(0), NodeId(2), frame(NodeId(2), GROUP, ttl, b"a"));
            assert_eq!(deliveries(&mut routers, &mut counts).len(), expected, "{ttl}");
            assert_eq!(counts.hops.values().sum::<u32>() as usize, expected, "{ttl}");
        }
    }

    #[test]
    fn a_datagram_to_a_host_takes_its_path_alone() {
        let (mut routers, mut counts) = (star(LossModel::None), Counts::default());
        let to = Ipv4Addr::new(10, 0, 0, 2);
        routers.enter(at(0), NodeId(5), frame(NodeId(5), to, 64, b"u"));
        assert_eq!(deliveries(&mut routers, &mut counts), [(30, 2, 61)]);
        assert_eq!(counts.hops[&b'u'], 3);
    }

    /// The tree of node 2 has node 1 below it, then 3 and 4, then 5.
    #[test]
    fn a_router_subcasts_down_the_tree_of_the_source() {
        let subcast = |from: u32, router: u32| {
            let (mut routers, mut counts) = (star(LossModel::None), Counts::default());
            let packet = encapsulate(address(NodeId(from)), (GROUP, 7701), 64, b"s");
            let packet = packet.expect("it is short");
            let frame = frame(NodeId(from), router_of(NodeId(router)), 64, &packet);
            routers.enter(at(0), NodeId(from), frame);
            let reached = deliveries(&mut routers, &mut counts);
            assert_eq!(counts.sent[&b's'], 1);
            (reached, counts.hops[&b's'])
        };
        // Two links up, then the subtree: all but the sender receive it.
        let (all, hops) = subcast(5, 1);
        assert_eq!(all, [(20, 1, 64), (30, 3, 63), (30, 4, 63)]);
        assert_eq!(hops, 5);
        assert_eq!(subcast(3, 4), (vec![(20, 4, 64), (30, 5, 63)], 3));
        assert_eq!(subcast(4, 4), (vec![(10, 5, 63)], 1), "its own router, and not its own host");
    }

    #[test]
    fn what_is_not_to_the_group_is_not_subcast() {
        let (mut routers, mut counts) = (star(LossModel::None), Counts::default());
        let to_host = encapsulate(address(NodeId(3)), (address(NodeId(5)), 7701), 64, b"s");
        let to_host = to_host.expect("it is short");
        for packet in (0..to_host.len()).map(|length| &to_host[..length]).chain([&to_host[..]]) {
            let frame = frame(NodeId(3), router_of(NodeId(4)), 64, packet);
            routers.enter(at(0), NodeId(3), frame);
        }
        assert_eq!(deliveries(&mut routers, &mut counts), []);
        assert_eq!(counts.hops[&b's'], 2, "up to the router");
    }

    #[test]
    fn a_link_that_drops_a_datagram_counts_it_and_nothing_follows() {
        let loss = LossModel::Periodic { period: 1_000, first: 1 };
        let (mut routers, mut counts) = (star(loss), Counts::default());
        for (number, name) in (0..).zip([b"a", b"b", b"c"]) {
            routers.enter(at(number), NodeId(1), frame(NodeId(1), GROUP, 64, name));
        }
        let at_5 = deliveries(&mut routers, &mut counts).into_iter().filter(|to| to.1 == 5);
        assert_eq!(at_5.map(|(at, ..)| at).collect::<Vec<_>>(), [20, 22]);
        assert_eq!(counts.hops.into_values().collect::<Vec<_>>(), [4, 4, 4]);
    }

    #[test]
    fn frames_without_a_datagram_for_them_are_ignored() {
        let mut routers = star(LossModel::None);
        let good = frame(NodeId(2), GROUP, 64, b"a");
        let mut others: Vec<Vec<u8>> =
            (0..good.bytes().len()).map(|length| good.bytes()[..length].to_vec()).collect();
        for (index, value) in [(12, 0x86), (ETHERNET, 0x46), (ETHERNET + 9, 2)] {
            let mut other = good.bytes().to_vec();
            other[index] = value;
            others.push(other);
        }
        others.push(frame(NodeId(2), Ipv4Addr::new(192, 0, 2, 1), 64, b"a").bytes().to_vec());
        for other in others {
            routers.enter(at(0), NodeId(2), Frame::new(&other));
        }
        assert_eq!((routers.stats().entered, routers.next_at()), (0, None));
        routers.enter(at(0), NodeId(2), good);
        assert_eq!(routers.stats().entered, 1);
    }
}
