//! How a session's packets are sealed.

use crate::certificate::Certificate;
use crate::error::{Error, SetupError};
use crate::format::Format;
use crate::seal::{GroupSeal, PacketSealer, secret_of_publisher};
use fontana_wire::{Hash, InstanceId, SEAL_BYTES, SealMode, SessionSeal, TicketSecret};

/// One run of a sender, and the seals of its packets if they have any.
pub(super) struct Sealing {
    /// Distinguishes the run from all others.
    pub(super) instance: InstanceId,
    /// What the sender writes into headers.
    pub(super) session: Option<SessionSeal>,
}

impl Sealing {
    /// Draws the number of a run. It is never used again: each nonce of its key is used once. Runs
    /// of one certificate share its number, so that they have no seals.
    pub(super) fn draw(
        mode: Option<SealMode>,
        certificate: Option<&Certificate>,
    ) -> Result<Self, Error> {
        let instance = match (certificate, mode) {
            (None, _) => InstanceId(crate::system::random_bytes()?),
            (Some(certificate), None) => certificate.head().instance,
            (Some(_), Some(_)) => return Err(SetupError::SealedCertificate.into()),
        };
        let id = instance.into();
        Ok(Self { instance, session: mode.map(|mode| SessionSeal { id, mode }) })
    }

    /// What completes the packets.
    pub(super) fn sealer(&self, group: Option<&GroupSeal>) -> Option<PacketSealer> {
        let (session, group) = (self.session?, group?);
        Some(PacketSealer::new(&group.key, session.id))
    }

    /// Bytes of the seal in each packet.
    pub(super) fn bytes(&self) -> u16 {
        self.session.map_or(0, |_| SEAL_BYTES as u16)
    }
}

/// Gives a session the keys that its options leave to
/// [`FontanaFormat::keys`](crate::FontanaFormat::keys). Returns the secret
/// of its ticket, if its packets are sealed by that.
pub(super) fn complete_keys(format: &mut Format, manifest: Option<&Hash>) -> Option<TicketSecret> {
    let Format::Fontana(format) = format else { return None };
    let content = format.keys.as_ref()?.content(manifest?);
    let secret = match &format.signer {
        Some(publisher) => secret_of_publisher(publisher),
        None => content.secret(),
    };
    if format.signer.is_none() {
        format.signer = Some(content.signer());
        // The key signs this content alone: an old head of it is as good as a new one.
        format.expires_after = None;
    }
    if format.group_seal.is_some() || format.certificate.is_some() {
        return None;
    }
    format.group_seal = Some(GroupSeal::of_ticket(&secret));
    Some(secret)
}
