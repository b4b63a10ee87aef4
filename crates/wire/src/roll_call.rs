//! Roll calls: what a sender repeats while it asks its receivers for [reports](crate::report).
//!
//! A roll call is the symbol of a packet with [`Toi::ROLL_CALL`], without a code:
//!
//! ```text
//! offset  bytes
//!      0      8  "FONTROL" and the format version, 1
//!      8     16  instance id of the sender
//!     24      8  TSI of the session
//!     32      8  serial number: grows by at least one
//!     40      8  time of issue, unix milliseconds
//!     48      1  family of the collector's address: 4 or 6
//!     49     16  address; 4 bytes and 12 zeros for family 4
//!     65      2  UDP port
//!     67      4  round
//!     71      4  part of the round's window that has passed, in units of 2^-32
//!     75      4  window, milliseconds
//!     79      4  number of receivers that the window is for
//!     83      4  number of receivers whose final state is known
//!     87      1  meaning of the list: 0 = known receivers, 1 = missing names
//!     88      8  salt
//!     96      2  number of fingerprints
//!     98     4n  fingerprints
//!  98+4n      1  repair round: 0 = none, 1 = receivers may request, 2 = enough have;
//!                and 4 = receivers may report their rate;
//!                and 8 = only of the objects up to one may be requested
//!             4  its number                             }
//!             4  its window, microseconds               } if there is one
//!             4  number of receivers that it is for     }
//!             1  number of blocks                       }
//!           12m  blocks in ascending order: TOI, SBN,   }
//!                symbols that are being sent            }
//!             4  TOI of the last object of which symbols may be requested, if not of all
//!             4  number of the rate round               }
//!             4  round since which the rate is the same } if receivers may
//!             4  its window, milliseconds               } report their rate
//!             4  divisor                                }
//!      .     32  public key
//!      .     64  signature
//! ```
//!
//! The signature is Ed25519 over `"fontana roll call v1"`, a zero byte, and all bytes before the
//! signature.

use crate::bytes::Reader;
use crate::head::InstanceId;
use crate::id::{Toi, Tsi};
use crate::key::{KeyError, PublicKey, SecretKey, Signature};
use crate::receiver_id::{ReceiverId, ReceiverLabel};
use crate::repair_request::{BlockNeed, RepairRequest};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const MAGIC: &[u8; 8] = b"FONTROL\x01";
/// Prefix of the signed message.
const SIGNATURE_DOMAIN: &[u8] = b"fontana roll call v1\0";
const FINGERPRINT_CONTEXT: &str = "fontana 2026-11 roll call fingerprint v1";
/// Bytes of everything but the fingerprints and the repair round.
const FIXED_BYTES: usize = 99 + PublicKey::SIZE + size_of::<Signature>();
/// Bytes of a repair round without blocks.
const REPAIR_BYTES: usize = 13;
/// Values and flags of the byte before the repair round.
const OPEN: u8 = 1;
const CLOSED: u8 = 2;
const RATE: u8 = 4;
const UP_TO: u8 = 8;
/// Offset of the TOI in a header with a CCI, a TSI and a TOI of 32 bits, which Fontana sends.
const TOI_AT: usize = 12;

/// The first 32 bits of the BLAKE3 hash of a salt and a receiver's id or label. Two roll calls
/// have different salts: two receivers have equal fingerprints in both with probability 2^-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u32);

impl Fingerprint {
    /// The fingerprint of a receiver.
    pub fn of_receiver(salt: u64, receiver: &ReceiverId) -> Self {
        Self::of(salt, 0, &receiver.0)
    }

    /// The fingerprint of a name.
    pub fn of_label(salt: u64, label: &ReceiverLabel) -> Self {
        Self::of(salt, 1, label.as_str().as_bytes())
    }

    fn of(salt: u64, kind: u8, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(FINGERPRINT_CONTEXT);
        hasher.update(&salt.to_be_bytes());
        hasher.update(&[kind]);
        hasher.update(bytes);
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        Self(u32::from_be_bytes([a, b, c, d]))
    }
}

/// Which receivers need not report again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollCallList {
    /// The final states of these receivers are known.
    Known(Vec<Fingerprint>),
    /// The final states of all expected receivers are known, except those with these names.
    Missing(Vec<Fingerprint>),
}

impl RollCallList {
    fn fingerprints(&self) -> &[Fingerprint] {
        match self {
            Self::Known(list) | Self::Missing(list) => list,
        }
    }
}

/// A round in which receivers may [request](crate::RepairRequest) what they lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairCall {
    /// The round. Everything that was requested in those before has been sent.
    pub round: u32,
    /// Longest time from the round's first roll call until a receiver requests, in microseconds.
    pub window_us: u32,
    /// Number of receivers that the window is for.
    pub receivers: u32,
    /// Enough receivers have requested: the others wait for the next round.
    pub is_closed: bool,
    /// The blocks that were requested in this round, in ascending order, and the symbols that are
    /// sent for them: a receiver that lacks no more does not ask.
    pub pending: Vec<BlockNeed>,
    /// The last object (its TOI) of which receivers may request symbols: of a stream, what follows
    /// is being sent. `None`: of all.
    pub last: Option<u32>,
}

impl RepairCall {
    /// Most blocks of [`pending`](Self::pending).
    pub const MAX_PENDING: usize = RepairRequest::MAX_BLOCKS;
    /// Bytes of [`last`](Self::last).
    pub const LAST_SIZE: usize = 4;

    /// True if what is sent covers this need.
    pub fn covers(&self, need: &BlockNeed) -> bool {
        let at = self.pending.binary_search_by_key(&(need.toi, need.sbn), |it| (it.toi, it.sbn));
        at.ok().and_then(|at| self.pending.get(at)).is_some_and(|it| it.symbols >= need.symbols)
    }
}

/// A round in which receivers may [report](crate::RateReport) how much arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateCall {
    /// The round.
    pub round: u32,
    /// The rate has not changed since the beginning of this round: receivers count from there.
    pub since: u32,
    /// Time in milliseconds after the beginning of the round in which receivers report; not 0.
    pub window_ms: u32,
    /// A receiver reports with the probability of its weight over this divisor; not 0.
    pub divisor: u32,
}

impl RateCall {
    /// Bytes of a rate round.
    pub const SIZE: usize = 16;
}

/// A request for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollCall {
    /// The run of the sender.
    pub instance: InstanceId,
    /// The session.
    pub tsi: Tsi,
    /// Serial number. A receiver ignores a roll call whose number is not above the last one.
    pub serial: u64,
    /// Time of issue in unix milliseconds. A receiver ignores an old roll call.
    pub issued_unix_ms: u64,
    /// Where reports go to.
    pub collector: SocketAddr,
    /// The round. In each, a receiver reports once, at a random time in the window.
    pub round: u32,
    /// Part of the window that has passed, in units of 2^-32.
    pub position: u32,
    /// Length of the window in milliseconds, at least 1.
    pub window_ms: u32,
    /// Number of receivers that the window is for.
    pub head_count: u32,
    /// Number of receivers whose final state is known.
    pub known: u32,
    /// Salt of the fingerprints.
    pub salt: u64,
    /// Which receivers need not report again.
    pub list: RollCallList,
    /// The repair round, if receivers may request repair.
    pub repair: Option<RepairCall>,
    /// The rate round, if receivers may report how much arrives.
    pub rate: Option<RateCall>,
}

impl RollCall {
    /// Number of fingerprints that fit into a symbol of this many bytes beside a repair round with
    /// `pending` blocks, if there is one; `None` if the rest of a roll call does not fit.
    pub fn capacity(symbol_size: u16, pending: Option<usize>) -> Option<usize> {
        let blocks = |count: usize| BlockNeed::SIZE.saturating_mul(count);
        let repair = pending.map_or(0, |count| blocks(count).saturating_add(REPAIR_BYTES));
        let room = usize::from(symbol_size).checked_sub(repair.saturating_add(FIXED_BYTES))?;
        Some(room / 4)
    }

    /// True if the final state of this receiver is known.
    pub fn lists(&self, receiver: &ReceiverId, label: &ReceiverLabel) -> bool {
        match &self.list {
            RollCallList::Known(list) => {
                !list.is_empty() && list.contains(&Fingerprint::of_receiver(self.salt, receiver))
            }
            RollCallList::Missing(list) => {
                !label.is_empty() && !list.contains(&Fingerprint::of_label(self.salt, label))
            }
        }
    }

    /// Cheap test whether a datagram may be the packet of a roll call. Fontana's senders write TSI
    /// and TOI with 32 bits each.
    #[inline]
    pub fn may_be(datagram: &[u8]) -> bool {
        let toi = (Toi::ROLL_CALL.0 as u32).to_be_bytes();
        datagram.get(TOI_AT..).is_some_and(|rest| rest.starts_with(&toi))
    }

    /// The signed bytes of this roll call.
    pub fn emit(&self, signer: &SecretKey) -> Vec<u8> {
        let fingerprints = self.list.fingerprints();
        // The number of fingerprints has 16 bits; `capacity` allows fewer.
        let fingerprints = fingerprints.get(..usize::from(u16::MAX)).unwrap_or(fingerprints);
        let mut out = Vec::with_capacity(1400);
        out.extend(MAGIC);
        out.extend(self.instance.0);
        out.extend(self.tsi.0.to_be_bytes());
        out.extend(self.serial.to_be_bytes());
        out.extend(self.issued_unix_ms.to_be_bytes());
        match self.collector.ip() {
            IpAddr::V4(address) => {
                out.push(4);
                out.extend(address.octets());
                out.extend([0; 12]);
            }
            IpAddr::V6(address) => {
                out.push(6);
                out.extend(address.octets());
            }
        }
        out.extend(self.collector.port().to_be_bytes());
        for field in [self.round, self.position, self.window_ms, self.head_count, self.known] {
            out.extend(field.to_be_bytes());
        }
        out.push(match self.list {
            RollCallList::Known(_) => 0,
            RollCallList::Missing(_) => 1,
        });
        out.extend(self.salt.to_be_bytes());
        out.extend((fingerprints.len() as u16).to_be_bytes());
        for Fingerprint(fingerprint) in fingerprints {
            out.extend(fingerprint.to_be_bytes());
        }
        let repair = match &self.repair {
            None => 0,
            Some(RepairCall { is_closed: false, .. }) => OPEN,
            Some(RepairCall { is_closed: true, .. }) => CLOSED,
        };
        let last = self.repair.as_ref().and_then(|repair| repair.last);
        let rate = if self.rate.is_some() { RATE } else { 0 };
        out.push(repair | rate | if last.is_some() { UP_TO } else { 0 });
        if let Some(repair) = &self.repair {
            out.extend(repair.round.to_be_bytes());
            out.extend(repair.window_us.to_be_bytes());
            out.extend(repair.receivers.to_be_bytes());
            let pending = &repair.pending;
            BlockNeed::emit_list(
                pending.get(..RepairCall::MAX_PENDING).unwrap_or(pending),
                &mut out,
            );
            out.extend(last.into_iter().flat_map(u32::to_be_bytes));
        }
        if let Some(RateCall { round, since, window_ms, divisor }) = self.rate {
            for field in [round, since, window_ms, divisor] {
                out.extend(field.to_be_bytes());
            }
        }
        out.extend(signer.public_key().to_bytes());
        let signature = signer.sign(&[SIGNATURE_DOMAIN, &out].concat());
        out.extend(signature);
        out
    }
}

/// A roll call of which nothing is authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedRollCall {
    roll_call: RollCall,
    signer: PublicKey,
    signature: Signature,
    message: Vec<u8>,
}

impl UnverifiedRollCall {
    /// Reads the symbol of a packet.
    ///
    /// # Errors
    /// [`RollCallError`] if the bytes are not a roll call. Every roll call has one encoding.
    pub fn parse(symbol: &[u8]) -> Result<Self, RollCallError> {
        let truncated = RollCallError::Truncated { actual: symbol.len() };
        let mut reader = Reader::new(symbol);
        if reader.take(MAGIC.len()).ok_or(truncated)? != MAGIC {
            return Err(RollCallError::Magic);
        }
        let roll_call = parse_fields(&mut reader).ok_or(truncated)??;
        let signer = PublicKey::from_bytes(&reader.array().ok_or(truncated)?)?;
        let length = symbol.len().saturating_sub(reader.rest().len());
        let message = [SIGNATURE_DOMAIN, symbol.get(..length).ok_or(truncated)?].concat();
        let signature = reader.array().ok_or(truncated)?;
        if !reader.is_empty() {
            return Err(RollCallError::TrailingBytes { count: reader.rest().len() });
        }
        Ok(Self { roll_call, signer, signature, message })
    }

    /// The roll call as it claims to be. A receiver compares serial number and time before it
    /// spends 50 microseconds on the signature.
    pub fn claimed(&self) -> &RollCall {
        &self.roll_call
    }

    /// The roll call, if `publisher` has signed it.
    ///
    /// # Errors
    /// [`RollCallError::OtherSigner`], [`RollCallError::Signature`].
    pub fn verify(self, publisher: &PublicKey) -> Result<RollCall, RollCallError> {
        if self.signer != *publisher {
            return Err(RollCallError::OtherSigner);
        }
        if !publisher.verifies(&self.message, &self.signature) {
            return Err(RollCallError::Signature);
        }
        Ok(self.roll_call)
    }
}

/// `None` if the bytes end too early.
fn parse_fields(reader: &mut Reader<'_>) -> Option<Result<RollCall, RollCallError>> {
    let instance = InstanceId(reader.array()?);
    let tsi = Tsi(reader.u64()?);
    let (serial, issued_unix_ms) = (reader.u64()?, reader.u64()?);
    let family = reader.u8()?;
    let address: [u8; 16] = reader.array()?;
    let port = reader.u16()?;
    let (round, position, window_ms) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let (head_count, known) = (reader.u32()?, reader.u32()?);
    let kind = reader.u8()?;
    let salt = reader.u64()?;
    let count = reader.u16()?;
    let mut fingerprints = Vec::new();
    for _ in 0..count {
        fingerprints.push(Fingerprint(reader.u32()?));
    }
    let address = match (family, address) {
        (4, [a, b, c, d, rest @ ..]) if rest == [0; 12] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        (6, address) => IpAddr::V6(Ipv6Addr::from(address)),
        _ => return Some(Err(RollCallError::Address)),
    };
    let list = match kind {
        0 => RollCallList::Known(fingerprints),
        1 => RollCallList::Missing(fingerprints),
        kind => return Some(Err(RollCallError::List(kind))),
    };
    let kinds = reader.u8()?;
    let is_limited = kinds & UP_TO != 0;
    let repair = match kinds & !(RATE | UP_TO) {
        0 if !is_limited => None,
        kind @ (OPEN | CLOSED) => {
            let (round, window_us, receivers) = (reader.u32()?, reader.u32()?, reader.u32()?);
            match BlockNeed::read_list(RepairCall::MAX_PENDING, reader)? {
                Ok(pending) => {
                    let is_closed = kind == CLOSED;
                    let last = if is_limited { Some(reader.u32()?) } else { None };
                    Some(RepairCall { round, window_us, receivers, is_closed, pending, last })
                }
                Err(_) => return Some(Err(RollCallError::Repair)),
            }
        }
        _ => return Some(Err(RollCallError::Repair)),
    };
    let rate = if kinds & RATE == 0 {
        None
    } else {
        let (round, since) = (reader.u32()?, reader.u32()?);
        let (window_ms, divisor) = (reader.u32()?, reader.u32()?);
        if window_ms == 0 || divisor == 0 {
            return Some(Err(RollCallError::Rate));
        }
        Some(RateCall { round, since, window_ms, divisor })
    };
    if window_ms == 0 {
        return Some(Err(RollCallError::Window));
    }
    if tsi > Tsi::MAX {
        return Some(Err(RollCallError::Tsi(tsi.0)));
    }
    Some(Ok(RollCall {
        instance,
        tsi,
        serial,
        issued_unix_ms,
        collector: SocketAddr::new(address, port),
        round,
        position,
        window_ms,
        head_count,
        known,
        salt,
        list,
        repair,
        rate,
    }))
}

/// Reason why bytes are not a roll call, or why it is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollCallError {
    /// Bytes that do not begin as a roll call.
    #[error("not a roll call of Fontana")]
    Magic,
    /// Bytes that end too early.
    #[error("{actual} bytes are too few for this roll call")]
    Truncated {
        /// Number of bytes.
        actual: usize,
    },
    /// An address of an unknown family, or with bytes that are not zero after it.
    #[error("the collector's address is neither of IPv4 nor of IPv6")]
    Address,
    /// An unknown kind of list.
    #[error("a list of the unknown kind {0}")]
    List(u8),
    /// A repair round that is not one.
    #[error("a repair round that is not one")]
    Repair,
    /// A rate round without a length or a divisor.
    #[error("a rate round of 0 ms, or with the divisor 0")]
    Rate,
    /// A window of no length.
    #[error("a window of 0 ms")]
    Window,
    /// A session number of more than 48 bits.
    #[error("the session number {0} is above {max}", max = Tsi::MAX)]
    Tsi(u64),
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Bytes after the signature.
    #[error("{count} bytes follow the roll call")]
    TrailingBytes {
        /// Number of bytes.
        count: usize,
    },
    /// The signer is another publisher.
    #[error("the roll call is signed by a different publisher")]
    OtherSigner,
    /// The signature does not match.
    #[error("the roll call's signature does not match")]
    Signature,
}
