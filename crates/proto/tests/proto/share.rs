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
