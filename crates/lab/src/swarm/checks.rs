//! Invariants of a run in addition to those of the simulator.

use super::draw::{Drawn, Routing};
use super::forger::{self, Names};
use super::hosts::{SITE_RATE, SwarmHost};
use fontana_fec::Esi;
use fontana_proto::share::Holdings;
use fontana_proto::{BlockId, Instant, Receiver, ReceiverEvent, SenderEvent};
use fontana_sim::{Either, NodeId, Observer, Packet, Simulation, Violation};
use fontana_wire::{ReceiverId, ReceiverLabel, ShareBody, ShareMessage};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type SwarmRun = Simulation<SwarmHost, Checker>;

/// An invariant that did not hold: a bug of Fontana.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvariantViolation {
    /// The drawn session cannot be sent.
    #[error("what was drawn is no session")]
    Drawing,
    /// An invariant of the simulator: the rate limit in any window, receivers send nothing,
    /// verified bytes are right, no livelock.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A receiver reported that it was complete, and was not.
    #[error("receiver {} said that it was complete with {missing} blocks unverified", .node.0)]
    FalseComplete {
        /// The receiver.
        node: NodeId,
        /// Blocks that it had not verified, or whose bytes are not on its disk: at least one.
        missing: u64,
    },
    /// A receiver gave up.
    #[error("receiver {} gave up", .node.0)]
    GaveUp {
        /// The receiver.
        node: NodeId,
    },
    /// A receiver was not complete long after the last incident.
    #[error(
        "receiver {} was not complete {seconds} s after the last trouble: {wanted} of {of} symbols \
         wanted, {heard} heard",
        .node.0
    )]
    Stalled {
        /// The receiver.
        node: NodeId,
        /// Time since the last incident.
        seconds: u64,
        /// Symbols that it still wanted.
        wanted: u64,
        /// All source symbols.
        of: u64,
        /// Packets of the session that it received.
        heard: u64,
    },
    /// A receiver took more symbols than its code needs.
    #[error("receiver {} took {taken} symbols after the last trouble, {most} would have done", .node.0)]
    Wasteful {
        /// The receiver.
        node: NodeId,
        /// Packets of its content since the last incident.
        taken: u64,
        /// Most packets that it can have needed.
        most: u64,
    },
    /// Senders sent symbols of a rateless code twice.
    #[error("receiver {} heard {duplicates} symbols twice, and wires repeated {repeated}", .node.0)]
    Duplicates {
        /// The receiver.
        node: NodeId,
        /// Symbols that it had received before.
        duplicates: u64,
        /// Packets that arrived twice, or were damaged.
        repeated: u64,
    },
    /// A receiver that was complete was still joined.
    #[error("receiver {} was complete and still joined to {channels} channels", .node.0)]
    StillJoined {
        /// The receiver.
        node: NodeId,
        /// Number of channels.
        channels: u64,
    },
    /// A member of a site whose senders have left lacks what the site has.
    #[error(
        "receiver {} lacks {missing} of {of} blocks that its site has, {seconds} s after the last \
         trouble",
        .node.0
    )]
    Abandoned {
        /// The receiver.
        node: NodeId,
        /// Blocks that it lacks.
        missing: u64,
        /// Blocks that the site has.
        of: u64,
        /// Time since the last incident.
        seconds: u64,
    },
    /// A member sent strangers more than it may.
    #[error("receiver {} sent {bytes} bytes to strangers, and {most} are allowed", .node.0)]
    Lavish {
        /// The receiver.
        node: NodeId,
        /// Bytes that it sent after all receivers were complete.
        bytes: u64,
        /// Most bytes.
        most: u64,
    },
    /// The sender has no report of the end of a receiver.
    #[error("the sender does not know that receiver {} is complete; told: {told}", .node.0)]
    Unknown {
        /// The receiver.
        node: NodeId,
        /// Whether the receiver was told that the sender knows it.
        told: bool,
    },
    /// A sender held more prepared symbols than its planning windows allow.
    #[error("sender {} held {symbols} symbols, its rounds allow {most}", .node.0)]
    Memory {
        /// The sender.
        node: NodeId,
        /// Most symbols that were prepared at a time.
        symbols: u64,
        /// Limit of its planning windows.
        most: u64,
    },
}

/// Observes what receivers get and report.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// Blocks that each receiver has verified, in all its runs.
    verified: BTreeMap<NodeId, BTreeSet<BlockId>>,
    blocks: u64,
    /// Packets that each receiver got; `None` if no wire duplicates packets.
    numbers: Option<BTreeMap<NodeId, BTreeSet<u64>>>,
    /// Packets that each receiver got twice, or damaged.
    repeated: BTreeMap<NodeId, u64>,
    complete: BTreeSet<NodeId>,
    /// Receivers sign their reports.
    signs: bool,
    /// Senders of the session, without strangers.
    sources: BTreeSet<NodeId>,
    /// Packets of content that each receiver got after the last incident, from the acceptance of
    /// the content until its reception was complete.
    taken: BTreeMap<NodeId, u64>,
    /// Receivers whose reception is complete.
    sated: BTreeSet<NodeId>,
    /// A site whose senders have left.
    left: Option<LeftSite>,
    /// The receivers of whose end the sender of the session knows.
    known: BTreeSet<ReceiverId>,
    /// The names of those that sign: a roll call may name those that are not known.
    labels: BTreeSet<ReceiverLabel>,
    /// Receivers that were complete after the last incident: no fault keeps their reports away.
    calmly: BTreeSet<NodeId>,
    /// Receivers that have begun, and are not complete.
    incomplete: BTreeSet<NodeId>,
    /// The number of receivers, after the last incident.
    awaited: Option<usize>,
    /// Bytes of symbols that each receiver has sent since all are complete, and since when.
    given: BTreeMap<NodeId, (Instant, u64)>,
    breach: Option<InvariantViolation>,
}

/// A site whose senders have left.
#[derive(Debug)]
struct LeftSite {
    /// The blocks that a member has, or all source symbols of which are there. A block whose wrong
    /// symbols no search finds, and no sender replaces, does not count.
    blocks: BTreeSet<BlockId>,
    /// Members that have begun.
    members: Vec<NodeId>,
}

impl Checker {
    pub(super) fn new(drawn: &Drawn, senders: &[NodeId]) -> Self {
        let is_foreign = |n: &usize| drawn.strangers.contains(n) || drawn.forgers.contains_key(n);
        let ours = senders.iter().enumerate().filter(|(n, _)| !is_foreign(n));
        Self {
            sources: ours.map(|(_, &node)| node).collect(),
            blocks: drawn.session.block_count(),
            numbers: drawn.repeats.then(BTreeMap::new),
            signs: drawn.sent_back.signs,
            ..Self::default()
        }
    }

    /// Blocks that the site has, and a member lacks.
    fn lacks(&self, node: NodeId, left: &LeftSite) -> u64 {
        let lacks = |blocks: &BTreeSet<BlockId>| left.blocks.difference(blocks).count();
        self.verified.get(&node).map_or(left.blocks.len(), lacks) as u64
    }

    fn breach(&mut self, breach: InvariantViolation) {
        self.breach.get_or_insert(breach);
    }
}

impl Observer<Either<SenderEvent, ReceiverEvent>> for Checker {
    fn on_deliver(&mut self, _now: Instant, node: NodeId, packet: &Packet) {
        let again = self
            .numbers
            .as_mut()
            .is_some_and(|numbers| !numbers.entry(node).or_default().insert(packet.number));
        if again || packet.damage.is_some() {
            *self.repeated.entry(node).or_default() += 1;
        }
        let is_content = packet.symbol_bytes > 0;
        if is_content && self.sources.contains(&packet.source) && !self.sated.contains(&node) {
            *self.taken.entry(node).or_default() += 1;
        }
    }

    fn on_transmit(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let is_over = self.awaited == Some(self.complete.len()) && self.incomplete.is_empty();
        if !is_over {
            self.given.clear();
        } else if let Ok(ShareMessage { body: ShareBody::Symbol(_), .. }) =
            ShareMessage::parse(&packet.header)
        {
            let (_, bytes) = self.given.entry(node).or_insert((now, 0));
            *bytes += u64::from(packet.wire_bytes);
        }
    }

    fn on_event(
        &mut self,
        _now: Instant,
        node: NodeId,
        event: &Either<SenderEvent, ReceiverEvent>,
    ) {
        if let Some(SenderEvent::Report(status)) = event.left() {
            let signs = self.signs;
            if status.report.state.is_final() && (!signs || status.is_signed()) {
                self.known.insert(status.report.receiver);
                if signs {
                    self.labels.insert(status.report.label.clone());
                }
            }
        }
        let Some(event) = event.right() else { return };
        match event {
            ReceiverEvent::BlockVerified { block } => {
                self.verified.entry(node).or_default().insert(*block);
            }
            ReceiverEvent::Complete => {
                let verified = self.verified.get(&node).map_or(0, |blocks| blocks.len() as u64);
                if verified != self.blocks {
                    let missing = self.blocks.abs_diff(verified);
                    self.breach(InvariantViolation::FalseComplete { node, missing });
                }
                self.complete.insert(node);
                if self.awaited.is_some() {
                    self.calmly.insert(node);
                }
                self.incomplete.remove(&node);
            }
            ReceiverEvent::Accepted { .. } => {
                self.incomplete.insert(node);
                self.sated.remove(&node);
                self.taken.remove(&node);
            }
            ReceiverEvent::ReceptionComplete => drop(self.sated.insert(node)),
            // The symbols of the block are discarded.
            ReceiverEvent::BlockCorrupt { .. } => drop(self.sated.remove(&node)),
            ReceiverEvent::GivenUp { .. } => self.breach(InvariantViolation::GaveUp { node }),
            _ => {}
        }
    }
}

/// Whether the run can end. First called after the last incident.
pub(super) fn is_settled(run: &SwarmRun, receivers: &[NodeId]) -> bool {
    let checker = run.observer();
    if let Some(left) = &checker.left {
        let has_all = |node| checker.lacks(node, left) == 0;
        return checker.breach.is_some() || left.members.iter().copied().all(has_all);
    }
    checker.breach.is_some()
        // A receiver that is complete and joined has been restarted.
        || receivers.iter().all(|&node| {
            run.observer().complete.contains(&node) && run.joined(node).is_empty()
        })
}

/// Notes that the last incident is over.
pub(super) fn note_calm(run: &mut SwarmRun, drawn: &Drawn, receivers: &[NodeId]) {
    let left = drawn.leaves_at.is_some().then(|| left_site(run, drawn, receivers));
    let checker = run.observer_mut();
    checker.taken.clear();
    (checker.left, checker.awaited) = (left, Some(receivers.len()));
}

/// What the members of a site have that stay.
fn left_site(run: &SwarmRun, drawn: &Drawn, receivers: &[NodeId]) -> LeftSite {
    let receiver =
        |node: &NodeId| Some(&*run.host(*node).and_then(Either::right)?.endpoint.receiver);
    let blocks = drawn.session.blocks().into_iter().map(|(block, _)| block);
    let members: Vec<NodeId> =
        receivers.iter().copied().filter(|node| receiver(node).is_some_and(has_begun)).collect();
    let has_it = |block: &BlockId| {
        let has_block = |node: &NodeId| {
            let verified = run.observer().verified.get(node);
            verified.is_some_and(|blocks| blocks.contains(block))
        };
        let k = members.iter().filter_map(receiver).find_map(|it| it.block(*block));
        let esis: Vec<Esi> = (0..k.map_or(0, |it| it.source_symbols)).map(Esi).collect();
        let held = members.iter().filter_map(receiver).flat_map(|it| it.held(*block, &esis));
        let held: BTreeSet<Esi> = held.collect();
        let is_whole = drawn.is_sound && !esis.is_empty() && held.len() == esis.len();
        let is_there = members.iter().any(has_block) || is_whole;
        is_there && (drawn.is_simple(block.toi) || k.is_some_and(|it| it.makes_fresh))
    };
    LeftSite { blocks: blocks.filter(has_it).collect(), members }
}

fn has_begun(receiver: &Receiver) -> bool {
    receiver.source_symbols() > 0
}

/// Symbols that a receiver may need beyond `k`, per block of a rateless code: its overhead, uneven
/// losses, and a grain of 8 symbols for each channel.
const SLACK_PER_BLOCK: u64 = 64;
/// Packets that were planned or in transit at the last incident.
const SLACK: u64 = 256;

/// Judges a run that has ended.
pub(super) fn judge(
    run: &SwarmRun,
    drawn: &Drawn,
    senders: &[NodeId],
    receivers: &[NodeId],
    waited: u64,
) -> Result<(), InvariantViolation> {
    if let Some(breach) = &run.observer().breach {
        return Err(breach.clone());
    }
    for &node in senders {
        let Some(host) = run.host(node).and_then(Either::left) else { continue };
        let (sender, most) = (&host.endpoint, most_held(drawn));
        if sender.most_held > most && !sender.is_stranger() {
            return Err(InvariantViolation::Memory { node, symbols: sender.most_held, most });
        }
    }
    if let Some(left) = &run.observer().left {
        let lacks = |&node: &NodeId| (node, run.observer().lacks(node, left));
        let lacking = left.members.iter().map(lacks).find(|&(_, missing)| missing > 0);
        let of = left.blocks.len() as u64;
        return lacking.map_or(Ok(()), |(node, missing)| {
            Err(InvariantViolation::Abandoned { node, missing, of, seconds: waited })
        });
    }
    for (number, &node) in receivers.iter().enumerate() {
        let Some(host) = run.host(node).and_then(Either::right) else { continue };
        judge_beside(run, drawn, number, node)?;
        let receiver = &host.endpoint.receiver;
        let stats = receiver.stats();
        if !run.observer().complete.contains(&node) {
            let (wanted, of) = (receiver.symbols_wanted(), receiver.source_symbols());
            let heard = stats.session_packets;
            return Err(InvariantViolation::Stalled { node, seconds: waited, wanted, of, heard });
        }
        if !host.runner.has_everything() {
            return Err(InvariantViolation::FalseComplete { node, missing: 1 });
        }
        let channels = run.joined(node).len() as u64;
        if channels > 0 {
            return Err(InvariantViolation::StillJoined { node, channels });
        }
        let repeated = run.observer().repeated.get(&node).copied().unwrap_or(0);
        // The site may have sent it before.
        if drawn.is_fresh && !drawn.sent_back.shares && stats.duplicates > repeated {
            let duplicates = stats.duplicates;
            return Err(InvariantViolation::Duplicates { node, duplicates, repeated });
        }
        // `TopOnly` drops packets behind the place where they are counted.
        if !matches!(drawn.routing.get(number), Some(Routing::TopOnly { .. })) {
            judge_thrift(run, drawn, node, stats.corrupt_blocks + 1)?;
        }
    }
    Ok(())
}

/// Whether the sender knows how a receiver has ended, and what the receiver has sent to strangers.
fn judge_beside(
    run: &SwarmRun,
    drawn: &Drawn,
    number: usize,
    node: NodeId,
) -> Result<(), InvariantViolation> {
    let Some(host) = run.host(node).and_then(Either::right) else { return Ok(()) };
    let checker = run.observer();
    if let Some(id) = host.endpoint.id
        && !checker.known.contains(&id)
    {
        // An earlier run of it may be known.
        let told = host.endpoint.receiver.is_known_to_sender() == Some(true)
            && !checker.labels.contains(&forger::label(number));
        let is_reached = !matches!(drawn.routing.get(number), Some(Routing::TopOnly { .. }));
        if told || is_reached && drawn.is_gentle && checker.calmly.contains(&node) {
            return Err(InvariantViolation::Unknown { node, told });
        }
    }
    let lies = drawn.forgers.values().any(|forgery| forgery.names == Names::OfReceivers);
    if let Some(&(since, bytes)) = checker.given.get(&node).filter(|_| !lies) {
        let seconds = run.now().saturating_since(since).as_secs() + 1;
        let content = drawn.session.source_symbols() * u64::from(drawn.session.packet_bytes());
        // At once twice the content for all strangers, and the last answers for receivers.
        let most = 3 * content + SITE_RATE / 10 * seconds;
        if bytes > most {
            return Err(InvariantViolation::Lavish { node, bytes, most });
        }
    }
    Ok(())
}

/// Liveness, counted in packets. `rounds` is how often a block had to be started, at most.
fn judge_thrift(
    run: &SwarmRun,
    drawn: &Drawn,
    node: NodeId,
    rounds: u64,
) -> Result<(), InvariantViolation> {
    if !drawn.is_thrifty() {
        return Ok(());
    }
    let repeated = run.observer().repeated.get(&node).copied().unwrap_or(0);
    let taken = run.observer().taken.get(&node).copied().unwrap_or(0);
    let (k, blocks) = (drawn.session.source_symbols(), drawn.session.block_count());
    // Packets of a mirror are useless before its head has arrived.
    let sources = run.observer().sources.len() as u64;
    let most = rounds * sources * (k + k / 2 + SLACK_PER_BLOCK * blocks) + SLACK + repeated;
    if taken > most { Err(InvariantViolation::Wasteful { node, taken, most }) } else { Ok(()) }
}

/// Three planning windows, and for each block the symbols of an additional visit.
fn most_held(drawn: &Drawn) -> u64 {
    3 * u64::from(drawn.session.round_symbols) + SLACK_PER_BLOCK * drawn.session.block_count()
}
