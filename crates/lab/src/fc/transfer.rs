//! One reception of a file over a LAN, and what it took.

use super::session;
use crate::session::{LISTENERS_FIRST, Session};
use fontana_proto::{Event, Instant, Job, Receiver, Sender, SymbolBytes, SymbolId};
use fontana_sim::{
    Either, HeardBytes, HostConfig, IdJobs, Jobs, LinkConfig, LossModel, Machine, MachineConfig,
    MachineStats, NodeId, Observer, Outcome, Rooted, Simulation, SimulationConfig,
};
use fontana_wire::Toi;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// "All the hosts are attached to the same LAN" (section 6.2).
const LAN_DELAY: Duration = Duration::from_millis(1);
/// Whoever has nothing after this time, which is many times what any of them takes, never will.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What a reception took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reception {
    /// From the first packet sent until the file was there; `NAN` if it never was.
    pub(crate) seconds: f64,
    /// Packets of content that arrived before that.
    pub(crate) received: u64,
    /// Of these: that came twice, or of blocks that had enough.
    pub(crate) duplicates: u64,
    /// Most bytes of symbols of objects that were not delivered yet.
    pub(crate) peak_bytes: u64,
    /// Most layers that it was joined to.
    pub(crate) layers: u16,
    /// Objects that it had, to the second, when the lowest layer had sent its list once.
    pub(crate) objects_in_first_pass: u64,
}

/// A reception by a host that takes time for what it does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostReception {
    pub(crate) reception: Reception,
    /// From the first packet sent until enough had been heard; `NAN` if it never was.
    pub(crate) heard_seconds: f64,
    /// What the host had done by the end of each second, until it was complete.
    pub(crate) by_second: Vec<MachineStats>,
}

type Run = Simulation<Either<Sender, Machine<Receiver>>, Storage<IdJobs>, Milestones>;

/// From the sender to the receiver.
pub(super) fn link(loss: LossModel) -> LinkConfig {
    LinkConfig::wire(LAN_DELAY).with_loss(loss)
}

/// Sends a session to one receiver whose link loses packets, until it is complete. `first_pass`: symbols
/// on the list of the lowest layer. `None` if it cannot be run.
pub(crate) fn receive(session: &Session, loss: LossModel, first_pass: u64) -> Option<Reception> {
    receive_on(MachineConfig::IDEAL, session, loss, first_pass).map(|found| found.reception)
}

/// The same on a host that takes time.
pub(crate) fn receive_on(
    host: MachineConfig,
    session: &Session,
    loss: LossModel,
    first_pass: u64,
) -> Option<HostReception> {
    let lan = Rooted::tree(&[1], &[Arc::new(link(loss))]);
    let (source, leaf) = (lan.source, *lan.leaves.first()?);
    let config = SimulationConfig::new(session.seed);
    let mut run: Run = Simulation::new(lan.topology, config, Milestones::default());
    let storage = || Storage::new(IdJobs::new(Arc::clone(&session.content)));
    let start = Instant::ZERO + LISTENERS_FIRST;
    let sends = HostConfig::sender(session.cap()).starting_at(start);
    run.attach(source, Either::Left(session.sender(0)?), storage(), sends);
    let receiver = Either::Right(Machine::new(session::receiver(session), host));
    run.attach(leaf, receiver, storage(), HostConfig::receiver([source]));
    let (mut in_first_pass, mut by_second) = (None, Vec::new());
    run.run_while(Instant::ZERO + PATIENCE, |run| {
        by_second.extend(run.endpoint(leaf).and_then(Either::right).map(Machine::stats));
        let done = run.observer().complete.is_some();
        if done || has_sent(run, source, first_pass) {
            in_first_pass.get_or_insert(run.observer().objects);
        }
        done
    })
    .ok()?;
    let stats = run.endpoint(leaf)?.right()?.endpoint().stats();
    let duplicates = stats.duplicates + stats.late;
    let seconds =
        |at: Option<Instant>| at.map_or(f64::NAN, |at| at.saturating_since(start).as_secs_f64());
    let reception = Reception {
        seconds: seconds(run.observer().complete),
        received: stats.fresh + duplicates,
        duplicates,
        peak_bytes: run.jobs(leaf)?.peak_bytes,
        layers: run.observer().layers,
        objects_in_first_pass: in_first_pass.unwrap_or(0),
    };
    Some(HostReception { reception, heard_seconds: seconds(run.observer().heard), by_second })
}

/// Whether so much content has been sent on the lowest layer.
fn has_sent(run: &Run, source: NodeId, symbols: u64) -> bool {
    let sender = run.endpoint(source).and_then(Either::left);
    let base = sender.and_then(|sender| sender.channel_stats().first());
    base.is_some_and(|stats| stats.packets - stats.control_packets >= symbols)
}

/// Does jobs, and counts the bytes that wait for their object to be complete: what the paper calls
/// the buffer.
#[derive(Debug)]
pub(super) struct Storage<J> {
    pub(super) jobs: J,
    held: BTreeMap<Toi, u64>,
    bytes: u64,
    pub(super) peak_bytes: u64,
}

impl<J> Storage<J> {
    pub(super) const fn new(jobs: J) -> Self {
        Self { jobs, held: BTreeMap::new(), bytes: 0, peak_bytes: 0 }
    }
}

impl<J: Jobs> Jobs for Storage<J> {
    fn carry_out(
        &mut self,
        now: Instant,
        job: Job,
        heard: HeardBytes<'_>,
    ) -> Result<Option<Outcome>, &'static str> {
        match &job {
            Job::Place { block, symbol, .. } => {
                let bytes = match symbol {
                    SymbolBytes::InDatagram(range) => range.len() as u64,
                    SymbolBytes::Kept(bytes) => bytes.len() as u64,
                };
                *self.held.entry(block.toi).or_default() += bytes;
                self.bytes += bytes;
                self.peak_bytes = self.peak_bytes.max(self.bytes);
            }
            Job::Commit { toi } => self.bytes -= self.held.remove(toi).unwrap_or(0),
            _ => {}
        }
        self.jobs.carry_out(now, job, heard)
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        self.jobs.symbol_bytes(symbol)
    }
}

/// What a receiver has said.
#[derive(Debug, Default)]
struct Milestones {
    objects: u64,
    layers: u16,
    heard: Option<Instant>,
    complete: Option<Instant>,
}

impl Observer for Milestones {
    fn on_event(&mut self, now: Instant, _node: NodeId, event: &Event) {
        match event {
            Event::ObjectDone { .. } => self.objects += 1,
            Event::Level { channels, .. } => self.layers = self.layers.max(*channels),
            Event::HeardEnough => self.heard = Some(now),
            Event::Complete => self.complete = Some(now),
            _ => {}
        }
    }
}
