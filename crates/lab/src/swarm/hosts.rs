//! The hosts of a run: the real sender and receiver, with the faults of their hosts and routers.

use super::draw::{Drawn, Routing};
use crate::bytes::{ByteRunner, Pump};
use fontana_proto::{
    BatchId, ChannelId, DatagramBatch, Driver, Endpoint, Finished, Instant, JobRunner, Output,
    Port, ReceiveDone, ReceiveJob, Receiver, ReceiverEvent, SendDone, SendJob, Sender, SenderEvent,
    SplitMix64, SymbolId,
};
use fontana_sim::{Delivery, Either, HostFactory, IdRunner, SendingHost, SimulatedRunner};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A host.
pub(super) type SwarmHost = Either<SenderHost, ReceiverHost>;
/// A host that sends.
pub(super) type SenderHost = Driver<SwarmSender, IdRunner>;
/// A host that receives.
pub(super) type ReceiverHost = Driver<SwarmReceiver, SwarmRunner>;

/// A sender, with the number of symbols that its driver holds.
#[derive(Debug)]
pub(super) struct SwarmSender {
    sender: Box<Sender>,
    /// Number of symbols of each batch that is prepared and not released.
    batches: BTreeMap<BatchId, u64>,
    held: u64,
    /// Most symbols that were held at a time.
    pub(super) most_held: u64,
    /// Writes the bytes of symbols; `None` in runs on ids.
    pump: Option<Pump>,
    /// Random numbers with which a stranger corrupts its packets; `None` for other senders.
    corrupts: Option<SplitMix64>,
}

impl SwarmSender {
    fn new(sender: Sender, pump: Option<Pump>, corrupts: Option<SplitMix64>) -> Self {
        let (sender, batches) = (Box::new(sender), BTreeMap::new());
        Self { sender, batches, held: 0, most_held: 0, pump, corrupts }
    }

    pub(super) fn is_stranger(&self) -> bool {
        self.corrupts.is_some()
    }

    fn count(&mut self, job: &SendJob) {
        match job {
            SendJob::Prepare { batch, esis, .. } => {
                self.held += esis.len() as u64;
                self.batches.insert(*batch, esis.len() as u64);
                self.most_held = self.most_held.max(self.held);
            }
            SendJob::Release { batch } => self.held -= self.batches.remove(batch).unwrap_or(0),
            SendJob::ExpectRepair | SendJob::Sign(_) | SendJob::Open { .. } => {}
        }
    }
}

/// Truncates a header, inverts a bit of it, overwrites it with noise, or leaves it unchanged.
fn corrupt(header: &mut Vec<u8>, random: &mut SplitMix64) {
    let length = header.len() as u32;
    if length == 0 {
        return;
    }
    let place = random.below(length) as usize;
    match random.below(4) {
        0 => header.truncate(place),
        1 => header[place] ^= 1 << random.below(8),
        2 => header.iter_mut().skip(place).for_each(|byte| *byte = random.next_u64() as u8),
        _ => {}
    }
}

impl Endpoint for SwarmSender {
    type Job = SendJob;
    type Done = SendDone;
    type Event = SenderEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        self.sender.handle_datagrams(now, batch);
    }

    fn handle_done(&mut self, now: Instant, done: SendDone) {
        self.sender.handle_done(now, done);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<SendJob, SenderEvent>> {
        match self.sender.poll_output(now, header)? {
            Output::Transmit { to, mut symbol } => {
                if let (Some(pump), Some(id)) = (&mut self.pump, &symbol) {
                    pump.write(id, header);
                    symbol = None;
                }
                if let Some(random) = &mut self.corrupts {
                    corrupt(header, random);
                }
                Some(Output::Transmit { to, symbol })
            }
            output => {
                if let Output::Job(job) = &output {
                    self.count(job);
                }
                Some(output)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.sender.poll_timeout()
    }
}

/// A receiver behind its router.
#[derive(Debug)]
pub(super) struct SwarmReceiver {
    pub(super) receiver: Box<Receiver>,
    routing: Routing,
    received: u32,
    /// Whether each channel is joined.
    joined: Box<[bool; 256]>,
}

impl SwarmReceiver {
    fn new(receiver: Receiver, routing: Routing) -> Self {
        let receiver = Box::new(receiver);
        Self { receiver, routing, received: 0, joined: Box::new([false; 256]) }
    }

    fn passes(&mut self, port: Port) -> bool {
        let Some(ChannelId(channel)) = port.channel() else { return true };
        self.received = self.received.saturating_add(1);
        match self.routing {
            Routing::TopOnly { after } if self.received > after => {
                !self.joined.iter().skip(usize::from(channel) + 1).any(|&joined| joined)
            }
            _ => true,
        }
    }

    fn is_ignored(&self, ChannelId(channel): ChannelId) -> bool {
        matches!(self.routing, Routing::IgnoresJoinsAbove(limit) if channel > limit)
    }
}

impl Endpoint for SwarmReceiver {
    type Job = ReceiveJob;
    type Done = ReceiveDone;
    type Event = ReceiverEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for datagram in batch.datagrams {
            if self.passes(datagram.port) {
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
                Output::Join(channel) | Output::Leave(channel) if self.is_ignored(channel) => {}
                Output::Join(ChannelId(channel)) => {
                    self.joined[usize::from(channel)] = true;
                    return Some(output);
                }
                Output::Leave(ChannelId(channel)) => {
                    self.joined[usize::from(channel)] = false;
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

/// Runs a receiver's jobs, on ids or on bytes.
#[derive(Clone, Debug)]
pub(super) enum SwarmRunner {
    Ids(Box<IdRunner>),
    Bytes(Box<ByteRunner>),
}

impl SwarmRunner {
    fn restarted(&self) -> Self {
        match self {
            Self::Ids(runner) => Self::Ids(Box::new(runner.restarted())),
            Self::Bytes(runner) => Self::Bytes(Box::new(runner.restarted())),
        }
    }

    /// Whether the disk has every byte of the content; true in runs on ids.
    pub(super) fn has_everything(&self) -> bool {
        match self {
            Self::Ids(_) => true,
            Self::Bytes(runner) => runner.has_everything(),
        }
    }
}

impl JobRunner<ReceiveJob> for SwarmRunner {
    type Done = ReceiveDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, &'static str> {
        match self {
            Self::Ids(runner) => runner.run(now, job, batch),
            Self::Bytes(runner) => runner.run(now, job, batch),
        }
    }
}

impl SimulatedRunner for SwarmRunner {
    fn begin_delivery(&mut self, delivery: &Delivery<'_>) {
        match self {
            Self::Ids(runner) => runner.begin_delivery(delivery),
            Self::Bytes(runner) => runner.begin_delivery(delivery),
        }
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        match self {
            Self::Ids(runner) => runner.symbol_bytes(symbol),
            Self::Bytes(runner) => runner.symbol_bytes(symbol),
        }
    }
}

/// Creates the hosts of a run.
#[derive(Debug)]
pub(super) struct SwarmHosts<'a> {
    drawn: &'a Drawn,
    /// Number of the next run of a sender. Each run has its own.
    sender_runs: u64,
}

impl<'a> SwarmHosts<'a> {
    pub(super) fn new(drawn: &'a Drawn) -> Self {
        Self { drawn, sender_runs: 0 }
    }

    fn receive_runner(&self) -> SwarmRunner {
        match &self.drawn.originals {
            Some(originals) => SwarmRunner::Bytes(Box::new(ByteRunner::new(Arc::clone(originals)))),
            None => SwarmRunner::Ids(Box::new(self.drawn.session.runner())),
        }
    }
}

impl HostFactory<SwarmHost> for SwarmHosts<'_> {
    fn sender(&mut self, number: usize, _: Option<SwarmHost>) -> SendingHost<SwarmHost> {
        let is_stranger = self.drawn.strangers.contains(&number);
        let session = if is_stranger { &self.drawn.foreign } else { &self.drawn.session };
        let run = if is_stranger { u64::MAX / 2 + number as u64 } else { self.sender_runs };
        self.sender_runs += u64::from(!is_stranger);
        let sender = session.sender(run).expect("what is drawn was tried once");
        let originals = self.drawn.originals.clone().filter(|_| !is_stranger);
        let corrupts = is_stranger.then(|| SplitMix64::new(session.seed, number as u64));
        let sender = SwarmSender::new(sender, originals.map(Pump::new), corrupts);
        let host = Either::Left(Driver::new(sender, session.runner()));
        SendingHost { host, cap: session.cap() }
    }

    fn receiver(&mut self, number: usize, earlier: Option<SwarmHost>) -> SwarmHost {
        let receiver = self.drawn.session.receiver(self.drawn.limits);
        let routing = self.drawn.routing.get(number).copied().unwrap_or(Routing::Good);
        let earlier = earlier.as_ref().and_then(Either::right);
        let runner = earlier.map_or_else(|| self.receive_runner(), |host| host.runner.restarted());
        Either::Right(Driver::new(SwarmReceiver::new(receiver, routing), runner))
    }
}
