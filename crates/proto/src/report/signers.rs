//! How those who run an endpoint's jobs, and have the keys, find out what vouches for an answer.

use super::authority::{Authority, Network};
use super::status::{Expected, ExpectedReceiver};
use fontana_wire::{
    Feedback, FeedbackDatagram, OpenedFeedback, PacketSeal, PublicKey, ReceiverId, ReceiverLabel,
    SealId, SealNonce, TAG_BYTES,
};
use std::net::IpAddr;

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

/// The cipher of a session without a group key: there is none.
#[derive(Debug)]
pub enum NoCipher {}

impl PacketSeal for NoCipher {
    fn seal(&self, _: SealNonce, _: &[u8], _: &mut [u8]) -> [u8; TAG_BYTES] {
        match *self {}
    }

    fn open(&self, _: SealNonce, _: &[u8], _: &mut [u8], _: [u8; TAG_BYTES]) -> bool {
        match *self {}
    }
}
