//! What vouches for roll calls and for the answers of receivers: keys. Only those who run the jobs
//! of an endpoint use them.

use super::status::{Expected, ExpectedReceiver};
use crate::sender::{ControlObject, control_oti};
use fontana_wire::{
    Feedback, FeedbackDatagram, OpenedFeedback, PacketSeal, PublicKey, ReceiverId, ReceiverLabel,
    RollCall, SealId, SealNonce, SecretKey, TAG_BYTES, Toi,
};
use std::net::IpAddr;

/// What vouches for an answer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// The signature of the key that is expected of a receiver.
    Key(PublicKey),
    /// The group key: a member of the group has sent it.
    Group,
    /// Nothing. It came from this network, or a host that claims to be there.
    Unauthenticated(Network),
}

impl Authority {
    /// True unless nothing vouches for the answer.
    pub const fn is_authentic(self) -> bool {
        !matches!(self, Self::Unauthenticated(_))
    }
}

/// Whose signatures count: those of the receivers that are expected with a key.
#[derive(Debug, Default)]
pub struct Signers {
    /// Each label with its key, ascending.
    labels: Vec<(ReceiverLabel, PublicKey)>,
    /// The keys, ascending.
    keys: Vec<PublicKey>,
}

impl Signers {
    /// The keys of the expected receivers.
    pub fn new(expected: &Expected) -> Self {
        let Expected::Named(list) = expected else { return Self::default() };
        let with_key = |it: &ExpectedReceiver| Some((it.label.clone(), it.key?));
        let mut labels: Vec<_> = list.iter().filter_map(with_key).collect();
        labels.sort_unstable();
        let mut keys: Vec<_> = labels.iter().map(|(_, key)| *key).collect();
        keys.sort_unstable();
        Self { labels, keys }
    }

    /// Whether no receiver is expected with a key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What vouches for an answer that came from this address. Whether the session's group key is
    /// required was checked when it was opened. Checks a signature only of a key that is expected,
    /// of a report that of its label.
    pub fn authority(&self, opened: &OpenedFeedback, from: IpAddr) -> Authority {
        let key = match &opened.feedback {
            Feedback::Report(report) => self.key_of(&report.label),
            Feedback::Request(_) | Feedback::Rate(_) => {
                opened.claimed_signer().filter(|key| self.keys.binary_search(key).is_ok())
            }
        };
        match key {
            Some(key) if opened.is_signed_by(&key) => Authority::Key(key),
            _ if opened.is_sealed => Authority::Group,
            _ => Authority::Unauthenticated(Network::of(from)),
        }
    }

    fn key_of(&self, label: &ReceiverLabel) -> Option<PublicKey> {
        let found = self.labels.binary_search_by(|(other, _)| other.cmp(label)).ok();
        found.and_then(|at| self.labels.get(at)).map(|(_, key)| *key)
    }
}

/// An answer of a receiver that the holder of the keys has opened.
#[derive(Clone, Debug)]
pub struct Authentic {
    /// The answer.
    pub opened: OpenedFeedback,
    /// What vouches for it.
    pub by: Authority,
}

impl Authentic {
    /// Opens a datagram that claims to come from this address. `cipher`: that of the answers of a
    /// receiver, if the session has a group key. `None`: the datagram is not authentic.
    pub fn open<C: PacketSeal>(
        datagram: &[u8],
        from: IpAddr,
        signers: &Signers,
        cipher: impl FnOnce(SealId, ReceiverId) -> Option<C>,
    ) -> Option<Self> {
        let parsed = FeedbackDatagram::parse(datagram).ok()?;
        let cipher = cipher(parsed.header.instance, parsed.header.receiver);
        let opened = parsed.open(cipher.as_ref()).ok()?;
        let by = signers.authority(&opened, from);
        Some(Self { opened, by })
    }

    /// Opens a datagram of a session without a group key.
    pub fn open_plain(datagram: &[u8], from: IpAddr, signers: &Signers) -> Option<Self> {
        Self::open(datagram, from, signers, |_, _| None::<NoCipher>)
    }
}

/// The cipher of a session without a group key.
enum NoCipher {}

impl PacketSeal for NoCipher {
    fn seal(&self, _: SealNonce, _: &[u8], _: &mut [u8]) -> [u8; TAG_BYTES] {
        match *self {}
    }

    fn open(&self, _: SealNonce, _: &[u8], _: &mut [u8], _: [u8; TAG_BYTES]) -> bool {
        match *self {}
    }
}

/// Signs roll calls, and makes them control objects of one symbol.
#[derive(Clone, Debug)]
pub struct CallSigner {
    /// The key of the session.
    pub key: SecretKey,
    /// Bytes of a symbol.
    pub symbol_size: u16,
}

impl CallSigner {
    /// Signs a roll call that is issued at this wall time. `None` only if it is longer than a
    /// symbol, which its capacity prevents.
    pub fn sign(&self, mut call: Box<RollCall>, unix_ms: u64) -> Option<Box<ControlObject>> {
        call.issued_unix_ms = unix_ms;
        let bytes = call.emit(&self.key);
        let oti = control_oti(bytes.len(), self.symbol_size);
        ControlObject::new(Toi::ROLL_CALL, oti, &bytes, None, 1).ok().map(Box::new)
    }
}

/// The part of a source address that a host cannot choose without forging it: an IPv4 address, or
/// the first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network([u8; 8]);

impl Network {
    /// The network of an address.
    pub fn of(address: IpAddr) -> Self {
        let bytes = match address.to_canonical() {
            // No host has an IPv6 address that begins with 0xFF and is not multicast.
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets();
                [0xFF, 0xFF, 0xFF, 0xFF, a, b, c, d]
            }
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h, ..] = v6.octets();
                [a, b, c, d, e, f, g, h]
            }
        };
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_ipv4_address_or_a_prefix_of_64_bits() {
        let network = |text: &str| Network::of(text.parse().unwrap());
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
        assert_eq!(network("10.0.0.1"), network("::ffff:10.0.0.1"));
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::2"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }
}
