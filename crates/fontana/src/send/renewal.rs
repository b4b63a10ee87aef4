//! The expiry of a signed head, which its sender renews.

use crate::system::expires_after;
use fontana_proto::ControlObject;
use fontana_wire::{SecretKey, SessionHead};
use std::time::Duration;

/// A signed head that expires, and when it is renewed.
pub(super) struct HeadRenewal {
    pub(super) head: SessionHead,
    pub(super) signer: SecretKey,
    pub(super) symbol_size: u16,
    /// Control intervals between two heads.
    pub(super) intervals: u32,
    pub(super) lifetime: Duration,
    /// Time since the start at which it was signed last.
    pub(super) signed_at: Duration,
}

impl HeadRenewal {
    /// The head with a later expiry, when a third of its lifetime is over.
    pub(super) fn poll(&mut self, elapsed: Duration) -> Option<ControlObject> {
        if elapsed.saturating_sub(self.signed_at) < self.lifetime / 3 {
            return None;
        }
        self.signed_at = elapsed;
        self.head.expires_unix_seconds = expires_after(self.lifetime);
        ControlObject::head(&self.head, self.symbol_size, Some(&self.signer), self.intervals).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{FecScheme, Oti};
    use fontana_wire::{
        CongestionControl, ContentKind, Hash, HeadRecords, InstanceId, ObjectRef, Toi,
    };

    #[test]
    fn a_head_is_renewed_after_each_third_of_its_lifetime() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        let oti = Oti { transfer_length: 9, symbol_size: 1000, scheme };
        let head = SessionHead {
            instance: InstanceId([1; 16]),
            manifest_version: 1,
            kind: ContentKind::Manifest,
            manifest: ObjectRef { toi: Toi::MANIFEST.0 as u32, oti, hash: Hash([2; 32]) },
            expires_unix_seconds: None,
            rate_bytes_per_second: None,
            congestion_control: CongestionControl::FixedRate,
            records: HeadRecords::default(),
        };
        let mut renewal = HeadRenewal {
            head,
            signer: SecretKey::from_seed(&[3; 32]),
            symbol_size: 1000,
            intervals: 2,
            lifetime: Duration::from_secs(30),
            signed_at: Duration::ZERO,
        };
        let seconds = (0..40).filter(|&at| renewal.poll(Duration::from_secs(at)).is_some());
        assert_eq!(seconds.collect::<Vec<_>>(), [10, 20, 30]);
        let now = expires_after(Duration::ZERO).unwrap().get();
        let expires = renewal.head.expires_unix_seconds.unwrap().get();
        assert!((now + 25..=now + 30).contains(&expires), "{expires} at {now}");
    }
}
