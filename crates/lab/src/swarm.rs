//! The swarm: many short runs of the real sender and receivers, with a configuration that is drawn
//! from a seed, and checked for the invariants of all runs.
//!
//! A seed draws:
//!
//! - the network, its losses, queues and cross traffic; duplicates, packets that ten thousand
//!   others overtake, and damage that no checksum detects;
//! - hosts that crash and resume, links that fail, clocks that jump, receivers that start late;
//!   leaves that take 10 s, joins that are ignored, receivers that get only their top layer;
//! - mirrors, and strangers that send corrupt packets under the same TSI;
//! - receivers that share with each other, report to a sender, and request what they lack of it;
//!   half of those that report sign, beside old roll calls that are sent again;
//! - sites that their senders leave, whose members have parts of the content and leave after their
//!   first answers: the others complete each other;
//! - strangers who send to members and to the collector, also in the names of others: in these for
//!   ten seconds after the last fault, and what only delays without end;
//! - the content, its codes, the order, the congestion control, and the policy of the receivers.
//!
//! One run in three is on bytes.
//!
//! ```
//! use fontana_lab::swarm;
//!
//! # fn main() -> Result<(), fontana_net::ThreadError> {
//! let runs = swarm::play(&swarm::Swarm { seeds: 3, ..swarm::Swarm::default() }, &|_| ())?;
//! assert!(runs.iter().all(|run| run.outcome.is_ok()));
//! # Ok(())
//! # }
//! ```

use crate::identity::DEFAULT_SEED;
use checks::{Checker, SwarmRun};
use draw::{BOUNDS, Drawn};
use fontana_net::{ThreadError, thread};
use fontana_sim::{Either, NodeId, PlayedScenario, Scenario};
use hosts::SwarmHosts;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

mod checks;
mod draw;
mod forger;
pub(crate) mod hosts;

pub use checks::InvariantViolation;

/// The runs of a swarm.
#[derive(Clone, Copy, Debug)]
pub struct Swarm {
    /// Number of runs.
    pub seeds: u32,
    /// Seed of the first run; the others have the following ones.
    pub first_seed: u64,
    /// Number of threads. The runs do not depend on it.
    pub threads: NonZeroUsize,
}

impl Default for Swarm {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { seeds: 500, first_seed: DEFAULT_SEED, threads }
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its seed, which reproduces the run.
    pub seed: u64,
    /// Its configuration, in a line.
    pub what: String,
    /// Counts, or the invariant that was violated.
    pub outcome: Result<Tally, InvariantViolation>,
}

/// Counts of a run in which all invariants held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// BLAKE3 of everything that the run did.
    pub digest: String,
    /// Events of the simulation.
    pub events: u64,
    /// Datagrams that were delivered to hosts.
    pub deliveries: u64,
    /// Receivers, all of which are complete.
    pub receivers: u64,
    /// Blocks that were corrupt, and were received again.
    pub poisoned_blocks: u64,
    /// Seconds of virtual time.
    pub virtual_seconds: u64,
}

/// Plays the runs. `on_end` is called after each, from any thread; the result is in the order of
/// the seeds.
///
/// # Errors
/// The system has no thread left.
pub fn play(swarm: &Swarm, on_end: &(dyn Fn(&Played) + Sync)) -> Result<Vec<Played>, ThreadError> {
    let next = AtomicU32::new(0);
    let runs = Mutex::new(Vec::new());
    let play_all = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= swarm.seeds {
                break;
            }
            let played = play_one(swarm.first_seed.wrapping_add(index.into()));
            on_end(&played);
            runs.lock().unwrap_or_else(PoisonError::into_inner).push(played);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..swarm.threads.get().min(swarm.seeds as usize) {
            if let Err(error) = thread::spawn_scoped(scope, "lab", play_all) {
                // The threads that were started find no further seed.
                next.store(swarm.seeds, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })?;
    let mut runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
    runs.sort_by_key(|run: &Played| run.seed.wrapping_sub(swarm.first_seed));
    Ok(runs)
}

/// Plays the run of a seed.
pub fn play_one(seed: u64) -> Played {
    let mut scenario = Scenario::draw(seed, &BOUNDS);
    let drawn = Drawn::new(&scenario);
    if let Some(drawn) = &drawn {
        drawn.empty(&mut scenario);
    }
    match drawn {
        None => Played { seed, what: String::new(), outcome: Err(InvariantViolation::Drawing) },
        Some(drawn) => {
            Played { seed, what: drawn.what.clone(), outcome: outcome(&scenario, &drawn) }
        }
    }
}

/// Longest time from the last incident to completion. Behind a wire that loses half of all packets,
/// congestion control finds the lowest rate: ten packets a second, of which the carousel of a code
/// without repair symbols needs many hundreds.
const PATIENCE: Duration = Duration::from_secs(1_200);
/// The same, where the senders have left.
const PATIENCE_ALONE: Duration = Duration::from_secs(900);

fn outcome(scenario: &Scenario, drawn: &Drawn) -> Result<Tally, InvariantViolation> {
    let numbered = scenario.receivers.iter().zip(&drawn.deserts);
    let staying = numbered.filter(|(_, deserts)| deserts.is_none());
    let receivers: Vec<NodeId> = staying.map(|(receiver, _)| receiver.node).collect();
    let patience = if drawn.leaves_at.is_some() { PATIENCE_ALONE } else { PATIENCE };
    let mut hosts = SwarmHosts::new(drawn, scenario);
    let settled = |run: &SwarmRun| checks::is_settled(run, &receivers);
    let PlayedScenario { run, .. } = scenario.play(
        &mut hosts,
        Checker::new(drawn, &scenario.senders),
        patience,
        |run| checks::note_calm(run, drawn, &receivers),
        settled,
    )?;
    checks::judge(&run, drawn, &scenario.senders, &receivers, patience.as_secs())?;
    let stats = run.stats();
    let corrupt = |node: &NodeId| {
        let host = run.host(*node).and_then(Either::right);
        host.map_or(0, |host| host.endpoint.receiver.stats().corrupt_blocks)
    };
    Ok(Tally {
        digest: run.digest().iter().map(|byte| format!("{byte:02x}")).collect(),
        events: stats.events,
        deliveries: stats.deliveries,
        receivers: receivers.len() as u64,
        poisoned_blocks: receivers.iter().map(corrupt).sum(),
        virtual_seconds: run.now().as_nanos() / 1_000_000_000,
    })
}

/// A digest of everything that these runs did.
pub fn digest(runs: &[Played]) -> String {
    let mut hasher = blake3::Hasher::new();
    for run in runs {
        hasher.update(&run.seed.to_le_bytes());
        let digest = run.outcome.as_ref().map_or("", |tally| tally.digest.as_str());
        hasher.update(digest.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
