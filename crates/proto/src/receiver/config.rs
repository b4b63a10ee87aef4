//! A receiver's configuration, limits and counters.

use crate::endpoint::SessionKey;
use crate::event::Rejection;
use fontana_fec::Oti;
use fontana_wire::{FdtLimits, Hash, Manifest, ManifestLimits, PublicKey, SessionHead, Tsi};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// When to pay for decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecodePolicy {
    /// As soon as it could succeed.
    #[default]
    Incremental,
    /// Not before reception is complete and the channels were left, so that decoding never competes
    /// with receiving: FCAST's `opt_cpu` (Roca, Mordelet 2002, section 6.4). Blocks of Tornado and
    /// LT are tried as they come, because the number of symbols that they take is not known
    /// beforehand. So are the fragments of a stream.
    Deferred,
    /// Not before `margin` symbols beyond `k`.
    Patient {
        /// Symbols beyond `k` to wait for: at most 64 of a rateless code, and `k / 8` of Tornado.
        /// Of a code of which `k` symbols always suffice, none.
        margin: u32,
    },
}

/// What a receiver knows beforehand of the session it wants: the parts of a ticket. Every part that
/// is given must agree.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// The session's TSI.
    pub tsi: Option<Tsi>,
    /// Addresses it may come from; empty means any.
    pub sources: Vec<IpAddr>,
    /// The manifest's hash.
    pub manifest: Option<Hash>,
    /// The key that signs its head.
    pub publisher: Option<PublicKey>,
    /// Only versions above this one.
    pub newer_than: Option<u64>,
    /// The version that has failed here: its senders are not told that it is here.
    pub given_up: Option<u64>,
    /// Receive also what has expired.
    pub ignore_expiry: bool,
}

impl Expectation {
    /// Whether a session has the expected TSI and source.
    pub(super) fn includes(&self, session: SessionKey) -> bool {
        self.tsi.is_none_or(|tsi| tsi == session.tsi)
            && (self.sources.is_empty() || self.sources.contains(&session.source))
    }

    /// Checks expiry and version of a head, at this time.
    ///
    /// # Errors
    /// [`Rejection::Expired`], [`Rejection::OldVersion`].
    pub fn check_validity(
        &self,
        head: &SessionHead,
        now_unix_seconds: u64,
    ) -> Result<(), Rejection> {
        if let Some(expires) = head.expires_unix_seconds
            && self.heeds_expiry()
            && head.has_expired(now_unix_seconds)
        {
            return Err(Rejection::Expired { unix_seconds: expires.get() });
        }
        self.check_version(head.manifest_version)
    }

    /// Checks a version, of a head or of its manifest.
    ///
    /// # Errors
    /// [`Rejection::OldVersion`].
    pub(super) fn check_version(&self, version: u64) -> Result<(), Rejection> {
        match self.newer_than {
            Some(newer_than) if version <= newer_than => {
                Err(Rejection::OldVersion { version, newer_than })
            }
            _ => Ok(()),
        }
    }

    /// Whether the expiry of a head counts: if the publisher has signed it, and the manifest is not
    /// the only one that will do.
    pub(super) fn heeds_expiry(&self) -> bool {
        self.publisher.is_some() && self.manifest.is_none() && !self.ignore_expiry
    }

    /// Whether the manifest's hash is all that heads are checked for: their other fields are
    /// claims of any host.
    pub(super) fn trusts_hash_alone(&self) -> bool {
        self.publisher.is_none() && self.manifest.is_some()
    }
}

/// What to do with a session that meets the expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Take the first one.
    Automatic,
    /// Offer it and wait for [`Receiver::accept`](crate::Receiver::accept).
    Ask,
}

/// How receivers learn what a session carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetadataMode {
    /// From a session head and a manifest.
    #[default]
    Manifest,
    /// From file delivery tables: plain FLUTE (RFC 6726), for other programs.
    Flute,
    /// From the objects themselves: FCAST (RFC 6968).
    Fcast,
}

/// Limits on memory and work. Every cache and queue of a receiver has one.
#[derive(Clone, Debug)]
pub struct ReceiverLimits {
    /// Sessions whose state is held at the same time.
    pub max_sessions: usize,
    /// Bytes of symbols of all sessions that wait for their object to be opened, or for their block
    /// to be verified.
    pub max_early_bytes: usize,
    /// Bytes that the driver stores beside the memory ([`ReceiveJob::Spill`](crate::ReceiveJob)) of
    /// those symbols that wait for their object to be opened, if the expectation names a manifest
    /// or its publisher, and a head has shown that the session carries it. 0: none are stored.
    pub max_spilled_bytes: u64,
    /// What a file delivery table may ask for.
    pub fdt: FdtLimits,
    /// Files that are received at a time from one plain FLUTE session, or objects taken from one
    /// FCAST session.
    pub max_files: usize,
    /// Source blocks of all files of a plain FLUTE session together: each takes about 200 bytes of
    /// memory from the beginning, however short it is.
    pub max_blocks: u64,
    /// What a manifest may ask for.
    pub manifest: ManifestLimits,
    /// Bytes of all objects of a session together, as transported.
    pub max_transfer_bytes: u64,
    /// Bytes of a stream that are received or wait to be delivered in order.
    pub max_stream_window_bytes: u64,
    /// Blocks being recovered at the same time.
    pub max_recoveries: usize,
    /// Bytes of the decoders of Tornado and LT blocks that have symbols
    /// ([`BlockProfile::decoder_memory`](fontana_fec::BlockProfile::decoder_memory)). Symbols of
    /// other blocks are dropped until there is room, and objects of which not even one block has
    /// room are refused.
    pub max_decoder_bytes: u64,
    /// Multiplications of octets that a Reed-Solomon block may cost: a block of 32 000 symbols, all
    /// of them lost, would keep a core busy for hours.
    pub max_block_products: u64,
    /// Signatures of heads that are checked in any second. Each of 32 classes of source addresses
    /// has 4 more, or half of this number if a stream is received from one of its addresses. A head
    /// that is the newest of a received stream is not counted.
    pub max_head_checks_per_second: u32,
}

impl Default for ReceiverLimits {
    fn default() -> Self {
        Self {
            max_sessions: 16,
            // About 6 000 packets, more than a sender sends before its manifest is complete.
            max_early_bytes: 9 << 20,
            max_spilled_bytes: 0,
            fdt: FdtLimits::default(),
            max_files: 100_000,
            // Four objects with as many blocks as Compact No-Code can number; 50 MB.
            max_blocks: 1 << 18,
            manifest: ManifestLimits::default(),
            max_transfer_bytes: 1 << 50,
            // 40 fragments of the default length: 40 s at 100 Mbit/s.
            max_stream_window_bytes: 512 << 20,
            max_recoveries: 4,
            // 16 blocks of the default length: 200 MB of content at a time.
            max_decoder_bytes: 64 << 20,
            // A few seconds of a core at worst; 4 900 symbols and as many lost ones of 1 400 bytes,
            // and every block of RFC 5510.
            max_block_products: 1 << 35,
            // 50 µs each: half a per cent of a core, and one more of all classes of addresses.
            max_head_checks_per_second: 100,
        }
    }
}

impl ReceiverLimits {
    /// Whether a block of the object can be decoded, within memory and time.
    pub(super) fn have_room_to_decode(&self, oti: Oti) -> bool {
        let Ok(layout) = oti.layout() else { return true };
        let block = layout.longest_block_profile();
        let products = block.products.saturating_mul(oti.symbol_size.into());
        block.decoder_memory.unwrap_or(0) <= self.max_decoder_bytes
            && products <= self.max_block_products
    }
}

/// The configuration of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Which session is wanted.
    pub expectation: Expectation,
    /// What to do when it is found.
    pub acceptance: Acceptance,
    /// Which kind of session to receive. Content without a manifest is not authenticated.
    pub metadata: MetadataMode,
    /// A manifest that an earlier run saved, and its hash, which the driver has checked. A session
    /// whose head names it need not send it.
    pub known_manifest: Option<(Hash, Arc<Manifest>)>,
    /// When to decode.
    pub policy: DecodePolicy,
    /// Limits on memory and work.
    pub limits: ReceiverLimits,
    /// Wall time at the beginning of the run, Unix seconds: heads expire.
    pub started_at_unix_seconds: u64,
    /// After how long without a packet of a wanted session the channels are joined again.
    pub silence_after: Duration,
    /// After how long without a symbol of use the accepted version is given up, if the expected
    /// publisher has announced a newer one.
    pub superseded_after: Duration,
    /// Whether the channels stay joined, after the reception is complete, until all blocks are
    /// verified. Senders that send everything once do not repeat what a corrupt block lacks. If
    /// not, or if decoding is [deferred](DecodePolicy::Deferred), the channels are left at once,
    /// and joined again if a block is corrupt.
    pub stays_until_verified: bool,
}

impl ReceiverConfig {
    /// A receiver of a session with a manifest, which accepts it at once.
    pub fn new(expectation: Expectation, started_at_unix_seconds: u64) -> Self {
        Self {
            expectation,
            acceptance: Acceptance::Automatic,
            metadata: MetadataMode::Manifest,
            known_manifest: None,
            policy: DecodePolicy::Incremental,
            limits: ReceiverLimits::default(),
            started_at_unix_seconds,
            silence_after: Self::SILENCE_AFTER,
            superseded_after: Self::SUPERSEDED_AFTER,
            stays_until_verified: false,
        }
    }

    /// Default of [`silence_after`](Self::silence_after).
    pub const SILENCE_AFTER: Duration = Duration::from_secs(10);
    /// Default of [`superseded_after`](Self::superseded_after): a sender repeats objects more
    /// often, unless it has much that is new to send.
    pub const SUPERSEDED_AFTER: Duration = Duration::from_secs(1);
}

/// Counters, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Datagrams handled.
    pub datagrams: u64,
    /// Bytes of UDP payload in them.
    pub payload_bytes: u64,
    /// Datagrams that are no ALC packets.
    pub malformed: u64,
    /// Packets that are encrypted with a group key. The driver of a receiver that has the key
    /// decrypts them before.
    pub encrypted: u64,
    /// Packets of sessions that are not wanted.
    pub foreign: u64,
    /// Packets of the wanted sessions until reception was complete: the reception inefficiency
    /// counts these.
    pub session_packets: u64,
    /// Packets of the wanted sessions with symbols of deselected objects
    /// ([`Receiver::deselect`](crate::Receiver::deselect)); not among `session_packets`.
    pub deselected: u64,
    /// Of the session packets: control objects.
    pub control_packets: u64,
    /// Of these: symbols that were of use.
    pub fresh: u64,
    /// Of these: symbols that were received before.
    pub duplicates: u64,
    /// Of these: symbols of blocks that were complete already.
    pub late: u64,
    /// Of these: symbols that their object does not have, or of the wrong size, and of objects that
    /// only a newer version has.
    pub invalid: u64,
    /// Of these: symbols that were dropped because too many waited for their object to be opened,
    /// or decoders had no memory for another block.
    pub without_room: u64,
    /// Of these: symbols that were [stored beside the memory](ReceiverLimits::max_spilled_bytes).
    /// Once their object is open, they count as others do, too.
    pub spilled: u64,
    /// Of these: symbols that were dropped while an attacker sent forged ones, because their sender
    /// has not announced them by signed digests.
    pub unannounced: u64,
    /// Symbols of use that were [pulled](crate::Receiver::handle_pulled), not among `fresh`.
    pub pulled: u64,
    /// Packets that the network lost, from their sequence numbers: of the wanted sessions that have
    /// brought symbols.
    pub lost: u64,
    /// Packets of these sessions that were sent between the first and the last one received.
    pub expected: u64,
    /// Datagrams that this host lost after the network had delivered them.
    pub local_drops: u64,
    /// Blocks whose bytes did not match their hash.
    pub corrupt_blocks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::FecScheme;
    use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};

    #[test]
    fn reed_solomon_blocks_that_would_take_hours_are_refused() {
        let limits = ReceiverLimits::default();
        let can = |code, k: u16, n, symbol_size| {
            let scheme = FecScheme::ReedSolomon(ReedSolomon {
                code,
                max_source_block_length: k,
                max_encoding_symbols: n,
            });
            let transfer_length = u64::from(k) * u64::from(symbol_size);
            limits.have_room_to_decode(Oti { transfer_length, symbol_size, scheme })
        };
        let wide = ReedSolomonCode::Cauchy16;
        assert!(can(ReedSolomonCode::Rfc5510, 127, 255, u16::MAX));
        assert!(can(wide, 4_900, 9_800, 1400));
        assert!(!can(wide, 5_000, 10_000, 1400));
        assert!(can(wide, 5_000, 5_100, 1400), "few can be lost");
        assert!(!can(wide, 32_000, 64_000, 64));
    }
}
