//! A simulated reception of a file over a LAN.

use super::pair::{self, Pair};
use super::session;
use crate::observed::{JobObserver, ObservedRunner};
use crate::session::Session;
use fontana_proto::{
    DatagramBatch, Driver, Finished, Instant, JobRunner, ReceiveJob, Receiver, ReceiverEvent,
    SendDone, SendJob, Sender, SenderEvent, SymbolId,
};
use fontana_sim::{
    Either, IdRunner, LinkConfig, LossModel, Machine, MachineConfig, MachineStats, NodeId,
    Observer, SimulatedRunner, Simulation,
};
use fontana_wire::Toi;
use std::collections::BTreeMap;
use std::time::Duration;

/// "All the hosts are attached to the same LAN" (section 6.2).
const LAN_DELAY: Duration = Duration::from_millis(1);
/// A reception that is not complete after this time has failed. It is many times the slowest one.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Measurements of a reception.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SimulatedReception {
    /// Time from the first packet until the file was complete; `NAN` if it never was.
    pub(crate) seconds: f64,
    /// Packets of content that arrived before that.
    pub(crate) received: u64,
    /// Of these, packets that arrived twice, or of complete blocks.
    pub(crate) duplicates: u64,
    /// Most bytes of symbols of incomplete objects.
    pub(crate) peak_bytes: u64,
    /// Most layers that the receiver was joined to.
    pub(crate) layers: u16,
    /// Complete objects when the lowest layer had sent its list once, to the second.
    pub(crate) objects_in_first_pass: u64,
}

/// A reception by a host whose work takes time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostReception {
    pub(crate) reception: SimulatedReception,
    /// Time from the first packet until the reception was complete; `NAN` if it never was.
    pub(crate) heard_seconds: f64,
    /// Counters of the host at the end of each second, until it was complete.
    pub(crate) by_second: Vec<MachineStats>,
}

type SenderHost = Driver<Sender, Encoder>;
type ReceiverHost = Driver<Machine<Receiver>, Storage<IdRunner>>;
type TransferRun = Simulation<Either<SenderHost, ReceiverHost>, Milestones>;

/// The link from the sender to the receiver.
pub(super) fn link(loss: LossModel) -> LinkConfig {
    LinkConfig::wire(LAN_DELAY).with_loss(loss)
}

/// Sends a session to one receiver whose link loses packets, until it is complete. `first_pass`:
/// symbols on the list of the lowest layer. `None` if it cannot be run.
pub(crate) fn receive(
    session: &Session,
    loss: LossModel,
    first_pass: u64,
) -> Option<SimulatedReception> {
    receive_on(MachineConfig::IDEAL, session, loss, first_pass).map(|found| found.reception)
}

/// The same, on a host whose work takes time.
pub(crate) fn receive_on(
    host: MachineConfig,
    session: &Session,
    loss: LossModel,
    first_pass: u64,
) -> Option<HostReception> {
    let start = pair::start();
    let encoder = Encoder { ids: session.runner(), coded_at: start + session.coding };
    let sender = Driver::new(session.sender(0)?, encoder);
    let machine = Machine::new(session::receiver(session), host);
    let receiver = Driver::new(machine, storage(session.runner()));
    let pair = Pair::new(session, link(loss), Milestones::default(), sender, receiver)?;
    let Pair { mut run, source, leaf } = pair;
    let (mut in_first_pass, mut by_second) = (None, Vec::new());
    run.run_while(Instant::ZERO + PATIENCE, |run| {
        by_second.extend(run.host(leaf).and_then(Either::right).map(|host| host.endpoint.stats()));
        let done = run.observer().complete.is_some();
        if done || has_sent(run, source, first_pass) {
            in_first_pass.get_or_insert(run.observer().objects);
        }
        done
    })
    .ok()?;
    let receiver = run.host(leaf)?.right()?;
    let stats = receiver.endpoint.endpoint().stats();
    let duplicates = stats.duplicates + stats.late;
    let seconds =
        |at: Option<Instant>| at.map_or(f64::NAN, |at| at.saturating_since(start).as_secs_f64());
    let reception = SimulatedReception {
        seconds: seconds(run.observer().complete),
        received: stats.fresh + duplicates,
        duplicates,
        peak_bytes: receiver.runner.observer.peak_bytes,
        layers: run.observer().layers,
        objects_in_first_pass: in_first_pass.unwrap_or(0),
    };
    Some(HostReception { reception, heard_seconds: seconds(run.observer().heard), by_second })
}

/// Whether the lowest layer has sent this many packets of content.
fn has_sent(run: &TransferRun, source: NodeId, symbols: u64) -> bool {
    let sender = run.host(source).and_then(Either::left);
    let base = sender.and_then(|sender| sender.endpoint.channel_stats().first());
    base.is_some_and(|stats| stats.packets - stats.control_packets >= symbols)
}

/// Runs the jobs of a sender that has no symbol before it has computed all of them.
#[derive(Debug)]
struct Encoder {
    ids: IdRunner,
    coded_at: Instant,
}

impl JobRunner<SendJob> for Encoder {
    type Done = SendDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: SendJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, &'static str> {
        let finished = self.ids.run(now, job, batch)?;
        let after = self.coded_at.saturating_since(now);
        Ok(finished.map(|finished| Finished { after, ..finished }))
    }
}

impl SimulatedRunner for Encoder {
    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        self.ids.symbol_bytes(symbol)
    }
}

/// A runner of a receiver's jobs, and the paper's buffer.
pub(super) type Storage<R> = ObservedRunner<R, ReceiveBuffer>;

/// The storage of a receiver that has received nothing.
pub(super) fn storage<R>(runner: R) -> Storage<R> {
    ObservedRunner { runner, observer: ReceiveBuffer::default() }
}

/// The bytes of incomplete objects: the paper's buffer.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    held: BTreeMap<Toi, u64>,
    bytes: u64,
    pub(super) peak_bytes: u64,
}

impl JobObserver<ReceiveJob> for ReceiveBuffer {
    fn observe(&mut self, job: &ReceiveJob) {
        match job {
            ReceiveJob::Place(run) => {
                let bytes = run.symbol_size() as u64 * u64::from(run.count);
                *self.held.entry(run.block.toi).or_default() += bytes;
                self.bytes += bytes;
                self.peak_bytes = self.peak_bytes.max(self.bytes);
            }
            ReceiveJob::Commit { toi } | ReceiveJob::Drop { toi } => {
                self.bytes -= self.held.remove(toi).unwrap_or(0)
            }
            _ => {}
        }
    }
}

/// Events of a receiver.
#[derive(Debug, Default)]
struct Milestones {
    objects: u64,
    layers: u16,
    heard: Option<Instant>,
    complete: Option<Instant>,
}

impl Observer<Either<SenderEvent, ReceiverEvent>> for Milestones {
    fn on_event(
        &mut self,
        now: Instant,
        _node: NodeId,
        event: &Either<SenderEvent, ReceiverEvent>,
    ) {
        let Some(event) = event.right() else { return };
        match event {
            ReceiverEvent::ObjectDone { .. } => self.objects += 1,
            ReceiverEvent::Level { channels, .. } => self.layers = self.layers.max(*channels),
            ReceiverEvent::ReceptionComplete => self.heard = Some(now),
            ReceiverEvent::Complete => self.complete = Some(now),
            _ => {}
        }
    }
}
