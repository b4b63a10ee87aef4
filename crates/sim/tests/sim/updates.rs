//! New versions of content that receivers have in an earlier version.

use crate::scene::{Run, SYMBOL, Scene, until_complete};
use fontana_fec::Sbn;
use fontana_proto::{BlockId, Driver, Instant};
use fontana_sim::{Either, HostConfig, IdRunner, LinkConfig, LossModel, NodeId, Rooted};
use fontana_wire::Toi;
use std::time::Duration;

const MBIT: u64 = 125_000;
const BYTES: u64 = 900_000_000;
const BLOCKS: u8 = 100;

fn block(sbn: u32) -> BlockId {
    BlockId { toi: Toi(1), sbn: Sbn(sbn) }
}

/// A session of 900 MB of which receivers lack these blocks, and its leaves.
fn update(changed: &[u32], receivers: u32, loss: f64) -> (Scene, Run, Vec<NodeId>) {
    let mut scene = Scene::new(BYTES, BLOCKS, 50 * MBIT, 1);
    scene.first = changed.iter().copied().map(block).collect();
    let access = LinkConfig::wire(Duration::from_millis(1)).with_loss(LossModel::bernoulli(loss));
    let star = Rooted::star(receivers, LinkConfig::wire(Duration::from_millis(10)), access);
    let mut run = scene.run(star.topology, &[star.source], []);
    for &leaf in &star.leaves {
        let there = (0..u32::from(BLOCKS)).filter(|sbn| !changed.contains(sbn)).map(block);
        let runner = IdRunner::holding(scene.content.clone(), there);
        let receiver = Either::Right(Driver::new(scene.receiver(), runner));
        run.attach(leaf, receiver, HostConfig::receiver([star.source]));
        run.observer_mut().expected += 1;
    }
    (scene, run, star.leaves)
}

#[test]
fn a_byte_that_changed_in_900_mb_costs_receivers_a_tenth_more_than_its_block() {
    let (scene, mut run, leaves) = update(&[42], 1, 0.0);
    assert!(until_complete(&mut run, Duration::from_secs(10)));
    let k = scene.source_symbols() / u64::from(BLOCKS);
    let stats = run.host(leaves[0]).unwrap().right().unwrap().endpoint.stats();
    assert!(stats.datagrams * 10 <= k * 11 + 300, "{} packets for {k} symbols", stats.datagrams);
    // The rate is that of the packets on the wire, with their headers.
    let seconds = run.observer().complete[&leaves[0]].as_nanos() as f64 / 1e9;
    let least = k as f64 * f64::from(SYMBOL) / (50 * MBIT) as f64;
    assert!(seconds < 1.2 * least + 0.2, "{seconds} s, its bytes take {least} s");
}

#[test]
fn receivers_that_lose_a_tenth_have_the_changed_blocks_before_all_others_are_sent() {
    // The last block is a little shorter.
    let (scene, mut run, leaves) = update(&[3, 42, 99], 20, 0.1);
    assert!(until_complete(&mut run, Duration::from_secs(20)));
    let k = 3 * scene.source_symbols() / u64::from(BLOCKS);
    let all: Vec<_> = run.observer().complete.values().copied().collect();
    let last = all.iter().max().unwrap().saturating_since(Instant::ZERO).as_secs_f64();
    let least = k as f64 * f64::from(SYMBOL) / (50 * MBIT) as f64;
    assert!(last < 1.3 * least + 0.2, "{last} s, the bytes take {least} s");
    for &leaf in &leaves {
        let stats = run.host(leaf).unwrap().right().unwrap().endpoint.stats();
        assert!(stats.fresh < k + k / 50, "{} symbols of {k}", stats.fresh);
    }
}
