//! The hosts of a run: the real sender and receiver, with the faults of their hosts and routers.

use super::draw::{Drawn, Routing, SentBack};
use super::forger::{self, Forger, Forgery};
use crate::bytes::{ByteRunner, Pump};
use crate::session::TSI;
use fontana_proto::report::{
    Answer, Authentic, Expected, ExpectedReceiver, NoCipher, Reporter, ReporterConfig,
    RollCallGate, Signers, unverified_call,
};
use fontana_proto::share::SiteTurn;
use fontana_proto::{
    BatchId, ChannelId, DatagramBatch, Destination, Driver, Ending, Endpoint, Finished, Instant,
    JobRunner, Output, Port, ReceiveDone, ReceiveJob, Receiver, ReceiverEvent, ReceiverPhase,
    SendDone, SendJob, Sender, SenderEvent, SiteConfig, SplitMix64, SymbolId,
};
use fontana_sim::{
    Delivery, Either, HostConfig, HostFactory, IdRunner, NodeId, RateCap, Scenario, SendingHost,
    SimulatedRunner,
};
use fontana_wire::{
    Hash, InstanceId, ReceiverId, ReceiverLabel, ReceiverState, RollCall, SecretKey,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A host.
pub(crate) type SwarmHost = Either<SenderHost, ReceiverHost>;
/// A host that sends.
pub(crate) type SenderHost = Driver<SwarmSender, SendRunner>;
/// A host that receives.
pub(crate) type ReceiverHost = Driver<SwarmReceiver, SwarmRunner>;

/// A sender, with the number of symbols that its driver holds.
#[derive(Debug)]
pub(crate) struct SwarmSender {
    pub(crate) sender: Box<Sender>,
    /// Number of symbols of each batch that is prepared and not released.
    batches: BTreeMap<BatchId, u64>,
    held: u64,
    /// Most symbols that were held at a time.
    pub(super) most_held: u64,
    /// Writes the bytes of symbols; `None` in runs on ids.
    pump: Option<Pump>,
    /// Random numbers with which a stranger corrupts its packets; `None` for other senders.
    corrupts: Option<SplitMix64>,
    /// The stranger in whose place this is: it sends nothing else.
    forger: Option<Box<Forger>>,
}

impl SwarmSender {
    /// A sender that is no stranger, on ids.
    pub(crate) fn of(sender: Sender) -> Self {
        Self::new(sender, None, None)
    }

    fn new(sender: Sender, pump: Option<Pump>, corrupts: Option<SplitMix64>) -> Self {
        let (sender, batches) = (Box::new(sender), BTreeMap::new());
        Self { sender, batches, held: 0, most_held: 0, pump, corrupts, forger: None }
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
        for (datagram, payload) in batch.iter() {
            let forged = forger::unwrap(datagram, payload, Port::Feedback);
            let datagram = forged.as_ref().unwrap_or(datagram);
            self.sender.handle_datagrams(now, &DatagramBatch::one(batch.slab, datagram));
        }
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
        if let Some(forger) = &mut self.forger {
            let to = forger.poll(now, header)?;
            return Some(Output::Transmit { to, symbol: None });
        }
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
        match &self.forger {
            Some(forger) => forger.poll_timeout(),
            None => self.sender.poll_timeout(),
        }
    }
}

/// Runs a sender's jobs on ids. It has the key of the publisher.
#[derive(Clone, Debug)]
pub(crate) struct SendRunner {
    ids: IdRunner,
    /// The receivers that sign.
    signers: Arc<Signers>,
}

impl SendRunner {
    /// A runner where no receiver signs.
    pub(crate) fn of(ids: IdRunner) -> Self {
        Self { ids, signers: Arc::default() }
    }
}

impl JobRunner<SendJob> for SendRunner {
    type Done = SendDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: SendJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, &'static str> {
        let done = match job {
            SendJob::Sign(call) => {
                let issued_unix_ms = ISSUED_UNIX_MS + now.as_nanos() / 1_000_000;
                let call = RollCall { issued_unix_ms, ..*call };
                SendDone::Signed(call.emit(&publisher()))
            }
            SendJob::Open { from, datagram } => {
                let answer = Authentic::open_plain(&datagram, from, &self.signers);
                SendDone::Opened(answer.map(Box::new))
            }
            job => return self.ids.run(now, job, batch),
        };
        Ok(Some(Finished::now(done)))
    }
}

impl SimulatedRunner for SendRunner {
    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        self.ids.symbol_bytes(symbol)
    }
}

/// When the runs begin. Receivers do not compare it with their clocks.
const ISSUED_UNIX_MS: u64 = 1_800_000_000_000;

/// The key of a receiver that signs.
fn key(number: usize) -> SecretKey {
    let mut seed = [9; 32];
    seed[0] = number as u8;
    SecretKey::from_seed(&seed)
}

/// The key that signs what senders announce.
pub(crate) fn publisher() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

/// A receiver behind its router.
#[derive(Debug)]
pub(crate) struct SwarmReceiver {
    pub(crate) receiver: Box<Receiver>,
    /// The content that it accepted.
    manifest: Option<Hash>,
    routing: Routing,
    received: u32,
    /// Whether each channel is joined.
    joined: Box<[bool; 256]>,
    /// In reports; `None` if it does not report.
    pub(super) id: Option<ReceiverId>,
    /// Symbols for its site after which it leaves for good; `None`: it stays.
    deserts: Option<u32>,
}

impl SwarmReceiver {
    /// A receiver behind a router without faults.
    pub(crate) fn of(receiver: Receiver) -> Self {
        Self::new(receiver, Routing::Good)
    }

    fn new(receiver: Receiver, routing: Routing) -> Self {
        let receiver = Box::new(receiver);
        let joined = Box::new([false; 256]);
        Self { receiver, manifest: None, routing, received: 0, joined, id: None, deserts: None }
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

    /// Whether it has left for good.
    fn has_gone(&self) -> bool {
        self.deserts == Some(0)
    }

    /// Leaves the next channel.
    fn leave(&mut self) -> Option<Output<ReceiveJob, ReceiverEvent>> {
        let channel = self.joined.iter().position(|&joined| joined)?;
        self.joined[channel] = false;
        Some(Output::Leave(ChannelId(channel as u8)))
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
        for (datagram, payload) in batch.iter() {
            let forged = forger::unwrap(datagram, payload, Port::Site);
            let datagram = forged.as_ref().unwrap_or(datagram);
            if self.passes(datagram.port) && !self.has_gone() {
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
            if self.has_gone() {
                return self.leave();
            }
            let Some(output) = self.receiver.poll_output(now, header) else {
                let is_over = self.receiver.phase(now) == ReceiverPhase::Over;
                let leaves = is_over && std::mem::take(&mut self.joined[0]);
                return leaves.then_some(Output::Leave(ChannelId::BASE));
            };
            match output {
                Output::Event(ReceiverEvent::Accepted { hash, .. }) => {
                    self.manifest = Some(hash);
                    return Some(output);
                }
                Output::Event(ReceiverEvent::Complete) => {
                    if let Some(manifest) = self.manifest {
                        let state = ReceiverState::Complete { manifest };
                        self.receiver.end(now, Ending { state, shares: true, latest: None });
                    }
                    return Some(output);
                }
                Output::Transmit { to: Destination::Site, symbol: Some(_) } => {
                    self.deserts = self.deserts.map(|left| left.saturating_sub(1));
                    return Some(output);
                }
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
        self.receiver.poll_timeout().filter(|_| !self.has_gone())
    }
}

/// Runs a receiver's jobs, on ids or on bytes.
#[derive(Debug)]
pub(crate) struct SwarmRunner {
    disk: Disk,
    /// Which roll calls are obeyed. Their time is not looked at.
    gate: RollCallGate,
    /// Signs reports; `None` if no key does.
    key: Option<SecretKey>,
    /// Old roll calls arrive beside the present ones.
    replays: bool,
}

#[derive(Clone, Debug)]
enum Disk {
    Ids(Box<IdRunner>),
    Bytes(Box<ByteRunner>),
}

impl SwarmRunner {
    /// On ids.
    pub(crate) fn of(runner: IdRunner) -> Self {
        Self::new(Disk::Ids(Box::new(runner)))
    }

    fn new(disk: Disk) -> Self {
        let gate = RollCallGate::new(publisher().public_key(), TSI);
        Self { disk, gate, key: None, replays: false }
    }

    fn restarted(&self) -> Self {
        Self::new(match &self.disk {
            Disk::Ids(runner) => Disk::Ids(Box::new(runner.restarted())),
            Disk::Bytes(runner) => Disk::Bytes(Box::new(runner.restarted())),
        })
    }

    /// Checks the roll calls of four ended runs, which are sent again, and then this one.
    fn check_call(&mut self, now: Instant, symbol: &[u8]) -> ReceiveDone {
        if self.replays
            && let Ok(call) = unverified_call(symbol)
        {
            for run in 1..=4 {
                let instance = InstanceId([run; 16]);
                let issued_unix_ms = ISSUED_UNIX_MS - 60_000 * u64::from(run);
                let old = RollCall { instance, issued_unix_ms, ..(*call).clone() };
                let _ = self.gate.check(now, None, &old.emit(&publisher()));
            }
        }
        ReceiveDone::Called(self.gate.check(now, None, symbol).map(Box::new))
    }

    /// Whether the disk has every byte of the content; true in runs on ids.
    pub(super) fn has_everything(&self) -> bool {
        match &self.disk {
            Disk::Ids(_) => true,
            Disk::Bytes(runner) => runner.has_everything(),
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
        match (&job, &self.key) {
            (ReceiveJob::CheckCall(symbol), _) => {
                return Ok(Some(Finished::now(self.check_call(now, symbol))));
            }
            (ReceiveJob::Seal(answer), Some(key)) => {
                let Answer { instance, counter, to, feedback, .. } = &**answer;
                let datagram = feedback.emit(*instance, *counter, Some(key), None::<&NoCipher>);
                return Ok(Some(Finished::now(ReceiveDone::Sealed { to: *to, datagram })));
            }
            _ => {}
        }
        match &mut self.disk {
            Disk::Ids(runner) => runner.run(now, job, batch),
            Disk::Bytes(runner) => runner.run(now, job, batch),
        }
    }
}

impl SimulatedRunner for SwarmRunner {
    fn begin_delivery(&mut self, delivery: &Delivery<'_>) {
        match &mut self.disk {
            Disk::Ids(runner) => runner.begin_delivery(delivery),
            Disk::Bytes(runner) => runner.begin_delivery(delivery),
        }
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        match &self.disk {
            Disk::Ids(runner) => runner.symbol_bytes(symbol),
            Disk::Bytes(runner) => runner.symbol_bytes(symbol),
        }
    }

    fn write_symbol(&self, symbol: &SymbolId, header: &mut Vec<u8>) {
        match &self.disk {
            Disk::Ids(runner) => runner.write_symbol(symbol, header),
            Disk::Bytes(runner) => runner.write_symbol(symbol, header),
        }
    }
}

/// What a receiver may send, which is more than any does: the product's limits are tested
/// elsewhere.
const RECEIVER_CAP: RateCap =
    RateCap { bytes_per_second: 4_000_000, max_packet_bytes: 2_000, peak_window: Duration::ZERO };
/// What a stranger may send: a message to each receiver at once.
const FORGER_CAP: RateCap = RateCap { bytes_per_second: 100_000_000, ..RECEIVER_CAP };
/// Bytes per second of symbols that a receiver sends to its site.
pub(super) const SITE_RATE: u64 = 100_000;
/// How long a complete receiver stays, and where the senders leave.
const STAYS: Duration = Duration::from_secs(10);
const STAYS_ALONE: Duration = Duration::from_secs(1_200);

/// Creates the hosts of a run.
#[derive(Debug)]
pub(super) struct SwarmHosts<'a> {
    drawn: &'a Drawn,
    scenario: &'a Scenario,
    /// Number of the next run of a sender. Each run has its own.
    sender_runs: u64,
    /// Runs of receivers so far.
    receiver_runs: u32,
}

impl<'a> SwarmHosts<'a> {
    pub(super) fn new(drawn: &'a Drawn, scenario: &'a Scenario) -> Self {
        Self { drawn, scenario, sender_runs: 0, receiver_runs: 0 }
    }

    /// The receivers, and one that never comes: the session has no end.
    fn expected(&self) -> Expected {
        let receivers = self.scenario.receivers.len() + 1;
        let named = |number| ExpectedReceiver {
            label: forger::label(number),
            key: Some(key(number).public_key()),
        };
        match self.drawn.sent_back.signs {
            true => Expected::Named((0..receivers).map(named).collect()),
            false => Expected::Count(receivers as u32),
        }
    }

    fn forger(&self, number: usize, forgery: Forgery) -> SendingHost<SwarmHost> {
        let Drawn { session, foreign, sent_back, .. } = self.drawn;
        let SentBack { shares, reports, signs, .. } = *sent_back;
        let sender = foreign.sender(u64::MAX / 2 + number as u64).expect("it was tried once");
        let collector = self.scenario.senders.first().filter(|_| reports);
        let collector = collector.map(|node| session.collector(node.address()));
        let scene = (session, self.scenario);
        let begins = self.drawn.leaves_at.unwrap_or(Instant::ZERO);
        let forger = Forger::new(scene, begins, forgery, number, (shares, collector, signs));
        let sender =
            SwarmSender { forger: Some(Box::new(forger)), ..SwarmSender::new(sender, None, None) };
        let host = Either::Left(Driver::new(sender, SendRunner::of(foreign.runner())));
        SendingHost { host, cap: FORGER_CAP }
    }

    fn receive_runner(&self, number: usize) -> SwarmRunner {
        let Drawn { session, originals, has, .. } = self.drawn;
        SwarmRunner::new(match (originals, has.get(number)) {
            (Some(originals), _) => Disk::Bytes(Box::new(ByteRunner::new(Arc::clone(originals)))),
            (None, Some(saved)) => {
                Disk::Ids(Box::new(session.runner_holding(&saved.blocks, &saved.parts)))
            }
            (None, None) => Disk::Ids(Box::new(session.runner())),
        })
    }
}

impl HostFactory<SwarmHost> for SwarmHosts<'_> {
    fn sender(&mut self, number: usize, _: Option<SwarmHost>) -> SendingHost<SwarmHost> {
        if let Some(&forgery) = self.drawn.forgers.get(&number) {
            return self.forger(number, forgery);
        }
        let is_stranger = self.drawn.strangers.contains(&number);
        let session = if is_stranger { &self.drawn.foreign } else { &self.drawn.session };
        let run = if is_stranger { u64::MAX / 2 + number as u64 } else { self.sender_runs };
        self.sender_runs += u64::from(!is_stranger);
        let mut sender = session.sender(run).expect("what is drawn was tried once");
        if self.drawn.sent_back.reports
            && number == 0
            && let Some(node) = self.scenario.senders.first()
            && let SentBack { follows, rests, .. } = self.drawn.sent_back
            && let Some(collection) =
                session.collection((run, node.address()), self.expected(), (follows, rests))
        {
            sender = sender.with_collection(collection, Instant::ZERO);
        }
        let originals = self.drawn.originals.clone().filter(|_| !is_stranger);
        let corrupts = is_stranger.then(|| SplitMix64::new(session.seed, number as u64));
        let sender = SwarmSender::new(sender, originals.map(Pump::new), corrupts);
        let signers = Arc::new(Signers::new(&self.expected()));
        let runner = SendRunner { signers, ..SendRunner::of(session.runner()) };
        let host = Either::Left(Driver::new(sender, runner));
        SendingHost { host, cap: session.cap() }
    }

    fn receiver(&mut self, number: usize, earlier: Option<SwarmHost>) -> SwarmHost {
        let mut receiver = self.drawn.session.receiver(self.drawn.limits);
        self.receiver_runs += 1;
        let (run, seed) = (self.receiver_runs, self.scenario.seed);
        if self.drawn.sent_back.reports {
            let id = forger::receiver_id(seed, run);
            let label = match self.drawn.sent_back.signs {
                true => forger::label(number),
                false => ReceiverLabel::default(),
            };
            let config = ReporterConfig::new(id, label, seed ^ u64::from(run));
            let reports_rate = self.drawn.sent_back.follows;
            let started_unix_ms = ISSUED_UNIX_MS + u64::from(run);
            receiver = receiver.with_reports(Reporter::new(ReporterConfig {
                reports_rate,
                started_unix_ms,
                ..config
            }));
        }
        if self.drawn.sent_back.shares {
            let seed = seed ^ u64::from(run);
            let stays = if self.drawn.leaves_at.is_some() { STAYS_ALONE } else { STAYS };
            let (turn, stays_beside_sender) = match self.scenario.seed % 3 {
                0 => (SiteTurn::BeforeSender, stays),
                1 => (SiteTurn::BesideSession, stays),
                // What a member has that has left is not the site's.
                _ if self.drawn.leaves_at.is_some() => (SiteTurn::AfterSender, stays),
                _ => (SiteTurn::AfterSender, Duration::ZERO),
            };
            let config = SiteConfig {
                seed,
                member: run,
                bytes_per_second: SITE_RATE,
                stays,
                stays_beside_sender,
                turn,
            };
            receiver = receiver.with_site(config);
        }
        let routing = self.drawn.routing.get(number).copied().unwrap_or(Routing::Good);
        let earlier = earlier.as_ref().and_then(Either::right);
        let runner =
            earlier.map_or_else(|| self.receive_runner(number), |host| host.runner.restarted());
        let SentBack { reports, signs, replays, .. } = self.drawn.sent_back;
        let runner = SwarmRunner { key: signs.then(|| key(number)), replays, ..runner };
        let receiver = SwarmReceiver {
            id: reports.then(|| forger::receiver_id(seed, run)),
            deserts: self.drawn.deserts.get(number).copied().flatten(),
            ..SwarmReceiver::new(receiver, routing)
        };
        Either::Right(Driver::new(receiver, runner))
    }

    fn place(&self, number: usize, listening: HostConfig) -> HostConfig {
        let SentBack { shares, reports, .. } = self.drawn.sent_back;
        if !shares && !reports {
            return listening;
        }
        let config = HostConfig { sends: Some(RECEIVER_CAP), ..listening };
        let others = self.scenario.receivers.iter().enumerate().filter(|&(at, _)| at != number);
        let site: Vec<NodeId> = others.map(|(_, receiver)| receiver.node).collect();
        if shares { config.in_site(site) } else { config }
    }
}
