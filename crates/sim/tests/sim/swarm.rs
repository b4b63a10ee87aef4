//! Scenarios drawn from seeds, with the real sender and receivers.
//!
//! ```sh
//! SWARM_SEEDS=5000 cargo test --release -p fontana-sim --test sim -- --ignored swarm::
//! ```

use crate::scene::{Milestones, Peer, Scene};
use fontana_proto::Driver;
use fontana_sim::{Either, HostFactory, PlayedScenario, Scenario, SendingHost, SwarmBounds};
use std::time::Duration;

const RATE: u64 = 1_000_000;

const BOUNDS: SwarmBounds = SwarmBounds {
    senders: 3,
    receivers: 12,
    rate_bytes_per_second: RATE,
    trouble: Duration::from_secs(3),
};

/// Hosts of the same content. A restarted sender has another number.
struct Hosts {
    scene: Scene,
    senders: u64,
}

impl HostFactory<Peer> for Hosts {
    fn sender(&mut self, _number: usize, _earlier: Option<Peer>) -> SendingHost<Peer> {
        let host = self.scene.sending(self.senders);
        self.senders += 1;
        SendingHost { host, cap: self.scene.cap() }
    }

    fn receiver(&mut self, _number: usize, earlier: Option<Peer>) -> Peer {
        let earlier = earlier.as_ref().and_then(Either::right);
        let runner =
            earlier.map_or_else(|| self.scene.runner(), |driver| driver.runner.restarted());
        Either::Right(Driver::new(self.scene.receiver(), runner))
    }
}

/// Plays the scenario of a seed. Returns the run's digest and the number of complete receivers.
fn play(seed: u64) -> ([u8; 32], usize) {
    let scenario = Scenario::draw(seed, &BOUNDS);
    let mut random = scenario.random();
    let bytes = 20_000 + u64::from(random.below(200_000));
    let blocks = 1 + random.below(4) as u8;
    let scene = Scene::new(bytes, blocks, RATE, seed);
    let observer = Milestones { expected: scenario.receivers.len(), ..Milestones::default() };
    let mut hosts = Hosts { scene, senders: 0 };
    let patience = Duration::from_secs(120);
    let played =
        scenario.play(&mut hosts, observer, patience, |_| (), |run| run.observer().all_complete());
    let played = played.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    let PlayedScenario { run, is_done } = played;
    assert!(is_done, "seed {seed}: {:?} of {}", run.observer().complete, scenario.receivers.len());
    (run.digest(), run.observer().complete.len())
}

#[test]
fn no_world_of_the_swarm_breaks_an_invariant_and_all_receivers_complete() {
    for seed in 0..40 {
        play(seed);
    }
}

#[test]
fn the_world_of_a_seed_is_always_the_same() {
    for seed in [3, 14] {
        assert_eq!(play(seed), play(seed));
    }
    assert_ne!(play(3).0, play(14).0);
}

#[test]
#[ignore = "as many seeds as there is time for"]
fn a_large_swarm_finds_nothing() {
    let seeds = option_env!("SWARM_SEEDS").and_then(|seeds| seeds.parse().ok()).unwrap_or(1_000);
    for seed in 1_000..1_000 + seeds {
        play(seed);
    }
}
