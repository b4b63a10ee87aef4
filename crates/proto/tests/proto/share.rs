//! Receivers that share, on bytes: what others send them, right or wrong.

use crate::support::site::{STRANGER, Site, address, forged};
use std::time::Duration;

/// The ids at the ends of what a message can carry.
const EXTREME: [u32; 6] = [0, 1 << 23, (1 << 24) - 1, 1 << 24, u32::MAX - 1, u32::MAX];

#[test]
fn no_symbol_id_ends_a_receiver() {
    for size in [0, 1, 63, 64, 256] {
        let mut site = Site::new(1, &[12]);
        let blocks = site.blocks();
        site.join(|_, _| false);
        for esi in EXTREME {
            for &block in &blocks {
                site.send(STRANGER, &forged(&site, block, esi, true, size));
            }
        }
        site.run(Duration::from_secs(1));
        site.join(|_, _| true);
        assert!(site.run_until_complete(Duration::from_secs(30)), "{size} bytes");
    }
}

/// A forged symbol in the name of the only member that has everything: its symbols wait, until no
/// other host brings any.
#[test]
fn one_forged_symbol_in_the_name_of_a_member_does_not_silence_it() {
    for count in [1, 3, 40] {
        let mut site = Site::new(2, &[40, 30, 40]);
        let blocks = site.blocks();
        site.join(|_, esi| esi % 10 != 0);
        site.join(|_, _| true);
        let from = address(2, 7_702);
        for esi in 0..count {
            for &block in &blocks {
                let datagram = forged(&site, block, 5_000 + esi, true, 64);
                site.send_as(from, &datagram);
            }
        }
        assert!(site.run_until_complete(Duration::from_secs(30)), "{count} forged symbols");
    }
}

/// A stranger that forges symbols from its own address, at a tenth of the members' rate, delays
/// a member that lacks a part of one block, and does not stop it.
#[test]
fn forged_symbols_from_an_address_delay_a_member_by_seconds() {
    let bytes_of_a_symbol = 64;
    let time = |per_second: u64| {
        let mut site = Site::new(3, &[600]);
        let block = site.blocks()[0];
        site.join(|_, esi| esi % 10 != 3);
        site.join(|_, _| true);
        let mut number = 0;
        for _ in 0..3_000 {
            site.run(Duration::from_millis(10));
            if site.is_complete() {
                break;
            }
            let due = site.now.as_nanos() * per_second / 1_000_000_000;
            while number < due {
                number += 1;
                let esi = 9_000_000 + number as u32;
                let datagram = forged(&site, block, esi, number % 2 == 0, bytes_of_a_symbol);
                site.send(STRANGER, &datagram);
            }
        }
        assert!(site.is_complete(), "{per_second} a second: {}", site.summary());
        Duration::from_nanos(site.now.as_nanos())
    };
    let alone = time(0);
    assert!(alone < Duration::from_secs(3), "{alone:?}");
    for per_second in [5, 50, 390] {
        let with = time(per_second);
        assert!(with < alone * 3 / 2 + Duration::from_secs(10), "{per_second}: {with:?}");
    }
}

/// What the session still brings is not taken from others: a forged symbol would take its place.
#[test]
fn nothing_is_taken_from_others_while_the_session_brings_symbols() {
    let mut site = Site::new(4, &[80]);
    let block = site.blocks()[0];
    site.join(|_, _| false);
    for esi in 0..80 {
        let datagram = forged(&site, block, 79 - esi, true, 64);
        site.send(STRANGER, &datagram);
        site.run(Duration::from_millis(100));
        let symbol = site.symbol(block, fontana_fec::Esi(esi));
        let (now, member) = (site.now, site.members[0].as_mut().unwrap());
        member.driver.pull(now, block, esi, &symbol);
    }
    site.run(Duration::from_millis(1));
    assert!(site.is_complete(), "{}", site.summary());
    assert_eq!(site.members[0].as_ref().unwrap().driver.endpoint.stats().corrupt_blocks, 0);
}
