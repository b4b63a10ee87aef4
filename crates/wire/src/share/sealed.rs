//! Messages of receivers that share, sealed with a group key.
//!
//! ```text
//! offset  bytes
//!      0      2  "FS"
//!      2      1  format: 2
//!      3      1  kind, as of a message without a key
//!      4      8  the first bytes of the manifest's hash
//!     12     16  id of the sending member
//!     28      8  messages that it has sent before
//!     36      n  encrypted: TOI, SBN and the rest of a message without a key
//!     36+n   16  tag
//! ```
//!
//! The cipher is not in this crate: a [`PacketSeal`] has the key of one member and content.

use crate::bytes::Reader;
use crate::seal::{PacketSeal, TAG_BYTES, nonce};
use crate::share::{FORMAT, HEADER_BYTES, MAGIC, ShareContent, ShareMessage};

const SEALED_FORMAT: u8 = 2;
/// Bytes before what is encrypted.
const SEALED_HEADER_BYTES: usize = 36;
/// Where the message without a key begins in a datagram that was opened.
const PLAIN_AT: usize = SEALED_HEADER_BYTES - HEADER_BYTES;

/// Random bytes that a member with a group key draws when it begins: with the content, they name
/// the key of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub [u8; 16]);

impl MemberId {
    /// The number of the member in its messages ([`ShareMessage::member`]): the first four bytes.
    pub fn number(self) -> u32 {
        let Self([a, b, c, d, ..]) = self;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The parts of a sealed message that are not encrypted. Nothing of them is authenticated before it
/// is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedShare {
    /// The content.
    pub content: ShareContent,
    /// The member.
    pub member: MemberId,
    /// Messages that the member has sent before.
    pub counter: u64,
}

impl SealedShare {
    /// Bytes that a message has more than without a key.
    pub const OVERHEAD: usize = PLAIN_AT.saturating_add(TAG_BYTES);

    /// Appends a message of the member of this content, sealed. Its number is that of the member's
    /// id, whatever it says. The caller never gives one counter twice.
    pub fn emit(self, message: &ShareMessage<'_>, cipher: &impl PacketSeal, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; PLAIN_AT]);
        message.emit(out);
        let datagram = out.get_mut(start..).unwrap_or_default();
        let Some((header, text)) = datagram.split_at_mut_checked(SEALED_HEADER_BYTES) else {
            return;
        };
        let kind = header.get(PLAIN_AT..).and_then(|plain| plain.get(3)).copied();
        let counter = self.counter.to_be_bytes();
        let (first, form) = (*MAGIC, [SEALED_FORMAT, kind.unwrap_or_default()]);
        write(header, &[&first, &form, &self.content.0, &self.member.0, &counter]);
        let tag = cipher.seal(nonce(counter), header, text);
        out.extend(tag);
    }

    /// The parts that are not encrypted; `None` if the datagram is no sealed message.
    pub fn find(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(datagram);
        let is_sealed = reader.array() == Some(*MAGIC) && reader.u8() == Some(SEALED_FORMAT);
        is_sealed.then(|| reader.u8()).flatten()?;
        let content = ShareContent(reader.array()?);
        Some(Self { content, member: MemberId(reader.array()?), counter: reader.u64()? })
    }

    /// Checks the tag, and decrypts the datagram in place. It then holds the message as it is
    /// without a key ([`opened`](Self::opened)). If it returns false, the datagram has any
    /// contents.
    pub fn open(self, datagram: &mut [u8], cipher: &impl PacketSeal) -> bool {
        let Some((header, rest)) = datagram.split_at_mut_checked(SEALED_HEADER_BYTES) else {
            return false;
        };
        let Some((text, &mut tag)) = rest.split_last_chunk_mut::<TAG_BYTES>() else {
            return false;
        };
        if !cipher.open(nonce(self.counter.to_be_bytes()), header, text, tag) {
            return false;
        }
        let kind = header.get(3).copied().unwrap_or_default();
        let number = self.member.number().to_be_bytes();
        let plain = header.get_mut(PLAIN_AT..).unwrap_or_default();
        write(plain, &[MAGIC, &[FORMAT, kind], &self.content.0, &number]);
        true
    }

    /// The message in a datagram that was [opened](Self::open).
    pub fn opened(datagram: &[u8]) -> &[u8] {
        let end = datagram.len().saturating_sub(TAG_BYTES);
        datagram.get(PLAIN_AT..end).unwrap_or_default()
    }
}

/// Writes the parts one after the other.
fn write(to: &mut [u8], parts: &[&[u8]]) {
    let bytes = parts.iter().flat_map(|part| part.iter());
    to.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = byte);
}
