//! The real sender and receivers on simulated networks.

use crate::scene::{Run, Scene, until_complete};
use fontana_proto::{Driver, Instant, SubscriptionLimits};
use fontana_sim::{
    Dumbbell, Either, Fault, HostConfig, LinkConfig, LossModel, Probability, Rooted, WireFaults,
};
use std::time::Duration;

const MBIT: u64 = 125_000;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Three receivers behind a lossy bottleneck, which start one after the other.
fn dumbbell(seed: u64) -> Run {
    let scene = Scene::new(400_000, 2, 8 * MBIT, seed);
    let bottleneck =
        LinkConfig::bottleneck(10 * MBIT, ms(100), ms(20)).with_loss(LossModel::markov(0.1, 4.0));
    let access = LinkConfig { graft: ms(5), prune: ms(50), ..LinkConfig::wire(ms(2)) };
    let Dumbbell { topology, pairs, .. } =
        Dumbbell::new(3, bottleneck, access.with_loss(LossModel::bernoulli(0.02)));
    let receivers: Vec<_> =
        pairs.iter().zip(0..).map(|(pair, i)| (pair.to, Instant::ZERO + ms(300 * i))).collect();
    scene.run(topology, &[pairs[0].from], receivers)
}

#[test]
fn receivers_behind_a_lossy_bottleneck_complete_and_the_run_repeats_exactly() {
    let run = |seed| {
        let mut run = dumbbell(seed);
        assert!(until_complete(&mut run, Duration::from_secs(10)));
        for (node, _) in run.observer().complete.clone() {
            let stats = run.host(node).unwrap().right().unwrap().endpoint.stats();
            assert_eq!(stats.duplicates, 0, "every symbol is fresh");
            assert!(stats.lost > 0 && stats.corrupt_blocks == 0);
        }
        (run.digest(), run.stats(), run.observer().complete.clone())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

/// Each link has its own random stream.
#[test]
fn more_receivers_change_nothing_of_what_the_first_one_hears() {
    let first = |receivers| {
        let p = Probability::new;
        let faults =
            WireFaults { duplicate: p(0.02), reorder: p(0.05), held: ms(7), corrupt: p(0.001) };
        let access = LinkConfig { jitter: ms(2), faults, ..LinkConfig::wire(ms(2)) };
        let access = access.with_loss(LossModel::markov(0.1, 3.0));
        let star = Rooted::star(receivers, LinkConfig::wire(ms(10)), access);
        let scene = Scene::new(200_000, 1, 8 * MBIT, 9);
        let hosts = star.leaves.iter().map(|&leaf| (leaf, Instant::ZERO));
        let mut run = scene.run(star.topology, &[star.source], hosts);
        assert!(until_complete(&mut run, Duration::from_secs(20)));
        let stats = run.host(star.leaves[0]).unwrap().right().unwrap().endpoint.stats();
        (run.observer().complete[&star.leaves[0]], stats)
    };
    assert_eq!(first(1), first(5));
}

#[test]
fn who_leaves_costs_the_bottleneck_nothing_any_more() {
    let mut run = dumbbell(3);
    assert!(until_complete(&mut run, Duration::from_secs(10)));
    // Until the last prune has taken effect, and the last packet has arrived.
    run.run_until(run.now() + ms(200)).unwrap();
    let (before, heard) = (run.stats().sent, run.stats().deliveries);
    let carried = |run: &Run| run.link(fontana_sim::LinkId(0)).unwrap().stats().offered;
    let offered = carried(&run);
    run.run_until(run.now() + ms(1_000)).unwrap();
    assert!(run.stats().sent > before + 500, "the sender goes on");
    assert_eq!((run.stats().deliveries, carried(&run)), (heard, offered));
}

#[test]
fn damage_duplicates_and_overtaking_cost_time_and_never_a_wrong_byte() {
    let p = Probability::new;
    let faults =
        WireFaults { duplicate: p(0.02), reorder: p(0.05), held: ms(7), corrupt: p(0.004) };
    let trunk = LinkConfig { faults, ..LinkConfig::wire(ms(10)) };
    let star = Rooted::star(4, trunk.with_loss(LossModel::bernoulli(0.05)), LinkConfig::default());
    let scene = Scene::new(300_000, 3, 8 * MBIT, 5);
    let receivers = star.leaves.iter().map(|&leaf| (leaf, Instant::ZERO));
    let mut run = scene.run(star.topology, &[star.source], receivers);
    assert!(until_complete(&mut run, Duration::from_secs(60)));
    assert!(run.observer().corrupt > 0, "some block was damaged, and noticed");
}

#[test]
fn a_crashed_receiver_goes_on_where_its_disk_stands() {
    let star = Rooted::star(1, LinkConfig::wire(ms(10)), LinkConfig::default());
    let scene = Scene::new(1_000_000, 1, 8 * MBIT, 6);
    let (source, leaf) = (star.source, star.leaves[0]);
    let mut run = scene.run(star.topology, &[source], [(leaf, Instant::ZERO)]);
    run.run_until(Instant::ZERO + ms(600)).unwrap();
    let crashed = run.detach(leaf).unwrap();
    let crashed = crashed.right().unwrap();
    let heard = crashed.endpoint.stats().fresh;
    assert!(heard > 300 && heard < scene.source_symbols(), "{heard}");
    run.run_until(Instant::ZERO + ms(900)).unwrap();
    let next = Either::Right(Driver::new(scene.receiver(), crashed.runner.restarted()));
    run.attach(leaf, next, HostConfig::receiver([source]));
    assert!(until_complete(&mut run, Duration::from_secs(5)));
    let stats = run.host(leaf).unwrap().right().unwrap().endpoint.stats();
    // Symbols from before the manifest are processed all at once: some are redundant.
    let (both, k) = (heard + stats.fresh, scene.source_symbols());
    assert!((k..k + k / 5).contains(&both), "{heard} and {both} of {k}");
}

#[test]
fn a_partition_and_a_clock_that_jumps_only_cost_time() {
    let star = Rooted::star(3, LinkConfig::wire(ms(10)), LinkConfig::wire(ms(1)));
    let scene = Scene::new(500_000, 1, 8 * MBIT, 7);
    let receivers = star.leaves.iter().map(|&leaf| (leaf, Instant::ZERO));
    let mut run = scene.run(star.topology, &[star.source], receivers);
    let trunk = fontana_sim::LinkId(0);
    run.run_until(Instant::ZERO + ms(100)).unwrap();
    run.inflict(Fault::Cut(trunk));
    run.inflict(Fault::ClockJump(star.leaves[0], Duration::from_secs(30)));
    run.inflict(Fault::ClockJump(star.source, Duration::from_secs(5)));
    run.run_until(Instant::ZERO + ms(2_000)).unwrap();
    assert!(run.observer().complete.is_empty());
    run.inflict(Fault::Mend(trunk));
    assert!(until_complete(&mut run, Duration::from_secs(5)));
}

#[test]
fn each_receiver_of_a_layered_session_is_sent_the_layers_that_it_takes() {
    let access = LinkConfig { graft: ms(5), prune: ms(50), ..LinkConfig::wire(ms(2)) };
    let star = Rooted::star(3, LinkConfig::wire(ms(10)), access);
    let scene = Scene::new(400_000, 1, 0, 8).layered(&[50_000, 50_000, 100_000, 200_000]);
    let mut run = scene.run(star.topology.clone(), &[star.source], []);
    for (&leaf, max_channels) in star.leaves.iter().zip([1, 2, 4]) {
        let limits = SubscriptionLimits { max_channels, ..SubscriptionLimits::default() };
        let receiver = scene.receiving(scene.receiver_of(limits));
        run.attach(leaf, receiver, HostConfig::receiver([star.source]));
        run.observer_mut().expected += 1;
    }
    assert!(until_complete(&mut run, Duration::from_secs(30)));
    let seconds = |leaf| run.observer().complete[leaf].as_nanos() as f64 / 1e9;
    // 400 000 bytes and their headers at 50, 100 and 400 kB/s.
    for (leaf, expected) in star.leaves.iter().zip([8.3, 4.2, 1.1]) {
        assert!((0.9..1.2).contains(&(seconds(leaf) / expected)), "{leaf:?}: {}", seconds(leaf));
        let stats = run.host(*leaf).unwrap().right().unwrap().endpoint.stats();
        assert_eq!((stats.duplicates, stats.lost), (0, 0));
        let path = run.topology().path(star.source, *leaf).unwrap();
        let crossed = run.link(*path.last().unwrap()).unwrap().stats().carried_bytes;
        assert!(crossed < 520_000, "{leaf:?}: {crossed} bytes for 400 000");
    }
}
