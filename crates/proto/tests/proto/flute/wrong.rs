//! Wrong bytes in packets.

use super::sender::{Listener, SentFile, pass, schemes, table};
use fontana_proto::{ObjectFailure, ReceiverEvent, SplitMix64};

/// Seeds of each property.
const SEEDS: u64 = 2_000;

/// Changes a bit of a packet.
fn flip(packet: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut flipped = packet.to_vec();
    let bit = random.below(8 * packet.len() as u32);
    flipped[bit as usize / 8] ^= 1 << (bit % 8);
    flipped
}

#[test]
fn one_wrong_bit_in_any_packet_loses_no_file() {
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed, 0);
        let scheme = schemes()[seed as usize % 4];
        let length = 1 + random.below(1_000) as usize;
        let has_fti = random.below(3) == 0;
        let files = [1, 2].map(|toi| {
            let name = if toi == 1 { "a" } else { "b" };
            let file = SentFile::new(toi, name, length, seed + toi as u64);
            SentFile { scheme, has_fti, ..file }
        });
        let wrong = random.below(pass(1, &files, true).len() as u32) as usize;
        // Nothing shows that a table is wrong before another one comes.
        let complete = wrong >= table(1, &files, true).len() && random.below(2) == 0;
        let packets = pass(1, &files, complete);
        let mut listener = Listener::new();
        for (at, packet) in packets.iter().enumerate() {
            let packet = if at == wrong { flip(packet, &mut random) } else { packet.clone() };
            listener.hear(&packet);
        }
        listener.repeat(&packets, 8);
        assert!(
            files.iter().all(|file| listener.has(file)),
            "seed {seed}: {:?}",
            listener.events()
        );
        assert!(complete || listener.conclude(), "seed {seed}: {:?}", listener.events());
        assert!(listener.receiver.complete_at.is_some(), "seed {seed}");
    }
}

#[test]
fn a_file_whose_bytes_are_wrong_twice_is_given_up_and_the_others_arrive() {
    let sent = [SentFile::new(1, "a", 500, 1), SentFile::new(2, "b", 500, 2)];
    let other = SentFile { bytes: SentFile::new(1, "a", 500, 3).bytes, ..sent[0].clone() };
    let mut packets = table(1, &sent, true);
    packets.extend(other.packets());
    packets.extend(sent[1].packets());
    let mut listener = Listener::new();
    listener.repeat(&packets, 6);
    assert!(listener.has(&sent[1]) && listener.file("a").is_none());
    assert_eq!(listener.dropped(), 1);
    let events = &listener.receiver.events;
    let failed = |event: &ReceiverEvent| {
        matches!(event, ReceiverEvent::ObjectFailed { failure: ObjectFailure::Mismatched(_), .. })
    };
    assert!(events.iter().any(failed), "{events:?}");
    assert!(matches!(events.last(), Some(ReceiverEvent::GivenUp { error: None })), "{events:?}");
}

#[test]
fn a_file_that_is_always_wrong_is_collected_once_in_two_seconds() {
    let sent = SentFile::new(1, "a", 500, 1);
    let mut listener = Listener::new();
    for seed in 0..2_000 {
        let other = SentFile { bytes: SentFile::new(1, "a", 500, 7 + seed).bytes, ..sent.clone() };
        listener.hear_all(&table(1, std::slice::from_ref(&sent), true));
        listener.hear_all(&other.packets());
    }
    let (count, seconds) = (listener.dropped() as u64, listener.now.as_nanos() / 1_000_000_000);
    assert!(count > seconds / 3 && count <= seconds / 2 + 1, "{count} in {seconds} s");
    listener.repeat(&pass(1, std::slice::from_ref(&sent), true), 5);
    assert!(listener.has(&sent) && listener.receiver.complete_at.is_some());
}
