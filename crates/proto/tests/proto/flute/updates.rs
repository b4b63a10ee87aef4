//! Newer versions of files, and sessions without end.

use super::sender::{Listener, SentFile, pass, schemes};
use crate::support::world::noise;
use fontana_proto::{DropReason, FileRefusal, ReceiverEvent, SplitMix64};
use std::time::Duration;

/// Seeds of the property.
const SEEDS: u64 = 2_000;

/// The versions of a file: the same name, another TOI.
fn versions(random: &mut SplitMix64, seed: u64) -> Vec<SentFile> {
    let scheme = schemes()[seed as usize % 4];
    (1..=3)
        .map(|toi| {
            let bytes = noise(1 + random.below(900) as usize, 7 * seed + toi);
            let has_md5 = random.below(2) == 0;
            SentFile { bytes, scheme, has_md5, ..SentFile::new(toi.into(), "a", 1, 0) }
        })
        .collect()
}

#[test]
fn an_update_at_any_packet_leaves_the_last_version_and_no_mixture() {
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed, 5);
        let versions = versions(&mut random, seed);
        let mut listener = Listener::new();
        for (instance, version) in (1..).zip(&versions) {
            let packets = pass(instance, std::slice::from_ref(version), false);
            let is_last = instance == 3;
            let most = if is_last { 0 } else { 3 * packets.len() as u32 };
            let count = 2 * packets.len() + random.below(1 + most) as usize;
            let count = if is_last { count } else { random.below(count as u32) as usize };
            for packet in packets.iter().cycle().take(count) {
                // A packet of the version before may be late.
                listener.hear(packet);
            }
            listener.wait(Duration::from_millis(1_500));
        }
        let named = &listener.receiver.runner.files.named;
        let number = |bytes: &[u8]| versions.iter().position(|version| version.bytes == bytes);
        let order: Vec<_> = named.iter().map(|(_, bytes)| number(bytes)).collect();
        assert!(order.iter().all(Option::is_some), "seed {seed}: a mixture");
        assert!(order.is_sorted() && order.last() == Some(&Some(2)), "seed {seed}: {order:?}");
        assert!(listener.conclude(), "seed {seed}: {:?}", listener.events());
    }
}

#[test]
fn an_older_version_is_dropped_when_a_newer_one_is_complete() {
    let [old, new] = [1, 2].map(|toi| SentFile::new(toi, "a", 900, toi as u64));
    let mut listener = Listener::new();
    listener.hear_all(&pass(1, std::slice::from_ref(&old), false)[..4]);
    listener.hear_all(&pass(2, std::slice::from_ref(&new), false));
    let is_superseded = |event: &ReceiverEvent| {
        matches!(event, ReceiverEvent::ObjectDropped { reason: DropReason::Superseded, .. })
    };
    assert_eq!(listener.count(is_superseded), 1);
    listener.hear_all(&old.packets());
    assert!(listener.has(&new) && listener.conclude());
}

#[test]
fn an_older_version_that_completes_first_is_named_first() {
    let [old, new] = [1, 2].map(|toi| SentFile::new(toi, "a", 900, toi as u64));
    let mut listener = Listener::new();
    let (first, second) = (pass(1, std::slice::from_ref(&old), false), new.packets());
    listener.hear_all(&first[..4]);
    listener.hear_all(&pass(2, std::slice::from_ref(&new), false)[..4]);
    listener.hear_all(&first[4..]);
    assert!(listener.has(&old));
    listener.hear_all(&second);
    assert!(listener.has(&new) && listener.conclude());
    assert_eq!(listener.dropped(), 0);
}

/// As GPAC's `llmode` names the parts of a segment.
#[test]
fn a_name_with_too_many_versions_is_refused_and_others_arrive() {
    let mut listener = Listener::new();
    for toi in 1..40 {
        let part = SentFile::new(2 * toi, "part", 300, toi as u64);
        let name = ["a", "b", "c", "d"][toi as usize % 4];
        let other = SentFile::new(2 * toi + 1, name, 300, 99 + toi as u64);
        listener.hear_all(&pass(toi as u32, &[part, other], false));
        listener.wait(Duration::from_millis(450));
    }
    let refused = listener.count(|event| {
        let reason = FileRefusal::TooManyVersions;
        matches!(event, ReceiverEvent::FileRefused { content_location, reason: own, .. }
            if content_location == "part" && *own == reason)
    });
    assert_eq!(refused, 1);
    let named = &listener.receiver.runner.files.named;
    assert_eq!(named.iter().filter(|(name, _)| name != "part").count(), 39);
}

/// The names of segments, which a session without end repeats in no table.
fn names(count: usize) -> Vec<&'static str> {
    (0..count).map(|n| &*format!("segment-{n}").leak()).collect()
}

#[test]
fn a_session_of_100_000_files_takes_no_more_memory_than_one_of_a_few_thousand() {
    const FILES: usize = 100_000;
    let names = names(FILES);
    let mut listener = Listener::new();
    let mut sizes = Vec::new();
    let segment = |n: usize| SentFile::new(n as u128 + 1, names[n], 100, n as u64);
    for n in (0..FILES).step_by(2) {
        let window: Vec<_> = (n.saturating_sub(4)..n + 2).map(segment).collect();
        listener.hear_all(&super::sender::table(n as u32 / 2, &window, false));
        window.iter().rev().take(2).for_each(|file| listener.hear_all(&file.packets()));
        listener.receiver.events.clear();
        let named = &mut listener.receiver.runner.files.named;
        assert_eq!(named.drain(..).count(), 2, "{n}");
        if n % 20_000 == 10_000 {
            sizes.push(format!("{:?}", listener.receiver.endpoint).len());
        }
    }
    // They are forgotten when they are twice as many as are needed.
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!(2 * most < 5 * least, "{sizes:?}");
}
