//! Who plays in a run: the real sender and receiver, and what a driver or a network adds to them.

use super::draw::Drawn;
use crate::bytes::{ByteJobs, Pump};
use fontana_proto::{
    BatchId, ChannelId, Datagram, Done, Endpoint, Instant, Job, Output, Receiver, Sender,
    SplitMix64, SymbolId,
};
use fontana_sim::{Cast, HeardBytes, IdJobs, Jobs, Outcome, RateCap};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A host.
#[derive(Debug)]
pub(super) enum Player {
    Sender(Box<Voice>),
    Receiver(Box<Ear>),
}

/// A sender, and what its driver holds for it.
#[derive(Debug)]
pub(super) struct Voice {
    sender: Sender,
    /// Symbols of each batch that is prepared, and not released.
    batches: BTreeMap<BatchId, u64>,
    held: u64,
    /// Most symbols that were held at a time.
    pub(super) most_held: u64,
    /// Writes the bytes of symbols, if there are any.
    pump: Option<Pump>,
    /// A stranger: spoils what it sends.
    spoils: Option<SplitMix64>,
}

impl Voice {
    fn new(sender: Sender, pump: Option<Pump>, spoils: Option<SplitMix64>) -> Self {
        Self { sender, batches: BTreeMap::new(), held: 0, most_held: 0, pump, spoils }
    }

    pub(super) fn is_stranger(&self) -> bool {
        self.spoils.is_some()
    }

    fn note(&mut self, job: &Job) {
        match job {
            Job::Prepare { batch, esis, .. } => {
                self.held += esis.len() as u64;
                self.batches.insert(*batch, esis.len() as u64);
                self.most_held = self.most_held.max(self.held);
            }
            Job::Release { batch } => self.held -= self.batches.remove(batch).unwrap_or(0),
            _ => {}
        }
    }
}

/// Cuts a header short, flips a bit of it, or fills it with noise; or leaves it.
fn spoil(header: &mut Vec<u8>, random: &mut SplitMix64) {
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

impl Endpoint for Voice {
    fn handle_datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        self.sender.handle_datagram(now, datagram);
    }

    fn handle_done(&mut self, now: Instant, done: Done) {
        self.sender.handle_done(now, done);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<Output> {
        match self.sender.poll_output(now, header)? {
            Output::Transmit { to, mut symbol } => {
                if let (Some(pump), Some(id)) = (&mut self.pump, &symbol) {
                    pump.write(id, header);
                    symbol = None;
                }
                if let Some(random) = &mut self.spoils {
                    spoil(header, random);
                }
                Some(Output::Transmit { to, symbol })
            }
            output => {
                if let Output::Job(job) = &output {
                    self.note(job);
                }
                Some(output)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.sender.poll_timeout()
    }
}

/// What is wrong with the multicast routing of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routing {
    Good,
    /// Joins of channels above this one have no effect.
    IgnoresJoinsAbove(u8),
    /// Of the channels that are joined, packets come on the highest only, after so many packets.
    TopOnly {
        after: u32,
    },
}

/// A receiver, behind its router.
#[derive(Debug)]
pub(super) struct Ear {
    pub(super) receiver: Receiver,
    routing: Routing,
    heard: u32,
    /// Highest channel that is joined.
    joined: [bool; 256],
}

impl Ear {
    fn new(receiver: Receiver, routing: Routing) -> Self {
        Self { receiver, routing, heard: 0, joined: [false; 256] }
    }

    fn passes(&mut self, ChannelId(channel): ChannelId) -> bool {
        self.heard = self.heard.saturating_add(1);
        match self.routing {
            Routing::TopOnly { after } if self.heard > after => {
                !self.joined.iter().skip(usize::from(channel) + 1).any(|&joined| joined)
            }
            _ => true,
        }
    }

    fn is_ignored(&self, ChannelId(channel): ChannelId) -> bool {
        matches!(self.routing, Routing::IgnoresJoinsAbove(limit) if channel > limit)
    }
}

impl Endpoint for Ear {
    fn handle_datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        if self.passes(datagram.channel) {
            self.receiver.handle_datagram(now, datagram);
        }
    }

    fn handle_done(&mut self, now: Instant, done: Done) {
        self.receiver.handle_done(now, done);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
    }

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<Output> {
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

impl Player {
    fn endpoint(&mut self) -> &mut dyn Endpoint {
        match self {
            Self::Sender(voice) => voice.as_mut(),
            Self::Receiver(ear) => ear.as_mut(),
        }
    }

    pub(super) fn sender(&self) -> Option<&Voice> {
        match self {
            Self::Sender(voice) => Some(voice),
            Self::Receiver(_) => None,
        }
    }

    pub(super) fn receiver(&self) -> Option<&Receiver> {
        match self {
            Self::Sender(_) => None,
            Self::Receiver(ear) => Some(&ear.receiver),
        }
    }
}

impl Endpoint for Player {
    fn handle_datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        self.endpoint().handle_datagram(now, datagram);
    }

    fn handle_done(&mut self, now: Instant, done: Done) {
        self.endpoint().handle_done(now, done);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint().handle_timeout(now);
    }

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<Output> {
        self.endpoint().poll_output(now, header)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Sender(voice) => voice.poll_timeout(),
            Self::Receiver(ear) => ear.poll_timeout(),
        }
    }
}

/// Who does a host's jobs: on ids or on bytes.
#[derive(Debug)]
pub(super) enum Hands {
    Ids(Box<IdJobs>),
    Bytes(Box<ByteJobs>),
}

impl Hands {
    fn next_life(&self) -> Self {
        match self {
            Self::Ids(jobs) => Self::Ids(Box::new(jobs.next_life())),
            Self::Bytes(jobs) => Self::Bytes(Box::new(jobs.next_life())),
        }
    }

    /// Whether the disk has every byte, as far as there are bytes.
    pub(super) fn has_everything(&self) -> bool {
        match self {
            Self::Ids(_) => true,
            Self::Bytes(jobs) => jobs.has_everything(),
        }
    }
}

impl Jobs for Hands {
    fn carry_out(
        &mut self,
        now: Instant,
        job: Job,
        heard: HeardBytes<'_>,
    ) -> Result<Option<Outcome>, &'static str> {
        match self {
            Self::Ids(jobs) => jobs.carry_out(now, job, heard),
            Self::Bytes(jobs) => jobs.carry_out(now, job, heard),
        }
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        match self {
            Self::Ids(jobs) => jobs.symbol_bytes(symbol),
            Self::Bytes(jobs) => jobs.symbol_bytes(symbol),
        }
    }
}

/// Puts the players on their places.
#[derive(Debug)]
pub(super) struct Troupe<'a> {
    drawn: &'a Drawn,
    /// Every life of a sender is another one.
    lives: u64,
}

impl<'a> Troupe<'a> {
    pub(super) fn new(drawn: &'a Drawn) -> Self {
        Self { drawn, lives: 0 }
    }

    fn receiver_jobs(&self) -> Hands {
        match &self.drawn.originals {
            Some(originals) => Hands::Bytes(Box::new(ByteJobs::new(Arc::clone(originals)))),
            None => Hands::Ids(Box::new(self.drawn.session.jobs())),
        }
    }
}

impl Cast<Player, Hands> for Troupe<'_> {
    fn sender(&mut self, number: usize, _: Option<(Player, Hands)>) -> (Player, Hands, RateCap) {
        let is_stranger = self.drawn.strangers.contains(&number);
        let session = if is_stranger { &self.drawn.foreign } else { &self.drawn.session };
        let life = if is_stranger { u64::MAX / 2 + number as u64 } else { self.lives };
        self.lives += u64::from(!is_stranger);
        let sender = session.sender(life).expect("what is drawn was tried once");
        let originals = self.drawn.originals.clone().filter(|_| !is_stranger);
        let spoils = is_stranger.then(|| SplitMix64::new(session.seed, number as u64));
        let voice = Voice::new(sender, originals.map(Pump::new), spoils);
        let jobs = Hands::Ids(Box::new(session.jobs()));
        (Player::Sender(Box::new(voice)), jobs, session.cap())
    }

    fn receiver(&mut self, number: usize, earlier: Option<(Player, Hands)>) -> (Player, Hands) {
        let receiver = self.drawn.session.receiver(self.drawn.limits);
        let routing = self.drawn.routing.get(number).copied().unwrap_or(Routing::Good);
        let jobs = earlier.map_or_else(|| self.receiver_jobs(), |(_, jobs)| jobs.next_life());
        (Player::Receiver(Box::new(Ear::new(receiver, routing))), jobs)
    }
}
