//! Strangers who send to the receivers of a site and to the collector of a session, in any name.

use crate::session::Session;
use fontana_proto::report::NoCipher;
use fontana_proto::{BlockId, Datagram, Destination, Instant, Port, SplitMix64};
use fontana_sim::{NodeId, Scenario};
use fontana_wire::{
    BlockNeed, Feedback, Hash, InstanceId, MissingSymbols, ReceiverId, ReceiverLabel,
    ReceiverReport, ReceiverState, RepairRequest, RollCallEcho, SealId, ShareBody, ShareMessage,
    ShareRequest, ShareSymbol, SharedBlock, manifest_hash,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What a stranger sends to the members of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forged {
    /// Symbols of noise that say that their sender has the block, and answer any member.
    Claims,
    /// Symbols of noise, with numbers at the ends of what there is, and others.
    Symbols,
    /// Requests for everything, as of members that have nothing.
    Requests,
    /// Requests that name one symbol, as of the member that lacks least.
    Least,
    /// Symbols that are too short to be taken, as of a member that has the block.
    Short,
    /// All of these.
    All,
}

/// The addresses that its messages seem to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Its own.
    Own,
    /// Its own, and those of 40 hosts that do not exist.
    Invented,
    /// Those of receivers, too.
    OfReceivers,
}

/// What a stranger does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forgery {
    pub(super) forged: Forged,
    pub(super) names: Names,
    /// Messages in a second.
    pub(super) per_second: u32,
}

/// How long after the last fault a stranger sends noise, and in the names of receivers: a block
/// without redundancy is corrupt for as long as symbols are forged.
const LIES: Duration = Duration::from_secs(10);

/// A stranger who sends to receivers of a site and to the collector of a sender.
#[derive(Debug)]
pub(super) struct Forger {
    random: SplitMix64,
    forgery: Forgery,
    due: Instant,
    /// Until when it sends noise, and in the names of receivers.
    lies_until: Instant,
    /// Whether it does so now.
    is_lying: bool,
    manifest: Hash,
    seed: u64,
    blocks: Vec<(BlockId, u32)>,
    symbol_bytes: usize,
    members: Vec<NodeId>,
    /// The members of a site, to whom the message goes next.
    left: usize,
    /// The block of the next message to the members.
    next_block: usize,
    shares: bool,
    /// Where reports go; `None` if no sender collects any.
    collector: Option<SocketAddr>,
    /// Receivers are expected by name, and sign.
    signs: bool,
    message: Vec<u8>,
}

/// The first bytes of a message whose source address follows: hosts of the simulator send in their
/// own name.
const IN_NAME_OF: [u8; 8] = *b"\xFFin name";
const ENVELOPE: usize = IN_NAME_OF.len() + 4;

/// The message of a datagram that a [`Forger`] has sent, as it seems to come from another host.
/// `port`: where receivers get such messages.
pub(super) fn unwrap(datagram: &Datagram, payload: &[u8], port: Port) -> Option<Datagram> {
    let rest = payload.strip_prefix(&IN_NAME_OF)?;
    let &address = rest.first_chunk::<4>()?;
    let from = SocketAddr::new(IpAddr::from(address), datagram.from.port());
    let start = datagram.payload.start + ENVELOPE as u32;
    Some(Datagram { from, port, payload: start..datagram.payload.end, ..datagram.clone() })
}

/// The id of a receiver's run.
pub(super) fn receiver_id(seed: u64, run: u32) -> ReceiverId {
    let drawn = SplitMix64::new(seed, (1 << 32) + u64::from(run)).next_u64();
    ReceiverId((u128::from(drawn) << 64 | u128::from(run)).to_be_bytes())
}

/// The name of a receiver, where receivers are expected by name.
pub(super) fn label(number: usize) -> ReceiverLabel {
    format!("receiver-{number}").parse().unwrap_or_default()
}

impl Forger {
    pub(super) fn new(
        (session, scenario): (&Session, &Scenario),
        begins: Instant,
        forgery: Forgery,
        number: usize,
        (shares, collector, signs): (bool, Option<SocketAddr>, bool),
    ) -> Self {
        Self {
            random: SplitMix64::new(scenario.seed, (2 << 32) + number as u64),
            forgery,
            due: begins,
            lies_until: scenario.calm_at() + LIES,
            is_lying: true,
            manifest: manifest_hash(&session.manifest.emit()),
            seed: scenario.seed,
            blocks: session.blocks(),
            symbol_bytes: session.symbol_bytes().into(),
            members: scenario.receivers.iter().map(|receiver| receiver.node).collect(),
            left: 0,
            next_block: 0,
            shares,
            collector,
            signs,
            message: Vec::new(),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.blocks.is_empty()).then_some(self.due)
    }

    /// The next datagram, and where it goes.
    pub(super) fn poll(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<Destination> {
        if self.left == 0 {
            if now < self.due || self.blocks.is_empty() {
                return None;
            }
            self.is_lying = now < self.lies_until;
            let interval = Duration::from_secs(1) / self.forgery.per_second.max(1);
            // A clock that jumps makes up for nothing.
            self.due = (self.due + interval).max(now);
            let collector = self.collector;
            if let Some(collector) = collector.filter(|_| !self.shares || self.one_in(4)) {
                let bytes = self.answer();
                self.wrap(&bytes);
                header.extend_from_slice(&self.message);
                return Some(Destination::Sender(collector));
            }
            if !self.shares {
                return None;
            }
            let bytes = self.share();
            self.wrap(&bytes);
            self.left = self.members.len();
        }
        self.left -= 1;
        let to = self.members.get(self.left)?;
        header.extend_from_slice(&self.message);
        Some(Destination::Peer(SocketAddr::new(to.address(), 0)))
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.random.below(count) == 0
    }

    fn word(&mut self) -> u32 {
        self.random.next_u64() as u32
    }

    /// Puts a message into the name of a host.
    fn wrap(&mut self, bytes: &[u8]) {
        let invented = |host: u32| IpAddr::V4(Ipv4Addr::from(0x0AFF_0000 + host));
        let kind = match self.forgery.names {
            _ if !self.is_lying => 0,
            Names::Own => 0,
            Names::Invented => self.below(2),
            Names::OfReceivers => self.below(3),
        };
        let at = self.below(self.members.len() as u32) as usize;
        let from = match (kind, self.members.get(at)) {
            (0, _) => invented(200),
            (2, Some(member)) => member.address(),
            _ => invented(self.random.below(40)),
        };
        self.message.clear();
        self.message.extend_from_slice(&IN_NAME_OF);
        if let IpAddr::V4(v4) = from {
            self.message.extend_from_slice(&v4.octets());
        }
        self.message.extend_from_slice(bytes);
    }

    /// A message to the members of a site.
    fn share(&mut self) -> Vec<u8> {
        // Block after block: each is hit at regular intervals.
        self.next_block = (self.next_block + 1) % self.blocks.len().max(1);
        let Some(&(block, k)) = self.blocks.get(self.next_block) else { return Vec::new() };
        let block = SharedBlock { toi: block.toi.0 as u32, sbn: block.sbn.0 };
        let forged = match self.forgery.forged {
            Forged::All => match self.below(5) {
                0 => Forged::Claims,
                1 => Forged::Symbols,
                2 => Forged::Requests,
                3 => Forged::Short,
                _ => Forged::Least,
            },
            forged => forged,
        };
        let forged = match forged {
            Forged::Claims | Forged::Symbols if !self.is_lying => Forged::Short,
            forged => forged,
        };
        let noise: Vec<u8> =
            (0..self.symbol_bytes).map(|_| self.random.next_u64() as u8 | 1).collect();
        let [clock_us, round_trip_us, read_us] = [(); 3].map(|()| self.word());
        let [to, member] = [(); 2].map(|()| 1 + self.below(2 * self.members.len() as u32));
        let request = |lacking, missing| {
            let request = ShareRequest { clock_us, round_trip_us, read_us, lacking, missing };
            ShareBody::Request(request)
        };
        let body = match forged {
            Forged::Claims | Forged::Short | Forged::All => {
                let (esi, length) =
                    (self.below(2 * k), if forged == Forged::Short { 1 } else { noise.len() });
                let bytes = noise.get(..length).unwrap_or_default();
                ShareBody::Symbol(ShareSymbol {
                    has_block: true,
                    to,
                    echo_us: clock_us,
                    esi,
                    bytes,
                })
            }
            Forged::Symbols => {
                let ends = [k - 1, k, (1 << 24) - 1, 1 << 24, u32::MAX - 1, u32::MAX];
                let esi = match self.below(3) {
                    0 => ends.get(self.random.below(6) as usize).copied().unwrap_or(k),
                    _ => self.below(2 * k),
                };
                let (has_block, echo_us) = (self.one_in(2), clock_us);
                ShareBody::Symbol(ShareSymbol { has_block, to, echo_us, esi, bytes: &noise })
            }
            Forged::Requests => {
                let missing = self.one_in(2).then(|| MissingSymbols::of(0..k)).flatten();
                request(u32::MAX, missing)
            }
            Forged::Least => request(1, MissingSymbols::of([self.random.below(k)])),
        };
        let mut bytes = Vec::new();
        ShareMessage { content: self.manifest.into(), member, block, body }.emit(&mut bytes);
        bytes
    }

    /// A message to the collector. Where a user trusts all receivers, it only reports that one is
    /// not complete.
    fn answer(&mut self) -> Vec<u8> {
        let runs = self.members.len() as u32 + 2;
        let receiver = match self.below(2) {
            0 => receiver_id(self.seed, 1 + self.random.below(runs)),
            _ => ReceiverId((u128::from(self.random.next_u64()) << 64).to_be_bytes()),
        };
        let echo = RollCallEcho { serial: self.below(3).into(), held_us: 0 };
        let is_request = self.one_in(3);
        let feedback = if is_request {
            let need = |&(block, _): &(BlockId, u32)| BlockNeed {
                toi: block.toi.0 as u32,
                sbn: block.sbn.0,
                symbols: 1,
            };
            Feedback::Request(RepairRequest {
                receiver,
                round: self.below(64),
                echo,
                loss_ppm: self.below(1_000_001),
                mute_us: self.word(),
                may_lack_more: self.one_in(2),
                blocks: self.blocks.iter().take(1).map(need).collect(),
                maps: Vec::new(),
            })
        } else {
            let state = match if self.signs { self.below(4) } else { 3 } {
                0 | 1 => ReceiverState::Complete { manifest: self.manifest },
                2 => ReceiverState::Failed { exit_code: 4 },
                _ => ReceiverState::Receiving,
            };
            let label = match self.signs && self.one_in(2) {
                true => label(self.random.below(runs) as usize),
                false => ReceiverLabel::default(),
            };
            Feedback::Report(ReceiverReport {
                receiver,
                label,
                started_unix_ms: 0,
                round: self.below(8),
                echo,
                state,
                permille: self.below(1_001) as u16,
                symbols_lacking: self.below(10).into(),
                loss_ppm: self.below(1_000_001),
                kernel_drops: 0,
                channels: 1,
                seconds: 1,
            })
        };
        let counter = if self.one_in(2) { u64::MAX } else { self.random.next_u64() };
        let instance = u128::from(self.seed.wrapping_add(self.random.below(4).into()));
        let instance = SealId::from(InstanceId(instance.to_le_bytes()));
        feedback.emit(instance, counter, None, None::<&NoCipher>)
    }
}
