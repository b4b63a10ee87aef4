//! `fontana-lab swarm`: random worlds, and the invariants of all of them.

use crate::args::SwarmArguments;
use crate::commit::COMMIT;
use crate::events::LabEvent as Line;
use crate::progress;
use fontana::Outcome;
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::json::seconds;
use fontana_lab::swarm::{Played, Swarm, Tally, digest, play};
use std::time::Instant;

pub(crate) fn run(arguments: &SwarmArguments, console: &Console) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let SwarmArguments { seeds, seed, .. } = *arguments;
    let bar = console.bar(progress::cases());
    bar.set_length(seeds.into());
    let swarm = Swarm { seeds, first_seed: seed, ..Swarm::default() };
    let runs = play(&swarm, &|_| bar.inc(1))?;
    bar.finish_and_clear();
    for Played { seed, what, outcome } in &runs {
        let Err(breach) = outcome else { continue };
        console.result(format_args!("! seed {seed}: {breach}\n  {what}"));
        console.result_event(&Line::Breach {
            seed: *seed,
            what: what.clone(),
            message: breach.to_string(),
        });
    }
    let well = || runs.iter().filter_map(|run| run.outcome.as_ref().ok());
    let sum = |count: fn(&Tally) -> u64| well().map(count).sum::<u64>();
    let breaches = runs.len() - well().count();
    let outcome = if breaches == 0 { Outcome::Complete } else { Outcome::VerificationFailed };
    let (receivers, deliveries) = (sum(|run| run.receivers), sum(|run| run.deliveries));
    let digest = digest(&runs);
    console.result_event(&Line::Swarm {
        runs: runs.len() as u64,
        breaches: breaches as u64,
        receivers,
        deliveries,
        corrupt_blocks: sum(|run| run.poisoned_blocks),
        virtual_seconds: sum(|run| run.virtual_seconds),
        digest: digest.clone(),
        seed,
        version: env!("CARGO_PKG_VERSION").into(),
        commit: COMMIT.into(),
        seconds: seconds(began.elapsed()),
        code: exit::code(outcome),
    });
    console.result(format_args!(
        "{} runs from seed {seed}, {receivers} receivers, {deliveries} deliveries; {breaches} broke an \
         invariant; commit {}; digest {digest}",
        runs.len(),
        COMMIT,
    ));
    match runs.iter().find(|run| run.outcome.is_err()) {
        None => Ok(outcome),
        Some(first) => Err(Failure::new(
            outcome,
            format!("{breaches} of {} runs broke an invariant", runs.len()),
            format!("to repeat the first: fontana-lab swarm --seeds 1 --seed {}", first.seed),
        )),
    }
}
