//! The endpoints: a sender that plans symbols and writes headers, and a receiver that parses them
//! and decides where symbols go. Their jobs cost nothing.

use super::content::{PathContent, RUN, SYMBOL_SIZE};
use super::row::{Meter, PathRow};
use super::stage::Stage;
use fontana_proto::{
    Announcement, AnnouncementIntervals, Committed, Datagram, DatagramBatch, Driver, Ecn, Effect,
    Endpoint, Expectation, Finished, Instant, JobRunner, Port, ReceiveDone, ReceiveJob, Receiver,
    ReceiverConfig, Saved, SendDone, SendJob, SendObject, Sender, SenderConfig, Subscription,
    SubscriptionLimits, TransmissionSchedule,
};
use fontana_wire::{
    Entry, FileEntry, Hash, InstanceId, Manifest, ManifestObject, Metadata, RelativePath, Toi, Tsi,
};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const TOI: u32 = 1;
const TSI: Tsi = Tsi(7);
/// Wall time of the run, Unix seconds.
const NOW_UNIX: u64 = 1_800_000_000;
/// A rate at which the limit is computed, and never waited for.
const RATE: u64 = 10_000_000_000;
/// Time from one poll of the sender to the next.
const STEP: Duration = Duration::from_millis(1);
/// Symbols of a planning window: 100 ms at 1 Gbit/s.
const ROUND: u32 = 9_300;
/// Datagrams of a received batch: a slab of 256 KiB.
const BATCH: usize = 140;
/// The hash of every block: no byte is read.
const HASH: Hash = Hash([7; 32]);

pub(super) fn measure(content: &PathContent) -> Result<Vec<PathRow>, String> {
    let manifest = manifest(content)?;
    let wanted = content.source_symbols();
    let mut sending = Meter::default();
    let sent = sending.measure(|| send(content, &manifest, |_, _| {}))?;
    let mut batches = vec![ReceivedBatch::default()];
    send(content, &manifest, |header, size| {
        if batches.last().is_some_and(|batch| batch.datagrams.len() == BATCH) {
            batches.push(ReceivedBatch::default());
        }
        batches.last_mut().into_iter().for_each(|batch| batch.add(header, size));
    })?;
    let mut receiver = Driver::new(receiver(), Placing);
    let mut receiving = Meter::default();
    receiving.measure(|| {
        for (batch, step) in batches.iter().zip(0_u64..) {
            receive(&mut receiver, Instant::from_nanos(step * 1_000_000), batch);
        }
    });
    let stats = receiver.endpoint.stats();
    if stats.fresh < wanted {
        return Err(format!("{} of {wanted} symbols were of use", stats.fresh));
    }
    Ok(vec![
        PathRow::new(Stage::Header, "packets", sent, sending.nanos),
        PathRow::new(Stage::Header, "datagrams", stats.datagrams, receiving.nanos),
    ])
}

fn manifest(content: &PathContent) -> Result<Manifest, String> {
    let block_hashes = content.blocks().map(|_| HASH).collect();
    let object = ManifestObject { toi: TOI, oti: content.layout.oti(), block_hashes };
    let path = RelativePath::new("content").map_err(|error| error.to_string())?;
    let length = content.bytes.len() as u64;
    let file = Entry::File(FileEntry::whole_object(path, Metadata::default(), TOI, length));
    Manifest::new(1, "path", vec![object], vec![file]).map_err(|error| error.to_string())
}

/// Sends until all source symbols are sent. `transmit` gets each header, and the size of its
/// symbol. Returns the number of packets.
fn send(
    content: &PathContent,
    manifest: &Manifest,
    mut transmit: impl FnMut(&[u8], u16),
) -> Result<u64, String> {
    let manifest = manifest.emit();
    let announcement = Announcement::of_manifest(InstanceId([1; 16]), &manifest);
    let intervals = AnnouncementIntervals::default();
    let control = announcement.control_objects(SYMBOL_SIZE, None, intervals);
    let sender = Sender::new(SenderConfig {
        control: control.map_err(|error| error.to_string())?.into(),
        schedule: TransmissionSchedule::Runs { length: RUN, visits: None },
        round_symbols: ROUND,
        ..SenderConfig::new(
            TSI,
            vec![SendObject { toi: Toi::from(TOI), layout: content.layout, source_pass: true }],
            RATE,
            1,
        )
    });
    let mut driver = Driver::new(sender, Prompt);
    let mut now = Instant::ZERO;
    while driver.endpoint.stats().source_symbols < content.source_symbols() {
        now = now + STEP;
        driver.endpoint.handle_timeout(now);
        while let Ok(Some(effect)) = driver.poll(now, &DatagramBatch::EMPTY) {
            if let Effect::Transmit { symbol, .. } = effect {
                transmit(driver.header(), symbol.map_or(0, |symbol| symbol.size));
            }
        }
    }
    Ok(driver.endpoint.stats().packets)
}

/// Symbols are ready at once.
struct Prompt;

impl JobRunner<SendJob> for Prompt {
    type Done = SendDone;
    type Error = Infallible;

    fn run(
        &mut self,
        _now: Instant,
        job: SendJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, Infallible> {
        Ok(match job {
            SendJob::Prepare { batch, .. } => Some(Finished::now(SendDone::Prepared { batch })),
            SendJob::Release { .. } | SendJob::ExpectRepair => None,
            // It has no keys: no session without reports asks for it.
            SendJob::Sign(_) => Some(Finished::now(SendDone::Signed(Vec::new()))),
            SendJob::Open { .. } => Some(Finished::now(SendDone::Opened(None))),
        })
    }
}

/// A slab of datagrams.
#[derive(Default)]
struct ReceivedBatch {
    slab: Vec<u8>,
    datagrams: Vec<Datagram>,
}

impl ReceivedBatch {
    /// Adds a header and a symbol of zeros.
    fn add(&mut self, header: &[u8], size: u16) {
        let start = self.slab.len() as u32;
        self.slab.extend_from_slice(header);
        self.slab.resize(self.slab.len() + usize::from(size), 0);
        self.datagrams.push(Datagram {
            from: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7),
            port: Port::BASE,
            ecn: Ecn::NotEct,
            dropped_before: 0,
            payload: start..self.slab.len() as u32,
        });
    }
}

fn receiver() -> Receiver {
    let config = ReceiverConfig {
        stays_until_verified: true,
        ..ReceiverConfig::new(Expectation { tsi: Some(TSI), ..Expectation::default() }, NOW_UNIX)
    };
    Receiver::new(config, Subscription::Declared(SubscriptionLimits::default()))
}

fn receive(driver: &mut Driver<Receiver, Placing>, now: Instant, batch: &ReceivedBatch) {
    let batch = DatagramBatch { slab: &batch.slab, datagrams: &batch.datagrams };
    driver.endpoint.handle_datagrams(now, &batch);
    while let Ok(Some(_)) = driver.poll(now, &batch) {}
}

/// Symbols are placed nowhere, and every block has its hash.
struct Placing;

impl JobRunner<ReceiveJob> for Placing {
    type Done = ReceiveDone;
    type Error = Infallible;

    fn run(
        &mut self,
        _now: Instant,
        job: ReceiveJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, Infallible> {
        let done = match job {
            ReceiveJob::Open(opening) => {
                ReceiveDone::Opened { scope: opening.scope(), saved: Saved::default() }
            }
            ReceiveJob::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                ReceiveDone::Solved { block, decoder, progress }
            }
            ReceiveJob::Recover { block, .. } => ReceiveDone::Recovered { block, hash: HASH },
            ReceiveJob::Commit { toi } => ReceiveDone::Committed(Committed::Content { toi }),
            ReceiveJob::Finish => ReceiveDone::Finished,
            // No hash is wrong, so nothing is searched.
            ReceiveJob::Place(_)
            | ReceiveJob::Settle { .. }
            | ReceiveJob::Drop { .. }
            | ReceiveJob::Expire(_)
            | ReceiveJob::Locate(_)
            | ReceiveJob::Choose(_)
            | ReceiveJob::CheckCall(_)
            | ReceiveJob::Seal(_)
            | ReceiveJob::Read { .. }
            | ReceiveJob::Release { .. }
            | ReceiveJob::Spill { .. }
            | ReceiveJob::ReadSpill { .. }
            | ReceiveJob::DropSpill => return Ok(None),
        };
        Ok(Some(Finished::now(done)))
    }
}
