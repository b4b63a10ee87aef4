//! Packets that only members of a group can make: each has the tag of a key that all senders and
//! receivers of the group share. [`PacketSealer`] and [`PacketOpener`] are the stages of a session
//! that write and check it.
//!
//! ```
//! use fontana::seal::{GroupKey, PacketOpener, PacketSealer};
//! use fontana::wire::{HeaderFields, SealField, SealId, SealMode, SessionSeal, Toi, Tsi};
//!
//! let key = GroupKey::generate()?;
//! let session = SessionSeal { id: SealId([7; 8]), mode: SealMode::Encrypted };
//! let seal = Some(SealField { session, channel: 0, count: 0 });
//! let mut datagram = Vec::new();
//! HeaderFields { seal, ..HeaderFields::new(Tsi(1), Some(Toi(1))) }.emit(&mut datagram);
//! datagram.extend_from_slice(b"symbol");
//!
//! PacketSealer::new(&key, session.id).seal(&mut datagram);
//! assert!(!datagram.ends_with(b"symbol"));
//! let mut opener = PacketOpener::new(key);
//! let mut again = datagram.clone();
//! assert!(opener.open(0, &mut datagram) && datagram.ends_with(b"symbol"));
//! assert!(!opener.open(0, &mut again), "it was received before");
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! The tag shows that a member of the group has sent a packet. It does not show which one: each
//! member can send in the name of all others, and read what they encrypt.

mod cipher;
mod content_key;
mod key;
mod line;
mod opener;

pub use content_key::{ContentKey, ContentKeys, HostKey};
pub use key::{GroupKey, GroupSeal};
pub use line::KeyFileError;
pub use opener::{PacketOpener, RejectedPackets};

pub(crate) use cipher::{GroupMembers, InstanceCipher};
pub(crate) use content_key::secret_of_publisher;
use fontana_wire::{SealId, SealedDatagram};

/// Seals the packets of one run of a sender.
#[derive(Debug)]
pub struct PacketSealer(InstanceCipher);

impl PacketSealer {
    /// The sealer of the run with this id, which no other run under the key has.
    pub fn new(key: &GroupKey, id: SealId) -> Self {
        Self(InstanceCipher::derive(key, id))
    }

    /// Encrypts a datagram in place, if its seal says so, and writes its tag. Leaves a datagram
    /// without a [seal](fontana_wire::HeaderFields::seal) as it is. Must not be called twice for
    /// one channel and count: the nonce would be used again.
    pub fn seal(&self, datagram: &mut [u8]) {
        if let Some(sealed) = SealedDatagram::find(datagram) {
            sealed.seal(datagram, &self.0);
        }
    }
}
