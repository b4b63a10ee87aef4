//! Session heads: which of them a receiver trusts.

use super::discovery::{Context, Discovery};
use crate::event::Rejection;
use crate::receiver::config::Expectation;
use crate::receiver::sessions::HeadState;
use fontana_wire::{ContentKind, PublicKey, SessionHead, UnverifiedHead};

/// A head that is trusted as far as is expected.
pub(super) struct TrustedHead {
    pub(super) head: SessionHead,
    /// The key that signs it, if it is a stream's.
    pub(super) signer: Option<PublicKey>,
}

/// The limit on signatures that are checked in one second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeadChecks {
    second: u64,
    checks: u32,
}

impl HeadChecks {
    /// Checks the head in `symbol`, unless `state` knows it or too many were checked in this
    /// second. `accepted` is the key of the stream that is received.
    ///
    /// # Errors
    /// What follows from the packet if it shows no new head to trust.
    pub(super) fn check(
        &mut self,
        cx: &Context<'_>,
        state: &mut HeadState,
        accepted: Option<PublicKey>,
        symbol: &[u8],
    ) -> Result<TrustedHead, Discovery> {
        if state.knows(symbol) {
            return Err(Discovery::Nothing);
        }
        let second = cx.now.as_nanos() / 1_000_000_000;
        if self.second != second {
            *self = Self { second, checks: 0 };
        }
        if self.checks >= cx.config.limits.max_head_checks_per_second {
            return Err(Discovery::Nothing);
        }
        self.checks += 1;
        let Ok(unverified) = UnverifiedHead::parse(symbol) else {
            return Err(Discovery::Malformed);
        };
        check_head(cx, accepted, unverified).map_err(|reason| {
            state.refuse(symbol);
            // A forged head refuses no session that has shown a good one.
            match state.head() {
                None => Discovery::Refused(reason),
                Some(_) => Discovery::Nothing,
            }
        })
    }
}

fn check_head(
    cx: &Context<'_>,
    accepted: Option<PublicKey>,
    unverified: UnverifiedHead,
) -> Result<TrustedHead, Rejection> {
    let Expectation { newer_than, .. } = cx.config.expectation;
    let trusted = match unverified.kind() {
        ContentKind::Manifest => check_manifest_head(&cx.config.expectation, unverified)?,
        ContentKind::StreamIndex => {
            check_stream_head(&cx.config.expectation, accepted, unverified)?
        }
    };
    let now_unix = cx.config.started_at_unix_seconds + cx.now.as_nanos() / 1_000_000_000;
    if trusted.head.has_expired(now_unix) {
        return Err(Rejection::Expired);
    }
    if newer_than.is_some_and(|version| trusted.head.manifest_version <= version) {
        return Err(Rejection::OldVersion);
    }
    Ok(trusted)
}

fn check_manifest_head(
    expectation: &Expectation,
    unverified: UnverifiedHead,
) -> Result<TrustedHead, Rejection> {
    let Expectation { manifest, publisher, .. } = expectation;
    let head = match (publisher, manifest) {
        (Some(key), _) => unverified.verify(key).map_err(|_| Rejection::WrongKey)?,
        (None, Some(hash)) => {
            unverified.verify_pinned(hash).map_err(|_| Rejection::OtherManifest)?
        }
        (None, None) => unverified.without_verification(),
    };
    if manifest.is_some_and(|hash| hash != head.manifest.hash) {
        return Err(Rejection::OtherManifest);
    }
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
