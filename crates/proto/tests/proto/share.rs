//! Receivers that share, on bytes: what others send them, right or wrong.

use crate::support::site::{STRANGER, Site, forged};
use std::time::Duration;

/// The ids at the ends of what a message can carry.
const EXTREME: [u32; 6] = [0, 1 << 23, (1 << 24) - 1, 1 << 24, u32::MAX - 1, u32::MAX];

#[test]
fn no_symbol_id_ends_a_receiver() {
    for size in [0, 1, 63, 256] {
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
