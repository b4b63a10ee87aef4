//! The five receivers of the demonstration.

use super::{DEADLINE, MEMORY};
use crate::progress::ReceiveBar;
use fontana::wire::Ticket;
use fontana::{
    Addressing, CancellationToken, Error, Outcome, PreparedReceiver, ReceiveEvent, ReceiveReport,
    Receiver, SimulatedLoss, Verified,
};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// When a receiver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    FromTheStart,
    /// Joins when half of the file's symbols have been sent.
    Late,
    /// Is stopped when it has half of the symbols, then started again.
    Stopped,
}

/// A receiver's name, loss and plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// Share of the packets that it loses.
    pub(super) loss: f64,
    plan: Plan,
}

pub(super) const RECEIVERS: [Part; 5] = [
    Part { name: "clean", loss: 0.0, plan: Plan::FromTheStart },
    Part { name: "lossy", loss: 0.05, plan: Plan::FromTheStart },
    Part { name: "very lossy", loss: 0.40, plan: Plan::FromTheStart },
    Part { name: "late", loss: 0.0, plan: Plan::Late },
    Part { name: "stopped", loss: 0.0, plan: Plan::Stopped },
];

impl Part {
    /// Whether it joins before the first packet is sent.
    pub(super) fn is_early(&self) -> bool {
        self.plan != Plan::Late
    }
}

/// Time between the two runs of the stopped receiver: long enough to be seen and to miss a few
/// thousand packets.
const PAUSE: Duration = Duration::from_secs(1);

/// State that all receivers share.
pub(super) struct Stage<'a> {
    pub(super) ticket: Ticket,
    pub(super) file: &'a Path,
    pub(super) source_symbols: u64,
    pub(super) symbols_sent: AtomicU64,
    pub(super) began: OnceLock<Instant>,
    pub(super) stop: &'a CancellationToken,
}

impl Stage<'_> {
    /// Sets the time at which sending begins.
    pub(super) fn begin(&self) {
        // It is set only here, and once.
        let _ = self.began.set(Instant::now());
    }

    fn elapsed(&self) -> Duration {
        self.began.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// The result of a receiver.
#[derive(Debug, Default)]
pub(super) struct PartResult {
    /// Since sending began.
    pub(super) joined_at: Duration,
    /// From joining until everything was on disk, pauses included.
    pub(super) took: Duration,
    pub(super) verified: Option<Verified>,
    /// Equal to the file that was sent.
    pub(super) is_exact: bool,
    /// The second run resumed with the symbols of the first one.
    pub(super) resumed: bool,
    pub(super) failure: Option<Failure>,
    packets: u64,
    source_symbols: u64,
    lost: u64,
    expected: u64,
    lives: u32,
}

impl PartResult {
    /// All packets of the session that were received, in all runs, over the source symbols.
    pub(super) fn reception_inefficiency(&self) -> Option<f64> {
        (self.source_symbols > 0).then(|| self.packets as f64 / self.source_symbols as f64)
    }

    /// Share of the packets that were lost while it listened.
    pub(super) fn loss(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.lost as f64 / self.expected as f64)
    }

    pub(super) fn was_stopped(&self) -> bool {
        self.lives > 1
    }

    fn add(&mut self, life: &ReceiveReport) {
        let (progress, stats) = (&life.progress, &life.progress.stats);
        self.lives += 1;
        // A run that resumes an earlier one counts the packets of that one as well.
        let before = if self.resumed { 0 } else { self.packets };
        self.packets = before + stats.session_packets;
        self.lost += stats.lost;
        self.expected += stats.expected;
        self.source_symbols = progress.source_symbols.max(self.source_symbols);
        self.verified = life.verified;
    }
}

pub(super) fn bar(console: &Console, part: &Part) -> ReceiveBar {
    let bar = ReceiveBar::named(console, part.name);
    bar.say(if part.is_early() { "" } else { "joins when half of it has been sent" });
    bar
}

/// The sending end of a channel that carries nothing. A receiver drops it when it has joined, or
/// has failed to. The sender waits until all are dropped.
pub(super) type Joining = Option<Sender<Infallible>>;

/// Runs one receiver to its end.
pub(super) fn play(
    part: &Part,
    addressing: &Addressing,
    stage: &Stage<'_>,
    mut bar: ReceiveBar,
    joining: Joining,
) -> PartResult {
    let mut outcome = PartResult::default();
    let result = try_play(part, addressing, stage, &mut bar, joining, &mut outcome);
    bar.end(match &result {
        Ok(()) if outcome.is_exact => "verified, equal to what was sent",
        Err(failure) if failure.outcome == Outcome::Interrupted => "stopped",
        _ => "failed",
    });
    outcome.failure = result.err();
    outcome
}

fn try_play(
    part: &Part,
    addressing: &Addressing,
    stage: &Stage<'_>,
    bar: &mut ReceiveBar,
    joining: Joining,
    outcome: &mut PartResult,
) -> Result<(), Failure> {
    let directory = stage.file.with_file_name(part.name);
    let open = || open(part, addressing, stage, &directory);
    if part.plan == Plan::Late {
        let half = stage.source_symbols / 2;
        while stage.symbols_sent.load(Ordering::Relaxed) < half && !stage.stop.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let session = open();
    outcome.joined_at = stage.elapsed();
    drop(joining);
    let stop_at = (part.plan == Plan::Stopped).then_some(stage.source_symbols / 2);
    let mut life = listen(session?, stage, bar, stop_at, outcome)?;
    if stop_at.is_some() && life.outcome == Outcome::Interrupted && !stage.stop.is_cancelled() {
        bar.say("stopped; starts again in a moment");
        std::thread::sleep(PAUSE);
        life = listen(open()?, stage, bar, None, outcome)?;
    }
    outcome.took = stage.elapsed().saturating_sub(outcome.joined_at);
    if life.outcome != Outcome::Complete {
        return Err(why(&life));
    }
    let received = directory.join(stage.file.file_name().unwrap_or_default());
    outcome.is_exact = same_bytes(stage.file, &received).map_err(|error| {
        Failure::new(Outcome::Io, format!("cannot compare {received:?}: {error}"), "")
    })?;
    Ok(())
}

fn open(
    part: &Part,
    addressing: &Addressing,
    stage: &Stage<'_>,
    directory: &Path,
) -> Result<PreparedReceiver, Error> {
    Receiver::from_ticket(&stage.ticket)
        .addressing(addressing.clone())
        .into_dir(directory)
        .memory(MEMORY)
        .workers(1)
        .timeout(Some(DEADLINE.saturating_sub(stage.elapsed())))
        .simulated_loss(
            (part.loss > 0.0).then_some(SimulatedLoss { probability: part.loss, seed: 1 }),
        )
        .prepare()
}

/// One run: until reception is complete, or `stop_at` symbols are received.
fn listen(
    session: PreparedReceiver,
    stage: &Stage<'_>,
    bar: &mut ReceiveBar,
    stop_at: Option<u64>,
    outcome: &mut PartResult,
) -> Result<ReceiveReport, Error> {
    let receiver = session.start()?;
    for event in receiver.events() {
        match event {
            ReceiveEvent::Resumed { .. } => outcome.resumed = true,
            ReceiveEvent::Progress(progress) => {
                let have = progress.source_symbols.saturating_sub(progress.symbols_wanted);
                let is_enough = stop_at.is_some_and(|enough| have >= enough.max(1));
                if stage.stop.is_cancelled() || is_enough {
                    receiver.stop();
                }
                bar.show(&progress);
            }
            _ => {}
        }
    }
    let life = receiver.join()?;
    outcome.add(&life);
    Ok(life)
}

fn why(life: &ReceiveReport) -> Failure {
    match life.failures.first() {
        Some(error) => Failure::from(&**error),
        None => {
            let (wanted, all) = (life.progress.symbols_wanted, life.progress.source_symbols);
            let message = format!("not complete: {wanted} of {all} symbols wanted");
            let hint = "run it again when this machine has less to do; and see what it can do: \
                           fontana doctor";
            Failure::new(life.outcome, message, hint)
        }
    }
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        (&mut one).take(1 << 20).read_to_end(&mut left)?;
        (&mut other).take(1 << 20).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}
