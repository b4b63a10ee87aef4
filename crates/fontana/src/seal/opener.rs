//! The receiving side of a group key: tags are checked, and packets that are sent again dropped.

use super::cipher::InstanceCipher;
use super::key::GroupKey;
use fontana_proto::ReplayWindow;
use fontana_wire::{SealField, SealId, SealedDatagram};

/// Runs of senders whose packets are remembered: as many as a receiver has sessions. Only a group
/// member can take a place.
const MAX_INSTANCES: usize = 16;

/// Packets that a receiver with a group key has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedPackets {
    /// Without a seal.
    pub unsealed: u64,
    /// With a tag that is not valid, or that is valid for another channel.
    pub forged: u64,
    /// Received before, or more than 1 024 packets late, while newer ones come.
    pub replayed: u64,
}

impl RejectedPackets {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.unsealed + self.forged + self.replayed
    }
}

/// Checks and decrypts the packets of a group.
#[derive(Debug)]
pub struct PacketOpener {
    key: GroupKey,
    instances: Vec<Instance>,
    /// Index of the run that the last valid packet belongs to.
    last: usize,
    /// Number of valid packets.
    opened: u64,
    rejected: RejectedPackets,
}

/// A run of a sender that has sent a valid packet.
#[derive(Debug)]
struct Instance {
    id: SealId,
    cipher: InstanceCipher,
    /// By channel, up to the highest one that a valid packet arrived on.
    windows: Vec<ReplayWindow>,
    /// [`PacketOpener::opened`] at its last valid packet.
    opened_at: u64,
}

impl Instance {
    fn is_new(&self, field: &SealField) -> bool {
        let window = self.windows.get(usize::from(field.channel));
        window.is_none_or(|window| window.is_new(field.count))
    }

    fn window(&mut self, field: &SealField) -> Option<&mut ReplayWindow> {
        self.windows.get_mut(usize::from(field.channel))
    }

    fn insert(&mut self, field: &SealField) {
        let channel = usize::from(field.channel);
        if self.windows.len() <= channel {
            self.windows.resize_with(channel + 1, ReplayWindow::default);
        }
        if let Some(window) = self.windows.get_mut(channel) {
            window.insert(field.count);
        }
    }
}

impl PacketOpener {
    /// An opener that has received nothing.
    pub fn new(key: GroupKey) -> Self {
        let instances = Vec::with_capacity(MAX_INSTANCES);
        Self { key, instances, last: 0, opened: 0, rejected: RejectedPackets::default() }
    }

    /// Checks a datagram that has arrived on `channel`, and decrypts it in place if it is
    /// encrypted. If it returns true, a member of the group has sent the datagram on this channel,
    /// and it was not received before. It then has EXT_NOP in place of the seal. Otherwise the
    /// datagram is counted, and has any contents.
    pub fn open(&mut self, channel: u8, datagram: &mut [u8]) -> bool {
        let Some(sealed) = SealedDatagram::find(datagram) else {
            self.rejected.unsealed += 1;
            return false;
        };
        if sealed.field.channel != channel {
            self.rejected.forged += 1;
            return false;
        }
        let Some(at) = self.find(sealed.field.session.id) else {
            return self.open_first(sealed, datagram);
        };
        let Some(instance) = self.instances.get_mut(at) else { return false };
        let count = sealed.field.count;
        let is_new = instance.is_new(&sealed.field);
        if !is_new && !instance.window(&sealed.field).is_some_and(|it| it.is_older(count)) {
            self.rejected.replayed += 1;
            return false;
        }
        if !sealed.open(datagram, &instance.cipher) {
            self.rejected.forged += 1;
            return false;
        }
        if !is_new && !instance.window(&sealed.field).is_some_and(|it| it.begins_again(count)) {
            self.rejected.replayed += 1;
            return false;
        }
        self.opened += 1;
        instance.insert(&sealed.field);
        instance.opened_at = self.opened;
        self.last = at;
        true
    }

    /// The packets that were dropped.
    pub fn rejected(&self) -> RejectedPackets {
        self.rejected
    }

    fn find(&self, id: SealId) -> Option<usize> {
        let is_last = self.instances.get(self.last).is_some_and(|last| last.id == id);
        if is_last {
            return Some(self.last);
        }
        self.instances.iter().position(|instance| instance.id == id)
    }

    /// The first packet of a run. Its key is derived again for each packet until one is valid:
    /// junk takes no place, and costs a derivation and a check.
    #[cold]
    fn open_first(&mut self, sealed: SealedDatagram, datagram: &mut [u8]) -> bool {
        let id = sealed.field.session.id;
        let cipher = InstanceCipher::derive(&self.key, id);
        if !sealed.open(datagram, &cipher) {
            self.rejected.forged += 1;
            return false;
        }
        if self.instances.len() >= MAX_INSTANCES {
            let instances = self.instances.iter().enumerate();
            if let Some((at, _)) = instances.min_by_key(|(_, instance)| instance.opened_at) {
                self.instances.swap_remove(at);
            }
        }
        self.opened += 1;
        let mut instance = Instance { id, cipher, windows: Vec::new(), opened_at: self.opened };
        instance.insert(&sealed.field);
        self.last = self.instances.len();
        self.instances.push(instance);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::PacketSealer;
    use super::*;
    use fontana_wire::{HeaderFields, Packet, SealMode, SessionSeal, Toi, Tsi};
    use proptest::prelude::*;

    fn key(byte: u8) -> GroupKey {
        GroupKey::from_bytes([byte; 32])
    }

    /// A packet of run `run` under key 1.
    fn packet(run: u8, channel: u8, count: u64) -> Vec<u8> {
        packet_of(&key(1), SealMode::Authenticated, run, channel, count)
    }

    fn packet_of(key: &GroupKey, mode: SealMode, run: u8, channel: u8, count: u64) -> Vec<u8> {
        let id = SealId([run; 8]);
        let seal = Some(SealField { session: SessionSeal { id, mode }, channel, count });
        let mut datagram = Vec::new();
        HeaderFields { seal, ..HeaderFields::new(Tsi(5), Some(Toi(1))) }.emit(&mut datagram);
        datagram.extend_from_slice(b"idid and a symbol");
        PacketSealer::new(key, id).seal(&mut datagram);
        datagram
    }

    fn open(opener: &mut PacketOpener, channel: u8, mut datagram: Vec<u8>) -> bool {
        opener.open(channel, &mut datagram)
    }

    #[test]
    fn an_opened_packet_is_the_one_that_was_sealed_with_padding_for_the_seal() {
        for mode in [SealMode::Authenticated, SealMode::Encrypted] {
            let mut datagram = packet_of(&key(1), mode, 7, 0, 3);
            let is_readable = datagram.ends_with(b"idid and a symbol");
            assert_eq!(is_readable, mode == SealMode::Authenticated);
            let is_encrypted = Packet::parse(&datagram).unwrap().header.extensions;
            assert_eq!(is_encrypted.are_of_encrypted(), mode == SealMode::Encrypted);
            assert!(PacketOpener::new(key(1)).open(0, &mut datagram));
            assert!(datagram.ends_with(b"idid and a symbol"));
            let packet = Packet::parse(&datagram).unwrap();
            assert_eq!((packet.header.tsi, packet.header.toi), (Tsi(5), Some(Toi(1))));
            assert_eq!(packet.header.extensions.auth(), None);
        }
    }

    /// Any member can send in the name of the sender.
    #[test]
    fn a_packet_with_a_count_far_ahead_does_not_end_a_reception() {
        let mut opener = PacketOpener::new(key(1));
        assert!(open(&mut opener, 0, packet(7, 0, 3)));
        assert!(open(&mut opener, 0, packet(7, 0, (1 << 56) - 2)));
        let opened = (4..104).filter(|&count| open(&mut opener, 0, packet(7, 0, count))).count();
        assert_eq!(opened, 85);
        assert!(!open(&mut opener, 0, packet(7, 0, 103)), "it was received");
    }

    #[test]
    fn every_changed_bit_and_every_other_key_makes_a_packet_invalid() {
        for mode in [SealMode::Authenticated, SealMode::Encrypted] {
            let good = packet_of(&key(1), mode, 7, 0, 3);
            let mut opener = PacketOpener::new(key(1));
            for bit in 0..8 * good.len() {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(!opener.open(0, &mut bad), "bit {bit}");
            }
            for end in 0..good.len() {
                assert!(!open(&mut opener, 0, good[..end].to_vec()), "{end} bytes");
            }
            assert!(!open(&mut opener, 0, [&good[..], b"!"].concat()));
            assert!(opener.instances.is_empty());
            assert!(!open(&mut PacketOpener::new(key(2)), 0, good.clone()));
            assert!(open(&mut opener, 0, good));
        }
    }

    #[test]
    fn packets_are_dropped_the_second_time_too_late_or_on_another_channel() {
        let mut opener = PacketOpener::new(key(1));
        let mut take = |channel, count| open(&mut opener, channel, packet(1, channel, count));
        assert!(take(0, 2_000) && take(0, 1_999) && take(3, 1_999) && take(0, 977));
        assert!(!take(0, 2_000) && !take(0, 1_999) && !take(3, 1_999), "again");
        assert!(!take(0, 976), "more than 1 024 late");
        assert!(!open(&mut opener, 0, packet(1, 3, 2_000)), "sent on channel 3");
        assert!(!open(&mut opener, 0, b"no packet".to_vec()));
        let expected = RejectedPackets { unsealed: 1, forged: 1, replayed: 4 };
        assert_eq!((opener.rejected(), opener.rejected().total()), (expected, 6));
    }

    #[test]
    fn the_run_that_was_authenticated_least_recently_is_forgotten_first() {
        let mut opener = PacketOpener::new(key(1));
        for run in 0..16 {
            assert!(open(&mut opener, 0, packet(run, 0, 1)));
        }
        assert!(open(&mut opener, 0, packet(0, 0, 2)));
        // Junk in the name of further runs takes no place.
        for run in 50..90 {
            let junk = packet_of(&key(2), SealMode::Authenticated, run, 0, 1);
            assert!(!open(&mut opener, 0, junk));
        }
        assert!(open(&mut opener, 0, packet(16, 0, 1)));
        assert_eq!(opener.instances.len(), 16);
        assert!(!open(&mut opener, 0, packet(0, 0, 1)), "run 0 is remembered");
        assert!(!open(&mut opener, 0, packet(2, 0, 1)), "and so are all but one");
        assert!(open(&mut opener, 0, packet(1, 0, 1)), "run 1 was the least recent one");
    }

    proptest! {
        #[test]
        fn any_bytes_are_rejected(mut datagram in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut opener = PacketOpener::new(key(1));
            prop_assert!(!opener.open(0, &mut datagram));
            prop_assert_eq!(opener.rejected().total(), 1);
        }

        /// Random bytes rarely have a seal, so these follow a header with one.
        #[test]
        fn any_bytes_with_a_seal_are_rejected(
            words in 9_u8..30,
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut datagram = [&[0x10, 0xA0, words, 6][..], &rest[..]].concat();
            let at = usize::from(words) * 4 - 36;
            if let Some(start) = datagram.get_mut(at..at + 4) {
                start.copy_from_slice(&[1, 9, 0xF3, 0]);
            }
            prop_assert!(!PacketOpener::new(key(1)).open(0, &mut datagram));
        }
    }
}
