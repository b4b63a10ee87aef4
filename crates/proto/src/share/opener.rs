//! The messages of members that have a group key: tags are checked, and messages that are sent
//! again dropped.

use crate::replay::ReplayWindow;
use fontana_wire::{MemberId, PacketSeal, SealedShare, ShareContent};
use std::collections::BTreeMap;

/// Members whose messages are remembered. Of more, the one whose last valid message is the oldest
/// is forgotten. They do not expire with time: a message of one that was forgotten counts as new
/// when it is sent again.
const MOST_MEMBERS: usize = 1_024;

/// A group key, as far as members need it.
pub trait MemberKeys {
    /// An authenticated cipher.
    type Cipher: PacketSeal;

    /// The cipher of the messages of one member about one content.
    fn cipher(&self, content: ShareContent, member: MemberId) -> Self::Cipher;
}

/// Opens the messages of members that have the group key.
#[derive(Debug)]
pub struct ShareOpener<K: MemberKeys> {
    keys: K,
    content: ShareContent,
    own: MemberId,
    members: BTreeMap<MemberId, Known<K::Cipher>>,
    /// Number of valid messages.
    opened: u64,
}

/// A member that has sent a valid message.
#[derive(Debug)]
struct Known<C> {
    cipher: C,
    window: ReplayWindow,
    /// [`ShareOpener::opened`] at its last valid message.
    opened_at: u64,
}

impl<K: MemberKeys> ShareOpener<K> {
    /// An opener for a member with this id, which has received nothing.
    pub fn new(keys: K, content: ShareContent, own: MemberId) -> Self {
        Self { keys, content, own, members: BTreeMap::new(), opened: 0 }
    }

    /// Checks a datagram, and decrypts it in place. If it returns true, another member with the key
    /// has sent it about this content, and it was not received before: it holds
    /// [a message](SealedShare::opened). Otherwise it has any contents.
    pub fn open(&mut self, datagram: &mut [u8]) -> bool {
        let Some(sealed) = SealedShare::find(datagram) else { return false };
        if sealed.content != self.content || sealed.member == self.own {
            return false;
        }
        if !self.members.contains_key(&sealed.member) {
            return self.open_first(sealed, datagram);
        }
        let Some(known) = self.members.get_mut(&sealed.member) else { return false };
        let (counter, window) = (sealed.counter, &mut known.window);
        let is_new = window.is_new(counter);
        if !is_new && !window.is_older(counter) || !sealed.open(datagram, &known.cipher) {
            return false;
        }
        if !is_new && !window.begins_again(counter) {
            return false;
        }
        self.opened += 1;
        window.insert(counter);
        known.opened_at = self.opened;
        true
    }

    /// The first message of a member. Only a valid one takes a place.
    fn open_first(&mut self, sealed: SealedShare, datagram: &mut [u8]) -> bool {
        let cipher = self.keys.cipher(self.content, sealed.member);
        if !sealed.open(datagram, &cipher) {
            return false;
        }
        if self.members.len() >= MOST_MEMBERS {
            let oldest = self.members.iter().min_by_key(|(_, known)| known.opened_at);
            let oldest = oldest.map(|(&member, _)| member);
            oldest.map(|member| self.members.remove(&member));
        }
        self.opened += 1;
        let mut window = ReplayWindow::default();
        window.insert(sealed.counter);
        let known = Known { cipher, window, opened_at: self.opened };
        self.members.insert(sealed.member, known);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_wire::{
        Hash, SealNonce, ShareBody, ShareMessage, ShareSymbol, SharedBlock, TAG_BYTES,
    };

    const CONTENT: Hash = Hash([7; Hash::SIZE]);

    /// A cipher for tests: the tag is a sum of everything, and nothing is encrypted.
    #[derive(Clone)]
    struct Sum(u8);

    impl MemberKeys for Sum {
        type Cipher = Self;

        fn cipher(&self, _: ShareContent, MemberId([first, ..]): MemberId) -> Self {
            Self(self.0 ^ first)
        }
    }

    impl PacketSeal for Sum {
        fn seal(&self, nonce: SealNonce, head: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
            let bytes = nonce.iter().chain(head).chain(text.iter()).chain([&self.0]);
            bytes.fold(1_u128, |sum, &byte| sum.wrapping_mul(257) + u128::from(byte)).to_be_bytes()
        }

        fn open(&self, nonce: SealNonce, head: &[u8], text: &mut [u8], tag: [u8; 16]) -> bool {
            self.seal(nonce, head, text) == tag
        }
    }

    fn member(number: u32) -> MemberId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        MemberId(id)
    }

    fn message(member: MemberId) -> ShareMessage<'static> {
        let symbol = ShareSymbol { has_block: true, to: 1, echo_us: 2, esi: 3, bytes: b"symbol" };
        let (content, block) = (CONTENT.into(), SharedBlock { toi: 1, sbn: 0 });
        ShareMessage { content, member: member.number(), block, body: ShareBody::Symbol(symbol) }
    }

    fn sealed(key: u8, from: u32, counter: u64) -> Vec<u8> {
        let member = member(from);
        let content = CONTENT.into();
        let mut out = Vec::new();
        let cipher = Sum(key).cipher(content, member);
        SealedShare { content, member, counter }.emit(&message(member), &cipher, &mut out);
        out
    }

    fn opener() -> ShareOpener<Sum> {
        ShareOpener::new(Sum(1), CONTENT.into(), member(99))
    }

    #[test]
    fn messages_of_members_are_opened_once() {
        let mut opener = opener();
        let first = sealed(1, 5, 8);
        let mut datagram = first.clone();
        assert!(opener.open(&mut datagram));
        assert_eq!(ShareMessage::parse(SealedShare::opened(&datagram)), Ok(message(member(5))));
        assert!(!opener.open(&mut first.clone()), "it was received before");
        assert!(opener.open(&mut sealed(1, 5, 7)), "late");
        assert!(opener.open(&mut sealed(1, 6, 8)), "another member");
        assert!(!opener.open(&mut first.clone()));
        assert!(opener.open(&mut sealed(1, 5, 5_000)));
        assert!(!opener.open(&mut sealed(1, 5, 3_976)), "too late");
    }

    #[test]
    fn only_a_member_with_the_key_takes_a_place() {
        let mut opener = opener();
        let mut plain = Vec::new();
        message(member(5)).emit(&mut plain);
        assert!(!opener.open(&mut plain), "without a tag");
        assert!(!opener.open(&mut sealed(2, 5, 1)), "another key");
        assert!(!opener.open(&mut sealed(1, 99, 1)), "its own");
        let good = sealed(1, 5, 1);
        for at in 0..good.len() {
            let mut datagram = good.clone();
            datagram[at] ^= 1;
            assert!(!opener.open(&mut datagram), "byte {at}");
            assert!(!opener.open(&mut good[..at].to_vec()), "{at} bytes");
        }
        assert!(opener.members.is_empty());
        assert!(opener.open(&mut good.clone()));
    }

    #[test]
    fn a_thousand_members_are_remembered() {
        let mut opener = opener();
        for from in 0..1_500 {
            assert!(opener.open(&mut sealed(1, 100 + from, 1)));
            assert!(opener.open(&mut sealed(1, 100, 2 + u64::from(from))));
        }
        assert_eq!(opener.members.len(), MOST_MEMBERS);
        assert!(!opener.open(&mut sealed(1, 100, 1_400)), "it is not the oldest");
        assert!(!opener.open(&mut sealed(1, 1_000, 1)));
    }
}
