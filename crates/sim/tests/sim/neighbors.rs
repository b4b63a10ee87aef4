//! Receivers with faulty networks, and other receivers behind the same bottleneck, under every
//! congestion control.

use crate::scene::{SYMBOL, Scene};
use fontana_proto::{
    ChannelId, DatagramBatch, Driver, Endpoint, Instant, Output, Port, ReceiveDone, ReceiveJob,
    Receiver, ReceiverEvent, Sender, SubscriptionLimits, presets,
};
use fontana_sim::{
    Either, HostConfig, IdRunner, LinkConfig, LinkId, NodeId, Probability, QueueLength, Simulation,
    SimulationConfig, Topology, WireFaults,
};
use fontana_wire::{CongestionControl, LayerRates};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const MBIT: u64 = 125_000;
/// Rates of a session, and of the bottleneck that two of its receivers share.
const RATE: u64 = 8 * MBIT;
const BOTTLENECK: u64 = 3 * MBIT;
/// Bytes of an object that no receiver completes.
const ENDLESS: u64 = 200_000_000;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// One session for each congestion control, at the same rate.
fn sessions() -> Vec<Scene> {
    let layers = || LayerRates::geometric(RATE as u32 / 64, 512, 7).unwrap();
    let controls = [
        CongestionControl::Rlc(presets::rlc(layers())),
        CongestionControl::FlidSl(presets::flid_sl(layers())),
        CongestionControl::Webrc(presets::webrc_fast(RATE as u32, SYMBOL + 92).unwrap()),
    ];
    let scene = |congestion| Scene {
        congestion,
        watched: false,
        manifest_is_known: true,
        ..Scene::new(ENDLESS, 15, RATE, 1)
    };
    controls.map(scene).into()
}

/// A fault of a receiver's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Odd {
    Nothing,
    /// Joins of all channels but the lowest have no effect.
    IgnoresJoins,
    /// Leaves take effect after 10 s.
    LeavesSlowly,
    /// One packet in ten is delayed, so that a dozen others overtake it.
    Reorders,
    /// Another sender uses all channels and the same session number.
    HasStranger,
    /// After 30 s, only packets of the highest joined channel arrive.
    TopOnly,
}

/// A receiver behind its faulty network.
struct Listener {
    receiver: Receiver,
    odd: Odd,
    joined: BTreeSet<u8>,
}

impl Listener {
    fn hears(&self, now: Instant, port: Port) -> bool {
        let Some(ChannelId(channel)) = port.channel() else { return false };
        self.odd != Odd::TopOnly || now < at(30) || self.joined.last() == Some(&channel)
    }
}

impl Endpoint for Listener {
    type Job = ReceiveJob;
    type Done = ReceiveDone;
    type Event = ReceiverEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for datagram in batch.datagrams {
            if self.hears(now, datagram.port) {
                self.receiver.handle_datagrams(now, &DatagramBatch::one(batch.slab, datagram));
            }
        }
    }

    fn handle_done(&mut self, now: Instant, done: ReceiveDone) {
        self.receiver.handle_done(now, done);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
    }

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<ReceiveJob, ReceiverEvent>> {
        loop {
            let output = self.receiver.poll_output(now, header)?;
            match output {
                Output::Join(ChannelId(1..)) | Output::Leave(ChannelId(1..))
                    if self.odd == Odd::IgnoresJoins => {}
                Output::Join(ChannelId(channel)) => {
                    self.joined.insert(channel);
                    return Some(output);
                }
                Output::Leave(ChannelId(channel)) => {
                    self.joined.remove(&channel);
                    return Some(output);
                }
                output => return Some(output),
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.receiver.poll_timeout()
    }
}

type Run = Simulation<Either<Driver<Sender, IdRunner>, Driver<Listener, IdRunner>>>;

/// Source, router, bottleneck, router, and a link to each receiver.
struct Street {
    run: Run,
    receivers: Vec<NodeId>,
    bottleneck: LinkId,
}

impl Street {
    fn new(scene: &Scene, bottleneck: LinkConfig, odds: &[Odd]) -> Self {
        let hop = LinkConfig { graft: ms(5), prune: ms(50), ..LinkConfig::wire(ms(5)) };
        let mut topology = Topology::new();
        let nodes = topology.add_nodes(4);
        let [source, stranger, near, far] = nodes[..] else { unreachable!("four nodes") };
        topology.connect(source, near, hop.clone());
        topology.connect(stranger, near, hop.clone());
        let bottleneck = LinkConfig { graft: hop.graft, prune: hop.prune, ..bottleneck };
        let bottleneck = topology.connect(near, far, bottleneck).there;
        let receivers = topology.add_nodes(odds.len() as u32);
        for (&receiver, &odd) in receivers.iter().zip(odds) {
            let mut access = hop.clone();
            match odd {
                Odd::LeavesSlowly => access.prune = Duration::from_secs(10),
                Odd::Reorders => {
                    let reorder = Probability::new(0.1);
                    access.faults = WireFaults { reorder, held: ms(40), ..WireFaults::default() };
                }
                _ => {}
            }
            topology.connect(far, receiver, access);
        }
        let mut run = Run::new(topology, SimulationConfig::new(scene.seed), ());
        let send = |run: &mut Run, node, scene: &Scene| {
            let config = HostConfig::sender(scene.cap()).starting_at(Instant::ZERO + ms(50));
            let sender = Driver::new(scene.sender(0), scene.runner());
            run.attach(node, Either::Left(sender), config);
        };
        send(&mut run, source, scene);
        // The other sender has as many layers, and is too slow to fill the bottleneck.
        let layers = [RATE as u32 / 400; 7];
        send(&mut run, stranger, &Scene::new(ENDLESS / 2, 9, 0, 2).layered(&layers));
        for (&node, &odd) in receivers.iter().zip(odds) {
            let limits = SubscriptionLimits::default();
            let receiver = scene.receiver_of(limits);
            let listener = Listener { receiver, odd, joined: BTreeSet::new() };
            let sources: Arc<[NodeId]> = match odd {
                Odd::HasStranger => [source, stranger].into(),
                _ => [source].into(),
            };
            let config = HostConfig::receiver(sources);
            let listener = Driver::new(listener, scene.runner());
            run.attach(node, Either::Right(listener), config);
        }
        Self { run, receivers, bottleneck }
    }

    /// Symbols that each receiver receives between two seconds.
    fn heard(&mut self, from: u64, to: u64) -> Vec<u64> {
        let mut until = |second| -> Vec<u64> {
            self.run.run_until(at(second)).unwrap();
            let fresh = |&node: &NodeId| {
                self.run.host(node).unwrap().right().unwrap().endpoint.receiver.stats().fresh
            };
            self.receivers.iter().map(fresh).collect()
        };
        let (before, after) = (until(from), until(to));
        after.iter().zip(before).map(|(after, before)| after - before).collect()
    }

    fn bottleneck(&self) -> fontana_sim::LinkStats {
        self.run.link(self.bottleneck).unwrap().stats()
    }
}

#[test]
fn whatever_happens_to_a_receiver_it_goes_on_and_its_neighbor_hears_what_it_would_have() {
    for scene in sessions() {
        let name = scene.congestion.name();
        let bottleneck = LinkConfig::bottleneck(BOTTLENECK, ms(100), ms(10));
        let heard =
            |odd| Street::new(&scene, bottleneck.clone(), &[odd, Odd::Nothing]).heard(60, 180);
        let [_, usual] = heard(Odd::Nothing)[..] else { unreachable!("two receivers") };
        // With layers that double, at least half of the bottleneck is used.
        assert!(usual > 120 * BOTTLENECK / 1_500 / 2, "{name}: {usual}");
        for odd in
            [Odd::IgnoresJoins, Odd::LeavesSlowly, Odd::Reorders, Odd::HasStranger, Odd::TopOnly]
        {
            let [own, neighbor] = heard(odd)[..] else { unreachable!("two receivers") };
            println!("{name:10} {odd:?}: {own} itself, {neighbor} its neighbor, {usual} usually");
            assert!(own > 0, "{name}, {odd:?}: it stalls");
            // Until a slow leave takes effect, all receivers behind the bottleneck lose packets and
            // leave layers: a known weakness of both (docs/congestion.md). WEBRC needs no leaves.
            let least = match (&scene.congestion, odd) {
                (CongestionControl::Rlc(_) | CongestionControl::FlidSl(_), Odd::LeavesSlowly) => 6,
                _ => 9,
            };
            assert!(10 * neighbor >= least * usual, "{name}, {odd:?}: {neighbor} of {usual}");
        }
    }
}

#[test]
fn a_receiver_comes_down_for_marks_as_for_losses() {
    for scene in sessions() {
        let name = scene.congestion.name();
        // No queue forms.
        let wide = LinkConfig::bottleneck(8 * RATE, ms(100), ms(10));
        let marks = LinkConfig { mark_from: Some(QueueLength::Packets(0)), ..wide.clone() };
        let heard = |link| {
            let mut street = Street::new(&scene, link, &[Odd::Nothing]);
            let heard = street.heard(30, 90)[0];
            (heard, street.bottleneck())
        };
        let (unmarked, _) = heard(wide);
        let (marked, link) = heard(marks);
        println!("{name:10} {marked} of marked packets, {unmarked} of others; {link:?}");
        assert!(link.marked == link.offered && link.queue_drops == 0);
        assert!(marked * 5 < unmarked, "{name}: {marked} and {unmarked}");
    }
}
