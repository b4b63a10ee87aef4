//! The network, observed with scripted endpoints: when groups are grafted and pruned, what is
//! counted, and which violations are found.

use fontana_proto::{
    ChannelId, Datagram, DatagramBatch, Destination, Driver, Ecn, Endpoint, Finished, Instant,
    JobRunner, Output, ReceiveDone, ReceiveJob, ReceiverEvent, SymbolId,
};
use fontana_sim::{
    HostConfig, LinkConfig, LinkId, LossModel, Multicast, NodeId, Observer, Packet, QueueLength,
    RateCap, SimulatedRunner, Simulation, SimulationConfig, Topology, Violation,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// An endpoint that follows a script, and records when datagrams and answers arrive.
#[derive(Debug, Default)]
struct Puppet {
    script: VecDeque<(Instant, Action)>,
    due: VecDeque<Action>,
    heard: Vec<(Instant, ChannelId, bool)>,
    /// Its timeout is always due.
    is_restless: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send(u8, usize),
    /// A packet of 100 bytes, headers included, that begins with this byte.
    To(Destination, u8),
    Join(u8),
    Leave(u8),
    Prepare,
}

impl Puppet {
    fn new(script: impl IntoIterator<Item = (u64, Action)>) -> Self {
        let script = script.into_iter().map(|(millis, action)| (at(millis), action)).collect();
        Self { script, ..Self::default() }
    }

    /// A packet of 100 bytes, headers included, every 10 ms on channel 3.
    fn beacon(packets: u64) -> Self {
        Self::new((0..packets).map(|i| (10 * i, Action::Send(3, 72))))
    }

    fn heard_at(&self) -> Vec<u64> {
        self.heard.iter().map(|(at, ..)| at.as_nanos() / 1_000_000).collect()
    }
}

impl Endpoint for Puppet {
    type Job = ReceiveJob;
    type Done = ReceiveDone;
    type Event = ReceiverEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        let marked = |datagram: &Datagram| datagram.ecn == Ecn::CongestionExperienced;
        let heard =
            batch.datagrams.iter().filter_map(|d| Some((now, d.port.channel()?, marked(d))));
        self.heard.extend(heard);
    }

    fn handle_done(&mut self, now: Instant, _done: ReceiveDone) {
        self.heard.push((now, ChannelId(255), false));
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(_, action)) = self.script.front().filter(|(at, _)| *at <= now) {
            self.script.pop_front();
            self.due.push_back(action);
        }
    }

    fn poll_output(
        &mut self,
        _now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<ReceiveJob, ReceiverEvent>> {
        Some(match self.due.pop_front()? {
            Action::Join(channel) => Output::Join(ChannelId(channel)),
            Action::Leave(channel) => Output::Leave(ChannelId(channel)),
            Action::Prepare => Output::Job(ReceiveJob::Finish),
            Action::Send(channel, bytes) => {
                header.resize(bytes, 0xAB);
                Output::Transmit { to: Destination::Channel(ChannelId(channel)), symbol: None }
            }
            Action::To(to, class) => {
                header.resize(72, class);
                Output::Transmit { to, symbol: None }
            }
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_restless {
            return Some(Instant::ZERO);
        }
        self.script.front().map(|(at, _)| *at)
    }
}

/// A job runner whose jobs take 25 ms.
#[derive(Debug)]
struct Slow;

impl JobRunner<ReceiveJob> for Slow {
    type Done = ReceiveDone;
    type Error = &'static str;

    fn run(
        &mut self,
        _now: Instant,
        _job: ReceiveJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, &'static str> {
        Ok(Some(Finished { done: ReceiveDone::Finished, after: Duration::from_millis(25) }))
    }
}

impl SimulatedRunner for Slow {
    fn symbol_bytes(&self, _symbol: &SymbolId) -> u32 {
        0
    }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

const CAP: RateCap =
    RateCap { bytes_per_second: 1_000_000, max_packet_bytes: 100, peak_window: Duration::ZERO };

/// A source, a router and leaves over these links. The leaves receive the source's groups.
fn star(
    trunk: LinkConfig,
    access: &LinkConfig,
    source: Puppet,
    leaves: impl IntoIterator<Item = Puppet>,
) -> (Simulation<Driver<Puppet, Slow>>, Vec<NodeId>) {
    let mut topology = Topology::new();
    let nodes = topology.add_nodes(2);
    topology.connect(nodes[0], nodes[1], trunk);
    let leaves: Vec<_> = leaves.into_iter().map(|puppet| (topology.add_node(), puppet)).collect();
    for (leaf, _) in &leaves {
        topology.connect(nodes[1], *leaf, access.clone());
    }
    let mut run = Simulation::new(topology, SimulationConfig::new(1), ());
    run.attach(nodes[0], Driver::new(source, Slow), HostConfig::sender(CAP));
    let places = leaves.iter().map(|(leaf, _)| *leaf).collect();
    for (leaf, puppet) in leaves {
        run.attach(leaf, Driver::new(puppet, Slow), HostConfig::receiver([nodes[0]]));
    }
    (run, places)
}

fn heard_at(run: &Simulation<Driver<Puppet, Slow>>, leaf: NodeId) -> Vec<u64> {
    run.host(leaf).unwrap().endpoint.heard_at()
}

#[test]
fn a_group_flows_from_graft_to_prune() {
    let hop = |delay| LinkConfig { graft: ms(15), prune: ms(40), ..LinkConfig::wire(ms(delay)) };
    // With hops that share one event, and with hops that have an event each.
    for rate_bytes_per_second in [None, Some(u64::MAX)] {
        let access = LinkConfig { rate_bytes_per_second, ..hop(1) };
        let early = Puppet::new([(0, Action::Join(3)), (100, Action::Leave(3))]);
        let late =
            Puppet::new([(50, Action::Join(3)), (80, Action::Leave(3)), (100, Action::Join(3))]);
        let stranger = Puppet::new([(0, Action::Join(4))]);
        let (mut run, leaves) = star(hop(2), &access, Puppet::beacon(30), [early, late, stranger]);
        run.run_until(at(400)).unwrap();
        // Both hops are grafted after 30 ms. Nothing is delivered after the leave.
        assert_eq!(heard_at(&run, leaves[0]), [33, 43, 53, 63, 73, 83, 93]);
        // Only its own hop had to be grafted. It joined again before the prune took effect.
        let late = heard_at(&run, leaves[1]);
        assert_eq!(late[..3], [73, 103, 113]);
        assert_eq!(late.last(), Some(&293));
        assert_eq!(heard_at(&run, leaves[2]), []);
        // The hop to the first leaf is pruned 40 ms after the leave.
        let crossed = run.link(LinkId(2)).unwrap().stats().offered;
        assert_eq!(crossed, 11, "sent from 30 to 130 ms");
    }
}

#[test]
fn a_hop_that_does_not_listen_is_never_grafted_and_one_that_forgets_never_pruned() {
    let deaf = LinkConfig { graft: Duration::MAX, ..LinkConfig::default() };
    let (mut run, leaves) = star(
        LinkConfig::default(),
        &deaf,
        Puppet::beacon(10),
        [Puppet::new([(0, Action::Join(3))])],
    );
    run.run_until(at(200)).unwrap();
    assert_eq!(heard_at(&run, leaves[0]), []);
    let flooding = LinkConfig { prune: Duration::MAX, ..LinkConfig::default() };
    let fickle = Puppet::new([(0, Action::Join(3)), (45, Action::Leave(3))]);
    let (mut run, leaves) = star(LinkConfig::default(), &flooding, Puppet::beacon(10), [fickle]);
    run.run_until(at(200)).unwrap();
    assert_eq!(heard_at(&run, leaves[0]), [10, 20, 30, 40]);
    assert_eq!(run.link(LinkId(2)).unwrap().stats().offered, 9);
}

#[test]
fn marks_reach_the_endpoint() {
    let trunk = LinkConfig {
        rate_bytes_per_second: Some(10_000),
        mark_from: Some(QueueLength::Packets(1)),
        ..LinkConfig::default()
    };
    let source = Puppet::new([(1, Action::Send(3, 72)), (1, Action::Send(3, 72))]);
    let listener = Puppet::new([(0, Action::Join(3))]);
    let (mut run, leaves) = star(trunk, &LinkConfig::default(), source, [listener]);
    run.run_until(at(100)).unwrap();
    let marks = run.host(leaves[0]).unwrap().endpoint.heard.iter().map(|(.., marked)| *marked);
    assert_eq!(marks.collect::<Vec<_>>(), [false, true]);
    assert_eq!(heard_at(&run, leaves[0]), [11, 21], "10 ms each on the transmitter");
}

#[test]
fn a_job_that_takes_time_is_told_when_it_is_done() {
    let worker = Puppet::new([(5, Action::Prepare)]);
    let wire = LinkConfig::default();
    let (mut run, leaves) = star(wire.clone(), &wire, Puppet::default(), [worker]);
    run.run_until(at(100)).unwrap();
    assert_eq!(heard_at(&run, leaves[0]), [30]);
}

/// The violation of a run with this source and this leaf.
fn violation(source: Puppet, leaf: Puppet) -> Option<Violation> {
    let wire = LinkConfig::default();
    let (mut run, _) = star(wire.clone(), &wire, source, [leaf]);
    run.run_until(at(1_000)).err()
}

#[test]
fn what_may_not_happen_is_noticed() {
    let (source, leaf) = (NodeId(0), NodeId(2));
    assert_eq!(violation(Puppet::beacon(10), Puppet::default()), None);
    // 2 ms of the cap are 2 000 bytes: twenty packets of a hundred bytes at once.
    let burst = |packets| Puppet::new((0..packets).map(|_| (1, Action::Send(3, 72))));
    assert_eq!(violation(burst(20), Puppet::default()), None);
    let too_fast = Violation::Rate { node: source, at: at(1), excess_bytes: 100 };
    assert_eq!(violation(burst(21), Puppet::default()), Some(too_fast));
    let sends = Puppet::new([(7, Action::Send(3, 1))]);
    let sent = Violation::ReceiverSent { node: leaf, at: at(7) };
    assert_eq!(violation(Puppet::default(), sends), Some(sent));
    let leaves = Puppet::new([(1, Action::Join(3)), (2, Action::Leave(3)), (8, Action::Leave(3))]);
    let left = Violation::LeftUnjoined { node: leaf, channel: ChannelId(3), at: at(8) };
    assert_eq!(violation(Puppet::default(), leaves), Some(left));
    let restless = Puppet { is_restless: true, ..Puppet::default() };
    let stuck = Violation::Livelock { node: leaf, at: at(0) };
    assert_eq!(violation(Puppet::default(), restless), Some(stuck));
}

/// Packet-hops by the first byte of the packets.
#[derive(Debug, Default)]
struct PacketHops(BTreeMap<u8, u64>);

impl<E> Observer<E> for PacketHops {
    fn on_forward(&mut self, _now: Instant, _link: LinkId, packet: &Packet) {
        *self.0.entry(packet.header[0]).or_default() += 1;
    }
}

#[test]
fn packet_hops_of_four_nodes_are_those_counted_by_hand() {
    // With hops that share one event, and with hops that have an event each.
    for rate_bytes_per_second in [None, Some(u64::MAX)] {
        // a - r, r - b, r - c. The last link loses its first packet towards c.
        let mut topology = Topology::new();
        let [a, r, b, c] = [(); 4].map(|()| topology.add_node());
        let wire = LinkConfig { rate_bytes_per_second, ..LinkConfig::wire(ms(1)) };
        topology.connect(a, r, wire.clone());
        topology.connect(r, b, wire.clone());
        topology.add_link(c, r, wire.clone());
        let loss = LossModel::Periodic { period: 1_000, first: 0 };
        topology.add_link(r, c, wire.with_loss(loss));

        let channel = |number| Destination::Channel(ChannelId(number));
        let scoped = |hops| Destination::Scoped { channel: ChannelId(4), hops };
        let address = |node: NodeId| SocketAddr::new(node.address(), 7);
        let peer = |node: NodeId| Destination::Peer(address(node));
        let both = [(0, Action::Join(3)), (0, Action::Join(4))];
        let with = |script: &[(u64, Action)]| Puppet::new(both.into_iter().chain(script.to_vec()));
        let puppets = [
            // The two members below r: three hops each.
            (a, with(&[(10, Action::To(channel(3), 1)), (20, Action::To(channel(3), 1))])),
            // Two hops to a; one hop, which ends at the router; all three hops.
            (
                b,
                with(&[
                    (30, Action::To(Destination::Sender(address(a)), 2)),
                    (40, Action::To(scoped(1), 3)),
                    (50, Action::To(scoped(2), 4)),
                ]),
            ),
            // Two hops to b; a third source of the group; nothing behind unknown addresses.
            (
                c,
                with(&[
                    (60, Action::To(peer(b), 5)),
                    (70, Action::To(channel(4), 6)),
                    (80, Action::To(peer(NodeId(9)), 7)),
                    (80, Action::To(Destination::Peer(([192, 0, 2, 1], 7).into()), 7)),
                ]),
            ),
        ];
        let mut run = Simulation::new(topology, SimulationConfig::new(1), PacketHops::default());
        for (node, puppet) in puppets {
            let config = HostConfig::receiver_that_reports([a, b, c], CAP);
            run.attach(node, Driver::new(puppet, Slow), config);
        }
        run.run_until(at(200)).unwrap();
        let hops: Vec<_> = run.observer().0.clone().into_iter().collect();
        assert_eq!(hops, [(1, 6), (2, 2), (3, 1), (4, 3), (5, 2), (6, 3)]);
        let heard = |node| {
            let heard = &run.host(node).unwrap().endpoint.heard;
            heard.iter().map(|(now, channel, _)| (now.as_nanos() / 1_000_000, channel.0)).collect()
        };
        let [by_a, by_b, by_c]: [Vec<(u64, u8)>; 3] = [heard(a), heard(b), heard(c)];
        assert_eq!(by_a, [(32, 0), (52, 4), (72, 4)]);
        assert_eq!(by_b, [(12, 3), (22, 3), (62, 0), (72, 4)]);
        assert_eq!(by_c, [(22, 3), (52, 4)], "the packet of 10 ms is lost");
        assert_eq!((run.stats().sent, run.stats().drops), (9, 3));
    }
}

#[test]
fn a_broadcast_crosses_all_links_of_the_tree_and_a_subcast_those_below_its_router() {
    // a - r - q - b, r - c, q - d. Only b and c have joined.
    for (multicast, from_a, below_q, below_r) in
        [(Multicast::Pruned, 4, 3, 4), (Multicast::Broadcast, 5, 4, 5)]
    {
        let mut topology = Topology::new();
        let [a, r, q, b, c, d] = [(); 6].map(|()| topology.add_node());
        for (near, far) in [(a, r), (r, q), (q, b), (r, c), (q, d)] {
            topology.connect(near, far, LinkConfig { jitter: ms(0), ..LinkConfig::wire(ms(1)) });
        }
        let subcast = |router: NodeId| Destination::Subcast {
            router: SocketAddr::new(router.address(), 7),
            channel: ChannelId(3),
        };
        let join = (0, Action::Join(3));
        let scope = Destination::Scoped { channel: ChannelId(3), hops: 2 };
        let everyone = Destination::Channel(ChannelId(3));
        let puppets = [
            (a, vec![(10, Action::To(everyone, 1)), (20, Action::To(scope, 2))]),
            // Two hops to q or r, and those below it.
            (c, vec![join, (30, Action::To(subcast(q), 3)), (40, Action::To(subcast(r), 4))]),
            // No hop: it is the router itself, or there is none.
            (
                b,
                vec![
                    join,
                    (50, Action::To(subcast(b), 5)),
                    (60, Action::To(subcast(NodeId(9)), 6)),
                ],
            ),
            (d, vec![]),
        ];
        let config = SimulationConfig { multicast, ..SimulationConfig::new(1) };
        let mut run = Simulation::new(topology, config, PacketHops::default());
        for (node, script) in puppets {
            let config = HostConfig::receiver_that_reports([a, b, c], CAP);
            run.attach(node, Driver::new(Puppet::new(script), Slow), config);
        }
        run.run_until(at(200)).unwrap();
        let hops: Vec<_> = run.observer().0.clone().into_iter().collect();
        assert_eq!(hops, [(1, from_a), (2, 3), (3, below_q), (4, below_r)], "{multicast:?}");
        let heard = |node| run.host(node).unwrap().endpoint.heard_at();
        assert_eq!(heard(b), [13, 33, 43]);
        assert_eq!(heard(c), [12, 22, 42], "a subcast comes back to the host that sent it");
        assert_eq!(heard(d), [0; 0], "it has not joined");
    }
}

#[test]
fn a_run_holds_no_more_events_than_it_may() {
    let mut topology = Topology::new();
    let nodes = topology.add_nodes(2);
    topology.connect(nodes[0], nodes[1], LinkConfig::wire(ms(500)));
    let config = SimulationConfig { max_events: 10, ..SimulationConfig::new(1) };
    let mut run = Simulation::new(topology, config, ());
    run.attach(nodes[0], Driver::new(Puppet::beacon(50), Slow), HostConfig::sender(CAP));
    let listener = Puppet::new([(0, Action::Join(3))]);
    run.attach(nodes[1], Driver::new(listener, Slow), HostConfig::receiver([nodes[0]]));
    let ended = run.run_until(at(1_000));
    assert!(matches!(ended, Err(Violation::Events { events: 11, .. })), "{ended:?}");
}
