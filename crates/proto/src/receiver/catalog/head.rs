//! Session heads: which of them a receiver trusts, and how many it checks.

use super::discovery::{Context, Discovery};
use crate::counter::Counter;
use crate::event::Rejection;
use crate::receiver::config::Expectation;
use crate::receiver::sessions::HeadState;
use fontana_wire::{ContentKind, HeadError, PublicKey, RecordError, SessionHead, UnverifiedHead};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::net::IpAddr;

/// A head that is trusted as far as is expected.
#[derive(Clone, Debug)]
pub(super) struct TrustedHead {
    pub(super) head: SessionHead,
    /// The key that signs it, if it is a stream's.
    pub(super) signer: Option<PublicKey>,
}

/// The session that shows a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadOrigin {
    pub(super) source: IpAddr,
    /// Whether the accepted stream is received from it.
    pub(super) is_stream: bool,
}

/// Classes of source addresses. Each has checks that the others cannot use up.
const SOURCE_CLASSES: usize = 32;
/// Checks of each class in a second when those of all classes are used up. An honest head is needed
/// once.
const CHECKS_OF_CLASS: u32 = 4;
/// Counters of repetitions: half a megabyte while more heads arrive than are checked. At 100 000
/// different heads per second a counter has at most 1.5 of them on average.
const COUNTERS: usize = 1 << 19;
/// Seconds after which all counters are halved: twice the longest interval between two heads of a
/// sender.
const HALVED_EVERY: u64 = 4;

/// Heads whose checked signature is remembered: any host can repeat them in any session's name.
const MAX_VERIFIED: usize = 8;

/// Heads that cannot be read, or whose signature was wrong, that are remembered. An attacker who
/// alternates between more of them makes the receiver check each again.
const MAX_FAILED: usize = 256;

/// The limits on signatures that are checked.
///
/// A head whose signature was wrong is not checked again while it is remembered.
///
/// Half of the checks of a second are for any head. After that the receiver checks the heads that
/// are repeated most often: an honest sender repeats its head, and an attacker whose head has
/// failed needs another one.
///
/// A stream has a new head for each fragment, and does not repeat it often. A head that is newer
/// than all before is therefore not counted ([`Self::uncount`]): only the publisher can make one,
/// and no host can use it twice. And half of the checks of a second are set apart for the source
/// addresses from which the stream is received, whatever others send.
#[derive(Debug, Default)]
pub(super) struct HeadChecks {
    second: u64,
    /// Checks in this second.
    checks: u32,
    /// Of these: by class of source address.
    of_classes: [u32; SOURCE_CLASSES],
    /// Time of the first check in nanoseconds: an attacker does not know which heads share a
    /// counter.
    secret: Option<u64>,
    /// Present since half of the checks of a second were used up.
    repetitions: Option<Repetitions>,
    /// The class of the head that was checked last, if the check was counted.
    counted: Option<usize>,
    /// The newest version of the accepted stream whose check was taken back.
    newest: u64,
    /// Fingerprints of the last heads that cannot be read or whose signature was wrong, the latest
    /// last.
    failed: VecDeque<u64>,
    /// The last heads whose signature was right, as they arrived; the latest first.
    verified: VecDeque<(Vec<u8>, TrustedHead)>,
}

/// How often heads were repeated, about: a sketch with one counter for each hash.
#[derive(Debug)]
struct Repetitions {
    counters: Vec<u8>,
    total: u64,
    halved_at: u64,
}

impl HeadChecks {
    /// Checks the head in `symbol`, unless `state` knows it or no check is left for it. `accepted`
    /// is the key of the stream that is received.
    ///
    /// # Errors
    /// What follows from the packet if it shows no new head to trust.
    pub(super) fn check(
        &mut self,
        cx: &Context<'_>,
        origin: HeadOrigin,
        state: &mut HeadState,
        accepted: Option<PublicKey>,
        symbol: &[u8],
    ) -> Result<TrustedHead, Discovery> {
        self.counted = None;
        if state.knows(cx.now, symbol) {
            return Err(repeat(state, symbol));
        }
        let Expectation { manifest, publisher, .. } = &cx.config.expectation;
        if let Some(hash) = manifest {
            // A comparison costs nothing that is limited.
            let head = match UnverifiedHead::pinned(symbol, hash) {
                Ok(head) if head.kind == ContentKind::Manifest => head,
                Ok(_) | Err(HeadError::OtherManifest { .. }) => {
                    return Err(refuse(state, symbol, Rejection::OtherManifest, false));
                }
                Err(error) => return Err(unread(state, symbol, error)),
            };
            if publisher.is_none() {
                return Ok(TrustedHead { head, signer: None });
            }
        }
        let trusted = match self.verified(symbol, accepted) {
            Some(trusted) => Ok(trusted),
            None if self.has_failed(cx, symbol) || !self.permit(cx, origin, symbol) => {
                return Err(Discovery::Nothing);
            }
            None => {
                let unverified = UnverifiedHead::parse(symbol).map_err(|error| {
                    self.on_failed(cx, symbol);
                    unread(state, symbol, error)
                })?;
                let checked = check_signature(cx, accepted, unverified);
                if matches!(checked, Err(Rejection::WrongKey)) {
                    self.on_failed(cx, symbol);
                }
                checked
            }
        };
        let trusted = trusted.and_then(|trusted| {
            self.remember(symbol, &trusted);
            let validity = cx.config.expectation.check_validity(&trusted.head, cx.unix_seconds());
            validity.inspect_err(|&reason| state.note_refused(&trusted.head, reason))?;
            Ok(trusted)
        });
        let is_busy = self.repetitions.is_some();
        trusted.map_err(|reason| refuse(state, symbol, reason, is_busy))
    }

    /// The head in a symbol, if its signature was checked. After a stream is accepted, only its key
    /// signs heads of streams.
    fn verified(&mut self, symbol: &[u8], accepted: Option<PublicKey>) -> Option<TrustedHead> {
        let is_known = |(bytes, trusted): &(Vec<u8>, TrustedHead)| {
            bytes == symbol
                && (trusted.signer.is_none()
                    || accepted.is_none_or(|key| trusted.signer == Some(key)))
        };
        let at = self.verified.iter().position(is_known)?;
        let (_, trusted) = self.verified.remove(at)?;
        Some(trusted)
    }

    /// Remembers that the signature of a head was right.
    fn remember(&mut self, symbol: &[u8], trusted: &TrustedHead) {
        self.verified.truncate(MAX_VERIFIED - 1);
        self.verified.push_front((symbol.to_vec(), trusted.clone()));
    }

    /// A hash of a head that an attacker cannot foresee.
    fn fingerprint(&mut self, cx: &Context<'_>, symbol: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(*self.secret.get_or_insert(cx.now.as_nanos()));
        hasher.write(symbol);
        hasher.finish()
    }

    /// Whether the signature of a head was wrong when it was checked.
    fn has_failed(&mut self, cx: &Context<'_>, symbol: &[u8]) -> bool {
        if self.failed.is_empty() {
            return false;
        }
        let fingerprint = self.fingerprint(cx, symbol);
        self.failed.contains(&fingerprint)
    }

    fn on_failed(&mut self, cx: &Context<'_>, symbol: &[u8]) {
        let fingerprint = self.fingerprint(cx, symbol);
        if self.failed.len() >= MAX_FAILED {
            self.failed.pop_front();
        }
        self.failed.push_back(fingerprint);
    }

    /// Whether a signature may be checked now; counts the check if so.
    fn permit(&mut self, cx: &Context<'_>, origin: HeadOrigin, symbol: &[u8]) -> bool {
        let limit = cx.config.limits.max_head_checks_per_second;
        let second = cx.now.as_nanos() / 1_000_000_000;
        if self.second != second {
            (self.second, self.checks) = (second, 0);
            self.of_classes = [0; SOURCE_CLASSES];
        }
        let secret = *self.secret.get_or_insert(cx.now.as_nanos());
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(secret);
        match origin.source {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        let class = hasher.finish() as usize % SOURCE_CLASSES;
        let Some(of_class) = self.of_classes.get_mut(class) else { return false };
        let is_busy = self.checks >= limit / 2;
        if is_busy && self.repetitions.is_none() {
            self.repetitions = Some(Repetitions::new(second));
        }
        let repetitions = self.repetitions.as_mut();
        let is_repeated =
            repetitions.is_some_and(|repetitions| repetitions.count(second, secret, symbol));
        let is_left = self.checks < limit || *of_class < CHECKS_OF_CLASS.min(limit);
        let is_set_apart = origin.is_stream && *of_class < limit / 2;
        let is_permitted = !is_busy || is_set_apart || (is_repeated && is_left);
        if is_permitted {
            self.checks.count(1);
            of_class.count(1);
            self.counted = Some(class);
        }
        is_permitted
    }

    /// Takes the last check back if its head, of this version of the accepted stream, is newer than
    /// all before.
    pub(super) fn uncount(&mut self, version: u64) {
        if version > self.newest
            && let Some(class) = self.counted.take()
            && let Some(of_class) = self.of_classes.get_mut(class)
        {
            self.newest = version;
            self.checks.discount(1);
            *of_class = of_class.saturating_sub(1);
        }
    }
}

impl Repetitions {
    fn new(second: u64) -> Self {
        Self { counters: vec![0; COUNTERS], total: 0, halved_at: second }
    }

    /// Counts a head. Whether it was repeated more often than different heads that share a counter
    /// by chance.
    fn count(&mut self, second: u64, secret: u64, symbol: &[u8]) -> bool {
        if second >= self.halved_at.saturating_add(HALVED_EVERY) {
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
            (self.total, self.halved_at) = (self.total / 2, second);
        }
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(secret);
        hasher.write(symbol);
        let at = hasher.finish() as usize % COUNTERS;
        let Some(counter) = self.counters.get_mut(at) else { return false };
        *counter = counter.saturating_add(1);
        self.total.count(1);
        let mean = self.total as f64 / COUNTERS as f64;
        f64::from(*counter) > mean + 4.0 * mean.sqrt() + 2.0
    }
}

/// What follows from a head that cannot be parsed. A session of a newer format is reported, so that
/// the user learns why nothing is received.
fn unread(state: &mut HeadState, symbol: &[u8], error: HeadError) -> Discovery {
    let reason = match error {
        HeadError::FormatVersion(0) => return Discovery::Malformed,
        HeadError::FormatVersion(format) => Rejection::NewerFormat(format),
        HeadError::Record(RecordError::Unknown(kind)) => Rejection::UnknownRecord(kind),
        _ => return Discovery::Malformed,
    };
    refuse(state, symbol, reason, false)
}

/// What follows from a head that is refused. A forged head refuses no session that has shown a good
/// one; and none before it is repeated, if `is_busy` with heads of which most are forged.
fn refuse(state: &mut HeadState, symbol: &[u8], reason: Rejection, is_busy: bool) -> Discovery {
    state.refuse(symbol, Some(reason));
    match state.head() {
        Some(_) => Discovery::Nothing,
        None if is_busy => Discovery::Ignored(reason),
        None => Discovery::Refused(reason),
    }
}

/// What follows from a head that was shown before.
fn repeat(state: &HeadState, symbol: &[u8]) -> Discovery {
    match state.refusal(symbol) {
        Some(reason) if state.head().is_none() => Discovery::Refused(reason),
        _ => Discovery::Nothing,
    }
}

fn check_signature(
    cx: &Context<'_>,
    accepted: Option<PublicKey>,
    unverified: UnverifiedHead,
) -> Result<TrustedHead, Rejection> {
    let expectation = &cx.config.expectation;
    match unverified.kind() {
        ContentKind::Manifest => check_manifest_head(expectation, unverified),
        ContentKind::StreamIndex => check_stream_head(expectation, accepted, unverified),
    }
}

fn check_manifest_head(
    expectation: &Expectation,
    unverified: UnverifiedHead,
) -> Result<TrustedHead, Rejection> {
    let head = match expectation.publisher {
        Some(key) => unverified.verify(&key).map_err(|_| Rejection::WrongKey)?,
        None => unverified.without_verification(),
    };
    Ok(TrustedHead { head, signer: None })
}

/// The head of a stream is signed in any case: with the expected key, with that of the accepted
/// stream, or with the key that the head claims.
fn check_stream_head(
    expectation: &Expectation,
    accepted: Option<PublicKey>,
    unverified: UnverifiedHead,
) -> Result<TrustedHead, Rejection> {
    if expectation.manifest.is_some() {
        return Err(Rejection::OtherManifest);
    }
    let claimed = unverified.claimed_signer();
    let key = expectation.publisher.or(accepted).or(claimed).ok_or(Rejection::WrongKey)?;
    let head = unverified.verify(&key).map_err(|_| Rejection::WrongKey)?;
    Ok(TrustedHead { head, signer: Some(key) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_of_a_version_is_taken_back_once() {
        let mut checks = HeadChecks::default();
        let mut check = |version| {
            checks.checks += 1;
            checks.of_classes[3] += 1;
            checks.counted = Some(3);
            checks.uncount(version);
            (checks.checks, checks.of_classes[3])
        };
        assert_eq!(check(5), (0, 0));
        assert_eq!(check(6), (0, 0));
        // Another host sends both again, in the name of other sources.
        assert_eq!(check(6), (1, 1));
        assert_eq!(check(5), (2, 2));
        assert_eq!(check(7), (2, 2));
    }
}
