//! What must hold in a run beyond what the simulator itself asserts.

use super::draw::{Drawn, Routing};
use super::hosts::SwarmHost;
use fontana_proto::{BlockId, Instant, ReceiverEvent, SenderEvent};
use fontana_sim::{Either, NodeId, Observer, Packet, Simulation, Violation};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type SwarmRun = Simulation<SwarmHost, Checker>;

/// An invariant that did not hold: a mistake of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvariantViolation {
    /// The dice made a session that cannot be sent.
    #[error("what was drawn is no session")]
    Drawing,
    /// What the simulator asserts of every run: the rate rule for every window, receivers that send
    /// nothing, verified bytes that are the right ones, no livelock.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A receiver said that it was complete, and was not.
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
    /// A receiver was not complete long after everything was well again.
    #[error(
        "receiver {} was not complete {seconds} s after the last trouble: {wanted} of {of} symbols \
         wanted, {heard} heard",
        .node.0
    )]
    Stalled {
        /// The receiver.
        node: NodeId,
        /// For how long it was waited for.
        seconds: u64,
        /// Symbols that it still wanted.
        wanted: u64,
        /// Of so many.
        of: u64,
        /// Packets of the session that it has heard.
        heard: u64,
    },
    /// A receiver took more symbols than the code explains.
    #[error("receiver {} took {taken} symbols after the last trouble, {most} would have done", .node.0)]
    Wasteful {
        /// The receiver.
        node: NodeId,
        /// Packets of its content, after the last trouble.
        taken: u64,
        /// Most that it can have needed.
        most: u64,
    },
    /// A rateless code, and symbols that came twice from senders.
    #[error("receiver {} heard {duplicates} symbols twice, and wires repeated {repeated}", .node.0)]
    Duplicates {
        /// The receiver.
        node: NodeId,
        /// Symbols that it had heard before.
        duplicates: u64,
        /// Packets that arrived twice, or were damaged.
        repeated: u64,
    },
    /// A receiver that was complete was still joined.
    #[error("receiver {} was complete and still joined to {channels} channels", .node.0)]
    StillJoined {
        /// The receiver.
        node: NodeId,
        /// Channels.
        channels: u64,
    },
    /// A sender held more prepared symbols than its rounds allow.
    #[error("sender {} held {symbols} symbols, its rounds allow {most}", .node.0)]
    Memory {
        /// The sender.
        node: NodeId,
        /// Symbols prepared at a time.
        symbols: u64,
        /// Most that there may be.
        most: u64,
    },
}

/// Checks what happens to receivers.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// Blocks that each receiver has verified, in all its lives.
    verified: BTreeMap<NodeId, BTreeSet<BlockId>>,
    blocks: u64,
    /// Packets that came to each receiver, if wires repeat any.
    numbers: Option<BTreeMap<NodeId, BTreeSet<u64>>>,
    /// How many of them came again, or were damaged.
    repeated: BTreeMap<NodeId, u64>,
    complete: BTreeSet<NodeId>,
    /// Whose packets are the session's.
    sources: BTreeSet<NodeId>,
    /// Packets of the session's content that came to each receiver since the trouble was over and
    /// it knew what there is to receive, until it had heard enough.
    taken: BTreeMap<NodeId, u64>,
    /// Who has heard enough.
    sated: BTreeSet<NodeId>,
    breach: Option<InvariantViolation>,
}

impl Checker {
    pub(super) fn new(drawn: &Drawn, senders: &[NodeId]) -> Self {
        let ours = senders.iter().enumerate().filter(|(n, _)| !drawn.strangers.contains(n));
        Self {
            sources: ours.map(|(_, &node)| node).collect(),
            blocks: drawn.session.block_count(),
            numbers: drawn.repeats.then(BTreeMap::new),
            ..Self::default()
        }
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

    fn on_event(
        &mut self,
        _now: Instant,
        node: NodeId,
        event: &Either<SenderEvent, ReceiverEvent>,
    ) {
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
            }
            ReceiverEvent::Accepted { .. } => {
                self.sated.remove(&node);
                self.taken.remove(&node);
            }
            ReceiverEvent::ReceptionComplete => drop(self.sated.insert(node)),
            // What was received of the block was in vain.
            ReceiverEvent::BlockCorrupt { .. } => drop(self.sated.remove(&node)),
            ReceiverEvent::GivenUp { .. } => self.breach(InvariantViolation::GaveUp { node }),
            _ => {}
        }
    }
}

/// Whether there is nothing more to wait for. Asked first when the trouble is over.
pub(super) fn is_settled(run: &SwarmRun, receivers: &[NodeId]) -> bool {
    run.observer().breach.is_some()
        // Who is complete and joined is in another life.
        || receivers.iter().all(|&node| {
            run.observer().complete.contains(&node) && run.joined(node).is_empty()
        })
}

/// The trouble is over.
pub(super) fn note_calm(run: &mut SwarmRun) {
    run.observer_mut().taken.clear();
}

/// What a receiver may need of a rateless code beyond `k`, per block: its own overhead, what is
/// unevenly lost, and a grain of 8 symbols for every block and channel.
const SLACK_PER_BLOCK: u64 = 64;
/// What was laid out and under way when the trouble was over.
const SLACK: u64 = 256;

/// Looks at a run that has ended.
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
    for (number, &node) in receivers.iter().enumerate() {
        let Some(host) = run.host(node).and_then(Either::right) else { continue };
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
        if drawn.is_fresh && stats.duplicates > repeated {
            let duplicates = stats.duplicates;
            return Err(InvariantViolation::Duplicates { node, duplicates, repeated });
        }
        // What its router keeps from a receiver came to the host all the same, and was counted.
        if !matches!(drawn.routing.get(number), Some(Routing::TopOnly { .. })) {
            judge_thrift(run, drawn, node, stats.poisoned_blocks + 1)?;
        }
    }
    Ok(())
}

/// Liveness, counted in packets: `rounds` is how often a block had to be begun, at most.
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
    // What a mirror sends is of no use before its head has come.
    let sources = run.observer().sources.len() as u64;
    let most = rounds * sources * (k + k / 2 + SLACK_PER_BLOCK * blocks) + SLACK + repeated;
    if taken > most { Err(InvariantViolation::Wasteful { node, taken, most }) } else { Ok(()) }
}

/// Three rounds, and for each block what a turn of it takes more.
fn most_held(drawn: &Drawn) -> u64 {
    3 * u64::from(drawn.session.round_symbols) + SLACK_PER_BLOCK * drawn.session.block_count()
}
