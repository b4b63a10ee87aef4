//! Senders that are stopped and started again, with other files under the same numbers.

use super::sender::{GAP, Listener, SentFile, expires_in, pass, schemes, table, table_of};
use crate::support::world::noise;
use fontana_proto::SplitMix64;
use fontana_wire::Fdt;
use std::collections::BTreeMap;
use std::time::Duration;

/// Seeds of each property.
const SEEDS: u64 = 2_000;

fn one<T: Clone>(it: &T) -> [T; 1] {
    [it.clone()]
}

#[test]
fn the_files_of_two_runs_of_a_sender_are_not_mixed() {
    for seed in 0..SEEDS {
        let mut random = SplitMix64::new(seed, 1);
        let mut draw = |limit: u32| random.below(limit);
        let scheme = schemes()[seed as usize % 4];
        let length = 1 + draw(800) as usize;
        let file = SentFile { scheme, ..SentFile::new(1, "a", length, 2 * seed) };
        let first = SentFile { has_md5: draw(2) == 0, ..file.clone() };
        let second = SentFile {
            has_md5: draw(2) == 0,
            toi: 1 + u128::from(draw(4) / 3),
            name: if draw(2) == 0 { "a" } else { "b" },
            bytes: noise(if draw(2) == 0 { length } else { 1 + draw(800) as usize }, 2 * seed + 1),
            ..file
        };
        let instances = [draw(3), draw(3)];
        let differs = first.name != second.name
            || first.bytes.len() != second.bytes.len()
            || (first.has_md5 && second.has_md5);
        // Nothing shows that the packets are of another file.
        let is_hidden = first.toi == second.toi && !differs && instances[1] >= instances[0];
        if is_hidden && !(second.has_md5 && first.has_md5) {
            continue;
        }
        let packets = pass(instances[0], &one(&first), false);
        let count = draw(2 * packets.len() as u32) as usize;
        let mut listener = Listener::new();
        packets.iter().cycle().take(count).for_each(|packet| listener.hear(packet));
        listener.wait(Duration::from_millis(draw(5_000).into()));
        if !differs && listener.has(&first) {
            // It is complete, and may be the second file.
            continue;
        }
        let complete = draw(2) == 0;
        listener.repeat(&pass(instances[1], &one(&second), complete), 5);
        for (name, bytes) in &listener.receiver.runner.files.named {
            let is_of = |file: &SentFile| file.name == name && file.bytes == *bytes;
            let is_right = is_of(&first) || is_of(&second);
            assert!(is_right, "seed {seed}: {name} is a mixture: {:?}", listener.events());
        }
        let events = listener.events();
        assert!(listener.has(&second), "seed {seed}: {instances:?} {events:?}");
    }
}

#[test]
fn a_table_alone_drops_nothing() {
    let first = SentFile::new(1, "a", 600, 1).without_md5();
    let second = SentFile { name: "b", ..first.clone() };
    let mut listener = Listener::new();
    listener.hear_all(&table(1, &one(&first), false));
    let packets = first.packets();
    let (half, rest) = packets.split_at(5);
    listener.hear_all(half);
    listener.hear_all(&table(2, &one(&second), false));
    assert_eq!((listener.restarts(), listener.dropped()), (1, 0));
    listener.hear_all(rest);
    assert_eq!(listener.dropped(), 1, "these packets fit the new definition");
}

#[test]
fn a_complete_file_stays_when_its_number_is_given_to_another_one() {
    let first = SentFile::new(1, "a", 600, 1);
    let second = SentFile::new(1, "b", 600, 2);
    let mut listener = Listener::new();
    listener.hear_all(&pass(5, &one(&first), false));
    assert!(listener.has(&first));
    listener.wait(Duration::from_secs(1));
    listener.repeat(&pass(0, &one(&second), true), 5);
    assert!(listener.has(&first) && listener.has(&second));
    assert!(listener.receiver.complete_at.is_some());
    assert_eq!((listener.restarts(), listener.dropped()), (1, 0));
}

#[test]
fn what_the_new_run_does_not_list_is_not_waited_for() {
    let missing = SentFile::new(7, "missing", 600, 1);
    let mut listener = Listener::new();
    listener.hear_all(&table(5, &one(&missing), true));
    listener.hear(&missing.packets()[0]);
    listener.repeat(&pass(1, &one(&SentFile::new(1, "a", 600, 2)), true), 5);
    assert!(listener.receiver.complete_at.is_some());
    assert_eq!((listener.restarts(), listener.dropped()), (1, 1));
}

#[test]
fn instances_that_complement_each_other_show_no_restart() {
    let files = [1, 2, 3].map(|toi| {
        let name = ["a", "b", "c"][toi as usize - 1];
        SentFile::new(toi, name, 600, toi as u64).without_md5()
    });
    let passes = (0..).zip(&files).flat_map(|(id, file)| pass(id, &one(file), false));
    let packets: Vec<_> = passes.collect();
    let mut listener = Listener::new();
    for seed in 0..3 {
        let mut random = SplitMix64::new(seed, 2);
        for packet in packets.iter().filter(|_| random.below(5) > 0) {
            listener.hear(packet);
        }
    }
    listener.repeat(&packets, 1);
    assert!(files.iter().all(|file| listener.has(file)));
    assert!(listener.conclude());
}

#[test]
fn attributes_that_a_later_table_adds_show_no_restart() {
    let file = SentFile::new(1, "a", 600, 1);
    let mut without = file.described();
    (without.content_md5, without.content_length, without.oti) = (None, None, None);
    let fdt = |file, complete| Fdt { expires: expires_in(60), complete, files: vec![file] };
    let mut listener = Listener::new();
    listener.hear_all(&table_of(1, &fdt(without.clone(), false)));
    listener.hear_all(&table_of(2, &fdt(file.described(), false)));
    listener.hear_all(&table_of(3, &fdt(without, true)));
    listener.repeat(&file.packets(), 1);
    assert!(listener.has(&file) && listener.receiver.complete_at.is_some());
    assert_eq!((listener.restarts(), listener.dropped()), (0, 0));
}

#[test]
fn a_number_whose_table_has_expired_is_used_again_without_a_warning() {
    let (first, second) = (SentFile::new(1, "a", 600, 1), SentFile::new(1, "b", 600, 2));
    let mut listener = Listener::new();
    let fdt = |file: &SentFile, seconds| Fdt {
        expires: expires_in(seconds),
        complete: false,
        files: vec![file.described()],
    };
    listener.hear_all(&table_of(1, &fdt(&first, 2)));
    listener.hear_all(&first.packets());
    listener.wait(Duration::from_secs(4));
    listener.hear_all(&table_of(2, &fdt(&second, 60)));
    listener.hear_all(&second.packets());
    assert!(listener.has(&first) && listener.has(&second));
    assert_eq!(listener.restarts(), 0);
}

#[test]
fn another_ext_fti_shows_a_restart() {
    let first = SentFile { has_fti: true, ..SentFile::new(1, "a", 900, 1).without_md5() };
    let second = SentFile { name: "b", bytes: noise(700, 2), ..first.clone() };
    let mut listener = Listener::new();
    listener.hear_all(&table(1, &one(&first), false));
    listener.hear_all(&first.packets()[..5]);
    // Its table is lost at first.
    listener.hear_all(&second.packets());
    listener.repeat(&pass(2, &one(&second), true), 5);
    assert!(listener.has(&second) && listener.file("a").is_none());
    assert!(listener.receiver.complete_at.is_some());
}

/// Two senders of one address and TSI.
#[test]
fn tables_that_alternate_replace_each_other_seldom() {
    let files = ["a", "b"].map(|name| SentFile::new(1, name, 60_000, 1).without_md5());
    let tables = files.each_ref().map(|file| table(1, &one(file), false));
    let mut listener = Listener::new();
    for round in 0..600 {
        listener.hear_all(&tables[round % 2]);
        listener.hear_all(&files[round % 2].packets()[..4]);
        listener.wait(Duration::from_millis(75));
    }
    let seconds = listener.now.as_nanos() as usize / 1_000_000_000;
    let dropped = listener.dropped();
    assert!(dropped >= 2 && dropped <= seconds / 5, "{dropped} in {seconds} s");
    assert_eq!(listener.restarts(), seconds.div_ceil(60));
}

/// The stranger sends under the sender's address, which it can only with forged packets.
#[test]
fn a_stranger_who_redefines_all_files_once_a_second_does_not_stop_the_session_for_long() {
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed, 3);
        // Without MD5, nothing shows that a symbol is forged.
        let (has_md5, forges_symbols) = (seed % 2 == 0, seed % 4 == 0);
        let honest: Vec<_> = (1..=5)
            .map(|toi| {
                let name = ["a", "b", "c", "d", "e"][toi as usize - 1];
                SentFile { has_md5, ..SentFile::new(toi, name, 10_000, toi as u64) }
            })
            .collect();
        // The table comes twice a second.
        let honest_table = table(7, &honest, true);
        let content: Vec<_> = honest.iter().flat_map(SentFile::packets).collect();
        let parts = content.chunks(100);
        let carousel: Vec<_> =
            parts.flat_map(|part| honest_table.iter().chain(part)).cloned().collect();
        let mut packets = carousel.iter().cycle();
        let mut listener = Listener::new();
        for attack in 0..20 {
            let forged: Vec<_> = honest
                .iter()
                .map(|file| {
                    let bytes = noise(1 + random.below(20_000) as usize, attack);
                    SentFile { bytes, has_md5: random.below(2) == 0, ..file.clone() }
                })
                .collect();
            listener.hear_all(&table(random.below(1 << 20), &forged, false));
            if forges_symbols {
                forged.iter().for_each(|file| listener.hear(&file.packets()[0]));
            }
            packets.by_ref().take(150).for_each(|packet| listener.hear(packet));
            if listener.receiver.complete_at.is_some() {
                break;
            }
        }
        let dropped = listener.dropped();
        assert!(dropped <= 5 * 20, "{dropped}");
        let (end, before) = (listener.now, listener.events().len());
        let one_pass = GAP * carousel.len() as u32;
        // A file with a forged symbol is collected again.
        let time = one_pass * if forges_symbols { 3 } else { 1 } + Duration::from_secs(3);
        while listener.receiver.complete_at.is_none() && listener.now.saturating_since(end) < time {
            listener.hear(packets.next().unwrap());
        }
        let events = &listener.events()[before..];
        assert!(honest.iter().all(|file| listener.has(file)), "seed {seed}: {events:?}");
        assert!(listener.receiver.complete_at.is_some(), "seed {seed}: {events:?}");
        assert!(listener.restarts() <= 1);
    }
}

/// An hour of a stranger in the name of a session that does not end.
#[test]
fn a_stranger_who_redefines_all_files_takes_little_memory_and_few_lines() {
    let mut random = SplitMix64::new(1, 4);
    let names = ["a", "b", "c", "d", "e"];
    let honest: Vec<_> =
        (1..=5).map(|toi| SentFile::new(toi, names[toi as usize - 1], 3_000, toi as u64)).collect();
    let carousel = [table(7, &honest, false), honest.iter().flat_map(SentFile::packets).collect()];
    let carousel = carousel.concat();
    let mut listener = Listener::new();
    listener.receiver.endpoint.watch_tables();
    listener.receiver.endpoint.delete_expired();
    let (mut sizes, mut packets) = (Vec::new(), carousel.iter().cycle());
    let mut last = BTreeMap::new();
    for attack in 1..=3_600 {
        let forged: Vec<_> = honest
            .iter()
            .map(|file| {
                let bytes = noise(1 + random.below(20_000) as usize, attack);
                SentFile { bytes, has_md5: random.below(2) == 0, ..file.clone() }
            })
            .collect();
        listener.hear_all(&table(random.below(1 << 20), &forged, false));
        forged.iter().for_each(|file| listener.hear(&file.packets()[0]));
        packets.by_ref().take(180).for_each(|packet| listener.hear(packet));
        last.extend(listener.receiver.runner.files.named.drain(..));
        if attack % 600 == 0 {
            sizes.push(format!("{:?}", listener.receiver.endpoint).len());
        }
    }
    let seconds = listener.now.as_nanos() as usize / 1_000_000_000;
    let (first, most) = (sizes[0], sizes.iter().max().unwrap());
    assert!(*most < 2 * first && *most < 1 << 20, "{sizes:?}");
    assert!(listener.restarts() <= seconds.div_ceil(60), "{}", listener.restarts());
    // A file changes at most once in two seconds: it is dropped, found and done.
    let lines = listener.events().len();
    assert!(lines <= 2 * 5 * seconds, "{lines} lines in {seconds} s");
    listener.repeat(&carousel, 20);
    last.extend(listener.receiver.runner.files.named.drain(..));
    assert!(honest.iter().all(|file| last.get(file.name) == Some(&file.bytes)));
}
