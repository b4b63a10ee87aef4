//! Sealed packets: EXT_AUTH with the tag of a group key, in the form of RFC 6584.
//!
//! The seal is the last extension of the header:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------+---+-+-+---------------+
//! |    type = 1   |   length = 9  | ASID  | 0 |E|1|       0       |
//! +---------------+---------------+-------+---+-+-+---------------+
//! |               first 8 bytes of the instance id                |
//! +---------------+-----------------------------------------------+
//! |    channel    |  count of the packet on its channel, 56 bits  |
//! +---------------+-----------------------------------------------+
//! |                    tag of the datagram, 16 bytes              |
//! +---------------------------------------------------------------+
//! ```
//!
//! The cipher is not in this crate: a [`PacketSeal`] has the key of an instance.

use crate::bytes::word_bytes;
use crate::head::InstanceId;

/// Type of EXT_AUTH (RFC 5651, section 5.2).
pub(crate) const HET_AUTH: u8 = 1;
/// Type of EXT_NOP.
pub(crate) const HET_NOP: u8 = 0;

/// Bytes of a seal in the header of a packet.
pub const SEAL_BYTES: usize = 36;
/// Bytes of the tag, the last ones of the seal.
pub const TAG_BYTES: usize = 16;

/// The seal in words.
const WORDS: u8 = (SEAL_BYTES / 4) as u8;
/// The authentication scheme of seals. RFC 6584 leaves the numbers to the session.
const ASID: u8 = 0xF;
/// RFC 6584's flag AR: a number against replays follows.
const NUMBERED: u8 = 0x1;
/// The packet is encrypted from the FEC payload id on: one of the bits that RFC 6584 reserves.
const ENCRYPTED: u8 = 0x2;
/// Bits of a packet's count.
const COUNT_BITS: u32 = 56;

/// What a seal protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealMode {
    /// The whole datagram is authenticated and can be read by any host.
    Authenticated,
    /// The whole datagram is authenticated, and encrypted from the FEC payload id on.
    Encrypted,
}

impl SealMode {
    /// The byte after type and length.
    const fn kind(self) -> u8 {
        match self {
            Self::Authenticated => ASID << 4 | NUMBERED,
            Self::Encrypted => ASID << 4 | NUMBERED | ENCRYPTED,
        }
    }

    const fn of_kind(kind: u8) -> Option<Self> {
        match kind {
            kind if kind == Self::Authenticated.kind() => Some(Self::Authenticated),
            kind if kind == Self::Encrypted.kind() => Some(Self::Encrypted),
            _ => None,
        }
    }
}

/// The start of an instance id: names the key that is derived for one run of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealId(pub [u8; 8]);

impl From<InstanceId> for SealId {
    fn from(InstanceId([a, b, c, d, e, f, g, h, ..]): InstanceId) -> Self {
        Self([a, b, c, d, e, f, g, h])
    }
}

/// What the seals of all packets of a sender's run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSeal {
    /// The run.
    pub id: SealId,
    /// What the seals protect.
    pub mode: SealMode,
}

/// The seal of one packet, without its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealField {
    /// The run, and what the seal protects.
    pub session: SessionSeal,
    /// Channel that the packet is sent on.
    pub channel: u8,
    /// Packets that were sent before on this channel in this run, less than 2^56.
    pub count: u64,
}

/// A nonce. No two packets of a run have the same one.
pub type SealNonce = [u8; 12];

impl SealField {
    /// Channel and count, as one number.
    const fn number(&self) -> [u8; 8] {
        ((self.channel as u64) << COUNT_BITS | self.count & ((1 << COUNT_BITS) - 1)).to_be_bytes()
    }

    fn nonce(&self) -> SealNonce {
        nonce(self.number())
    }
}

/// The nonce with this number: four zeros come before it.
pub(crate) fn nonce(number: [u8; 8]) -> SealNonce {
    let mut nonce = [0; 12];
    nonce.iter_mut().skip(4).zip(number).for_each(|(byte, number)| *byte = number);
    nonce
}

/// Appends a seal whose tag is zero.
pub(crate) fn emit(field: &SealField, out: &mut Vec<u8>) {
    out.extend([HET_AUTH, WORDS, field.session.mode.kind(), 0]);
    out.extend(field.session.id.0);
    out.extend(field.number());
    out.extend([0; TAG_BYTES]);
}

/// True if EXT_AUTH with this content, from the byte after its length on, is the seal of an
/// encrypted packet.
pub(crate) fn is_encrypted(content: &[u8]) -> bool {
    content.len() == SEAL_BYTES - 2
        && content.first().is_some_and(|&kind| SealMode::of_kind(kind) == Some(SealMode::Encrypted))
}

/// An authenticated cipher with the key of one run of a sender.
pub trait PacketSeal {
    /// Encrypts `text` in place. Returns the tag of `authenticated` and `text`. The caller never
    /// gives one nonce twice.
    fn seal(&self, nonce: SealNonce, authenticated: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES];

    /// Decrypts `text` in place if the tag is valid. If it returns false, `text` has any contents.
    fn open(
        &self,
        nonce: SealNonce,
        authenticated: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool;
}

/// A datagram whose header ends with a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedDatagram {
    /// Bytes before the payload; the seal ends there.
    header_length: usize,
    /// The seal, of which nothing is authenticated yet.
    pub field: SealField,
    tag: [u8; TAG_BYTES],
}

impl SealedDatagram {
    /// The seal of a datagram; `None` if it has none. Looks at the place of the seal only.
    #[inline]
    pub fn find(datagram: &[u8]) -> Option<Self> {
        let header_length = word_bytes(*datagram.get(2)?);
        let (_, seal) = datagram.get(..header_length)?.split_last_chunk::<SEAL_BYTES>()?;
        let ([HET_AUTH, WORDS, kind, 0], rest) = seal.split_first_chunk::<4>()? else {
            return None;
        };
        let (&id, rest) = rest.split_first_chunk::<8>()?;
        let (&number, rest) = rest.split_first_chunk::<8>()?;
        let session = SessionSeal { id: SealId(id), mode: SealMode::of_kind(*kind)? };
        let number = u64::from_be_bytes(number);
        let channel = (number >> COUNT_BITS) as u8;
        let field = SealField { session, channel, count: number & ((1 << COUNT_BITS) - 1) };
        Some(Self { header_length, field, tag: *rest.first_chunk()? })
    }

    /// Encrypts the datagram in place, if its seal says so, and writes its tag.
    #[inline]
    pub fn seal(self, datagram: &mut [u8], cipher: &impl PacketSeal) {
        self.write_tag(datagram, [0; TAG_BYTES]);
        let nonce = self.field.nonce();
        let tag = match self.field.session.mode {
            SealMode::Authenticated => cipher.seal(nonce, datagram, &mut []),
            SealMode::Encrypted => {
                let Some((header, text)) = datagram.split_at_mut_checked(self.header_length) else {
                    return;
                };
                cipher.seal(nonce, header, text)
            }
        };
        self.write_tag(datagram, tag);
    }

    /// Checks the tag, and decrypts the datagram in place if its seal says so. The datagram then
    /// has EXT_NOP in place of the seal. If it returns false, the datagram has any contents.
    #[inline]
    pub fn open(self, datagram: &mut [u8], cipher: &impl PacketSeal) -> bool {
        self.write_tag(datagram, [0; TAG_BYTES]);
        let nonce = self.field.nonce();
        let is_valid = match self.field.session.mode {
            SealMode::Authenticated => cipher.open(nonce, datagram, &mut [], self.tag),
            SealMode::Encrypted => match datagram.split_at_mut_checked(self.header_length) {
                Some((header, text)) => cipher.open(nonce, header, text, self.tag),
                None => false,
            },
        };
        if let Some([het, ..]) = self.place::<SEAL_BYTES>(datagram) {
            *het = HET_NOP;
        }
        is_valid
    }

    fn write_tag(self, datagram: &mut [u8], tag: [u8; TAG_BYTES]) {
        if let Some(place) = self.place::<TAG_BYTES>(datagram) {
            *place = tag;
        }
    }

    /// The last `N` bytes of the header.
    fn place<const N: usize>(self, datagram: &mut [u8]) -> Option<&mut [u8; N]> {
        datagram.get_mut(..self.header_length)?.last_chunk_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A repeated nonce would reveal the authentication key of the cipher.
    #[test]
    fn no_two_packets_of_a_run_have_one_nonce() {
        let session = SessionSeal { id: SealId([7; 8]), mode: SealMode::Authenticated };
        let counts = [0, 1, 255, 256, 1 << 32, (1 << COUNT_BITS) - 1];
        let fields = (0..=u8::MAX)
            .flat_map(|channel| counts.map(|count| SealField { session, channel, count }));
        let nonces: BTreeSet<_> = fields.map(|field| field.nonce()).collect();
        assert_eq!(nonces.len(), 256 * counts.len());
    }
}
