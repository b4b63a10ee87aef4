//! The swarm: many short runs of the real sender and receivers, each with everything drawn from its
//! seed, and each checked for what must hold in all of them.
//!
//! A seed draws the network, its losses and queues and the cross traffic on it; duplicates, packets
//! that ten thousand others overtake, and damage that no checksum notices; hosts that crash and go
//! on with what they had, links that fail, clocks that jump, receivers that come late; leaves that
//! take 10 s, joins that are ignored, receivers that hear their top layer only; mirrors, and
//! strangers who send spoiled packets under the same name; the content, its codes, the order, the
//! congestion control, and the receivers' policy. One run in three is on bytes.
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
mod hosts;

pub use checks::InvariantViolation;

/// Which runs.
#[derive(Clone, Copy, Debug)]
pub struct Swarm {
    /// How many.
    pub seeds: u32,
    /// The seed of the first; the others follow.
    pub first_seed: u64,
    /// On how many threads. The runs do not depend on it.
    pub threads: NonZeroUsize,
}

impl Default for Swarm {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { seeds: 500, first_seed: crate::run::DEFAULT_SEED, threads }
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Played {
    /// What it was drawn from: the whole report of a run that went wrong.
    pub seed: u64,
    /// What it was about, in a line.
    pub what: String,
    /// What came of it.
    pub outcome: Result<Tally, InvariantViolation>,
}

/// Counts of a run in which everything held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// BLAKE3 of all that happened.
    pub digest: String,
    /// Things that happened.
    pub events: u64,
    /// Datagrams that hosts heard.
    pub deliveries: u64,
    /// Receivers, all of which are complete.
    pub receivers: u64,
    /// Blocks whose bytes were found to be wrong, and were received again.
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
    let scenario = Scenario::draw(seed, &BOUNDS);
    match Drawn::new(&scenario) {
        None => Played { seed, what: String::new(), outcome: Err(InvariantViolation::Drawing) },
        Some(drawn) => {
            Played { seed, what: drawn.what.clone(), outcome: outcome(&scenario, &drawn) }
        }
    }
}

/// How long it is waited for completion after the last trouble. Receivers that find their rate
/// behind wires that lose half of all packets find the lowest one: ten packets a second, of which
/// the carousel of a code without repair needs many hundreds.
const PATIENCE: Duration = Duration::from_secs(1_200);

fn outcome(scenario: &Scenario, drawn: &Drawn) -> Result<Tally, InvariantViolation> {
    let receivers: Vec<NodeId> = scenario.receivers.iter().map(|receiver| receiver.node).collect();
    let mut hosts = SwarmHosts::new(drawn);
    let settled = |run: &SwarmRun| checks::is_settled(run, &receivers);
    let PlayedScenario { run, .. } = scenario.play(
        &mut hosts,
        Checker::new(drawn, &scenario.senders),
        PATIENCE,
        checks::note_calm,
        settled,
    )?;
    checks::judge(&run, drawn, &scenario.senders, &receivers, PATIENCE.as_secs())?;
    let stats = run.stats();
    let corrupt = |node: &NodeId| {
        let host = run.host(*node).and_then(Either::right);
        host.map_or(0, |host| host.endpoint.receiver.stats().poisoned_blocks)
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

/// A digest of all that happened in these runs.
pub fn digest(runs: &[Played]) -> String {
    let mut hasher = blake3::Hasher::new();
    for run in runs {
        hasher.update(&run.seed.to_le_bytes());
        let digest = run.outcome.as_ref().map_or("", |tally| tally.digest.as_str());
        hasher.update(digest.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
