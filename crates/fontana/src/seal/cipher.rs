//! AES-128-GCM under a key that HKDF-SHA256 (RFC 5869) derives for one run of a sender.

use super::key::GroupKey;
use fontana_proto::share::MemberKeys;
use fontana_wire::{MemberId, PacketSeal, ReceiverId, SealId, SealNonce, ShareContent, TAG_BYTES};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

/// What the derived key is for (RFC 5869, section 3.2).
const INFO: &[u8] = b"fontana group 1";
/// The same for the reports of one receiver; its id follows.
const REPORT_INFO: &[u8] = b"fontana report 1";

/// The same for what a receiver sends to others of its site; the id of the member follows.
const SHARE_INFO: &[u8] = b"fontana share 1";

/// A cipher of one run of a sender: of its packets, or of the reports of one receiver to it; or
/// that of the messages of one member of a site.
pub(crate) struct InstanceCipher(LessSafeKey);

impl InstanceCipher {
    /// The cipher of the packets of the run with this id.
    pub(super) fn derive(key: &GroupKey, id: SealId) -> Self {
        Self::expand(key, id.0, &[INFO])
    }

    /// The cipher of the reports of `receiver` to the run with this id.
    pub(crate) fn of_reports(key: &GroupKey, id: SealId, receiver: ReceiverId) -> Self {
        Self::expand(key, id.0, &[REPORT_INFO, &receiver.0])
    }

    /// The cipher whose key is for what `info` says.
    fn expand(key: &GroupKey, salt: [u8; 8], info: &[&[u8]]) -> Self {
        let pseudorandom = Salt::new(HKDF_SHA256, &salt).extract(key.bytes());
        match pseudorandom.expand(info, &AES_128_GCM) {
            Ok(key) => Self(LessSafeKey::new(UnboundKey::from(key))),
            Err(_) => unreachable!("HKDF-SHA256 expands to 16 bytes"),
        }
    }
}

/// A group key, for the messages of members of a site.
#[derive(Debug)]
pub(crate) struct GroupMembers(pub(crate) GroupKey);

impl MemberKeys for GroupMembers {
    type Cipher = InstanceCipher;

    fn cipher(&self, content: ShareContent, member: MemberId) -> InstanceCipher {
        InstanceCipher::expand(&self.0, content.bytes(), &[SHARE_INFO, &member.0])
    }
}

impl std::fmt::Debug for InstanceCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstanceCipher(..)")
    }
}

impl PacketSeal for InstanceCipher {
    #[inline]
    fn seal(&self, nonce: SealNonce, authenticated: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        match self.0.seal_in_place_separate_tag(nonce, Aad::from(authenticated), text) {
            Ok(tag) => tag.as_ref().try_into().unwrap_or_default(),
            Err(_) => unreachable!("a datagram is shorter than the limit of AES-GCM"),
        }
    }

    #[inline]
    fn open(
        &self,
        nonce: SealNonce,
        authenticated: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool {
        let (nonce, tag) = (Nonce::assume_unique_for_key(nonce), Tag::from(tag));
        let authenticated = Aad::from(authenticated);
        self.0.open_in_place_separate_tag(nonce, authenticated, tag, text, 0..).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_wire::{Feedback, FeedbackDatagram, SealedShare, ShareBody, ShareMessage};

    const CIPHERTEXT: &str = "f48e6e3c48329495";
    const TAG: &str = "6ab29706e530a98f4bd508e050dab2ba";
    const TAG_ALONE: &str = "2a2eec2eddafbdf157ce7c346e15ddb7";

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    /// The bytes of the page's example with this name. They were computed with the Python package
    /// `cryptography`.
    fn of_page(name: &str) -> Vec<u8> {
        const PAGE: &str = include_str!("../../../../docs/wire.md");
        let (_, block) = PAGE.split_once(&format!("```text hex {name}\n")).unwrap();
        let (block, _) = block.split_once("```").unwrap();
        let digits: Vec<_> = block.lines().filter_map(|line| line.split('|').next()).collect();
        hex(&digits.concat())
    }

    #[test]
    fn the_pages_sealed_symbol_is_opened_with_the_key_of_its_member_only() {
        let bytes = of_page("sealed-symbol");
        let key = GroupKey::from_bytes(std::array::from_fn(|i| i as u8));
        let keys = GroupMembers(key.clone());
        let sealed = SealedShare::find(&bytes).unwrap();
        assert_eq!(
            (sealed.counter, sealed.member),
            (9, MemberId(std::array::from_fn(|i| i as u8)))
        );
        let cipher = keys.cipher(sealed.content, sealed.member);
        let mut datagram = bytes.clone();
        assert!(sealed.open(&mut datagram, &cipher));
        let message = ShareMessage::parse(SealedShare::opened(&datagram)).unwrap();
        let ShareBody::Symbol(symbol) = &message.body else { panic!("a symbol") };
        assert_eq!((message.member, symbol.esi, symbol.bytes), (0x0001_0203, 6, &b"symbol"[..]));
        let mut again = Vec::new();
        sealed.emit(&message, &cipher, &mut again);
        assert_eq!(again, bytes);
        let others = [
            keys.cipher(sealed.content, MemberId([7; 16])),
            InstanceCipher::of_reports(
                &key,
                SealId(sealed.content.bytes()),
                ReceiverId(sealed.member.0),
            ),
        ];
        assert!(others.iter().all(|other| !sealed.open(&mut bytes.clone(), other)));
    }

    #[test]
    fn the_pages_encrypted_report_is_opened_with_the_key_of_its_receiver_only() {
        let bytes = of_page("encrypted-report");
        let key = GroupKey::from_bytes(std::array::from_fn(|i| i as u8));
        let datagram = FeedbackDatagram::parse(&bytes).unwrap();
        let header = datagram.header;
        let cipher = InstanceCipher::of_reports(&key, header.instance, header.receiver);
        let opened = datagram.open(Some(&cipher)).unwrap();
        let Feedback::Report(report) = &opened.feedback else { panic!("a report") };
        assert_eq!((report.label.as_str(), report.kernel_drops), ("rack-1", 17));
        assert!(opened.is_sealed && opened.counter == 6);
        let again = opened.feedback.emit(header.instance, header.counter, None, Some(&cipher));
        assert_eq!(again, bytes);
        let other = InstanceCipher::of_reports(&key, header.instance, ReceiverId([0xAB; 16]));
        assert!(datagram.open(Some(&other)).is_err());
        let packets = InstanceCipher::derive(&key, header.instance);
        assert!(datagram.open(Some(&packets)).is_err(), "the key of packets");
    }

    /// Computed with the Python package `cryptography`: the keys by `HKDF(SHA256(), 16, salt,
    /// b"fontana group 1")`, the tags by `AESGCM(key)`.
    #[test]
    fn keys_and_tags_are_those_of_another_implementation() {
        let key = GroupKey::from_bytes(std::array::from_fn(|i| i as u8));
        let cipher = InstanceCipher::derive(&key, SealId(*b"\x10\x11\x12\x13\x14\x15\x16\x17"));
        let nonce = [0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 9];
        let mut text = *b"a symbol";
        let tag = cipher.seal(nonce, b"a header", &mut text);
        assert_eq!(text, *hex(CIPHERTEXT));
        assert_eq!(tag, *hex(TAG));
        assert_eq!(cipher.seal(nonce, b"a datagram", &mut []), *hex(TAG_ALONE));
        assert!(!cipher.open(nonce, b"another header", &mut { text }, tag));
        assert!(cipher.open(nonce, b"a header", &mut text, tag));
        assert_eq!(text, *b"a symbol");
    }
}
