//! The swarm finds nothing, and is the same every time.
//!
//! ```sh
//! fontana-lab swarm --seeds 5000 --seed 1
//! ```

use fontana_lab::swarm::{Played, Swarm, play, play_one};

#[test]
fn no_run_of_the_swarm_breaks_an_invariant() {
    let swarm = Swarm { seeds: 60, ..Swarm::default() };
    for Played { seed, what, outcome } in play(&swarm, &|_| ()).unwrap() {
        assert!(outcome.is_ok(), "seed {seed}: {what}: {outcome:?}");
    }
}

#[test]
fn a_seed_draws_the_same_run_again() {
    for seed in [1, 2] {
        let (one, other) = (play_one(seed), play_one(seed));
        assert_eq!((one.what, &one.outcome), (other.what, &other.outcome));
        assert!(one.outcome.is_ok_and(|tally| tally.deliveries > 0));
    }
}
