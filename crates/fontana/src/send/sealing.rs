//! How a session's packets are sealed.

use crate::certificate::Certificate;
use crate::error::{Error, SetupError};
use crate::seal::{GroupSeal, PacketSealer};
use fontana_wire::{InstanceId, SEAL_BYTES, SessionSeal};

/// One run of a sender, and the seals of its packets if its group has a key.
pub(super) struct Sealing {
    /// Distinguishes the run from all others.
    pub(super) instance: InstanceId,
    /// What the sender writes into headers.
    pub(super) session: Option<SessionSeal>,
    /// Completes the packets.
    pub(super) sealer: Option<PacketSealer>,
}

impl Sealing {
    /// Draws the number of a run. It is never used again: each nonce of its key is used once. Runs
    /// of one certificate share its number, so that they have no seals.
    pub(super) fn draw(
        group: Option<&GroupSeal>,
        certificate: Option<&Certificate>,
    ) -> Result<Self, Error> {
        let instance = match (certificate, group) {
            (None, _) => InstanceId(crate::system::random_bytes()?),
            (Some(certificate), None) => certificate.head().instance,
            (Some(_), Some(_)) => return Err(SetupError::SealedCertificate.into()),
        };
        let id = instance.into();
        Ok(Self {
            instance,
            session: group.map(|group| SessionSeal { id, mode: group.mode }),
            sealer: group.map(|group| PacketSealer::new(&group.key, id)),
        })
    }

    /// Bytes of the seal in each packet.
    pub(super) fn bytes(&self) -> u16 {
        self.session.map_or(0, |_| SEAL_BYTES as u16)
    }
}
