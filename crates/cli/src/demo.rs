//! `fontana demo`: one sender and five receivers on this machine, with real sockets and files.

use crate::args::DemoArguments;
use crate::events::DemoEvent;
use fontana::net::ThreadError;
use fontana::net::thread::spawn_scoped;
use fontana::{CancellationToken, Outcome, PreparedSender, SendEvent, SendReport, Sender};
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::hints;
use fontana_console::json::{seconds, verdict};
use fontana_console::signal::stop_on_signals;
use fontana_console::units::{Bytes, Count, ExactRate, Time};
use path::Way;
use receiver::{Part, PartResult, RECEIVERS, Stage};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

mod path;
mod receiver;
mod report;

/// The sender's rate limit. With the default file, the receiver that loses 40 % completes after 5
/// seconds: long enough to watch. A loaded machine still meets the deadline (a sender that is
/// scheduled late does not catch up with its rate).
const RATE_BITS_PER_SECOND: u64 = 64_000_000;

/// Time limit of the whole demonstration.
const DEADLINE: Duration = Duration::from_secs(27);

/// Memory for each of the six sessions: less than the library's default, so that a laptop can run
/// it.
const MEMORY: usize = 64 << 20;

pub(crate) fn run(
    arguments: &DemoArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    stop_on_signals(stop)?;
    let way = Way::find(arguments.path)?;
    console.note(&way);
    let directory = tempfile::Builder::new()
        .prefix("fontana-demo-")
        .tempdir()
        .map_err(|error| no_room(&std::env::temp_dir(), &error))?;
    let file = directory.path().join("noise");
    write_noise(&file, arguments.size).map_err(|error| no_room(&file, &error))?;

    let copies = way.sender.to.len() as u64;
    let enough = CancellationToken::new();
    let session = Sender::builder([&file])
        .addressing(way.sender.clone())
        // The copies share the rate: each receiver gets the whole of it.
        .rate(fontana::Rate::bits_per_second(RATE_BITS_PER_SECOND * copies))
        .memory(MEMORY)
        .workers(1)
        .cancellation_token(&enough)
        .prepare()?;
    console.say(format_args!(
        "sending {} of noise at {} to five receivers on this machine",
        Bytes(arguments.size),
        ExactRate(RATE_BITS_PER_SECOND),
    ));
    let one_copy = report::one_copy(session.description());
    let (sent, outcomes) = pour(session, &enough, &way, &file, console, stop)?;
    let wire_bytes = sent.stats.wire_bytes * copies;
    let result = conclude(&outcomes, stop);
    for (part, outcome) in RECEIVERS.iter().zip(&outcomes) {
        console.result_event(&report::receiver(part, outcome));
    }
    let is_interrupted = result == Outcome::Interrupted;
    for (part, outcome) in RECEIVERS.iter().zip(&outcomes).filter(|_| !is_interrupted) {
        if let Some(failure) = &outcome.failure {
            console.failure(&Failure {
                message: format!("{}: {}", part.name, failure.message),
                ..failure.clone()
            });
        }
    }
    let separate_copies = report::separate_copies(one_copy);
    console.result_event(&DemoEvent::Summary {
        verdict: verdict(result).into(),
        code: exit::code(result),
        path: way.name.into(),
        receivers: RECEIVERS.len() as u64,
        verified_receivers: outcomes.iter().filter(|o| o.is_exact).count() as u64,
        bytes: arguments.size,
        wire_bytes,
        separate_copies_wire_bytes: separate_copies,
        resumed: outcomes.iter().any(|outcome| outcome.resumed),
        seconds: seconds(sent.elapsed),
    });
    if is_interrupted {
        let files =
            Count(outcomes.iter().filter(|outcome| outcome.is_exact).count() as u64, "file");
        console.say(format_args!("interrupted after {}: {files} verified", Time(sent.elapsed)));
        return Ok(result);
    }
    console.note("");
    console.result(report::table(&outcomes));
    console.result(format_args!(
        "\nsent {} in {}, {}\nfive separate copies, each with its losses made good: {}",
        Bytes(wire_bytes),
        Time(sent.elapsed),
        if copies == 1 { "once for all of them" } else { "a copy for each, for want of multicast" },
        Bytes(separate_copies),
    ));
    Ok(result)
}

fn conclude(results: &[PartResult], stop: &CancellationToken) -> Outcome {
    let start = if stop.is_cancelled() { Outcome::Interrupted } else { Outcome::Complete };
    results.iter().fold(start, |outcome, result| match &result.failure {
        Some(failure) => outcome.worst(failure.outcome),
        None if result.is_exact => outcome,
        None => outcome.worst(Outcome::VerificationFailed),
    })
}

/// Sends until every receiver has ended.
fn pour(
    session: PreparedSender,
    enough: &CancellationToken,
    way: &Way,
    file: &Path,
    console: &Console,
    stop: &CancellationToken,
) -> Result<(SendReport, Vec<PartResult>), Failure> {
    let description = session.description().clone();
    let stage = Stage {
        ticket: description.ticket,
        file,
        source_symbols: description.source_symbols,
        symbols_sent: AtomicU64::new(0),
        began: OnceLock::new(),
        stop,
    };
    std::thread::scope(|scope| {
        // If a thread cannot be started, the running ones are stopped.
        let give_up = |_: &ThreadError| stop.cancel();
        let mut receivers = Vec::new();
        let (joining, ready) = channel();
        for (part, addressing) in RECEIVERS.iter().zip(&way.receivers) {
            let (stage, bar) = (&stage, receiver::bar(console, part));
            let joining = part.is_early().then(|| joining.clone());
            let play = move || receiver::play(part, addressing, stage, bar, joining);
            receivers.push(spawn_scoped(scope, part.name, play).inspect_err(give_up)?);
        }
        drop(joining);
        // The early receivers have joined when they have dropped their ends of the channel, so that
        // they miss no packet.
        let _ = ready.recv();
        let send = || {
            stage.begin();
            let sent = session.start().and_then(|sender| {
                for event in sender.events() {
                    if let SendEvent::Progress(progress) = event {
                        let symbols = progress.stats.source_symbols + progress.stats.repair_symbols;
                        stage.symbols_sent.store(symbols, Ordering::Relaxed);
                    }
                }
                sender.join()
            });
            if sent.is_err() {
                // No receiver needs more packets.
                stop.cancel();
            }
            sent
        };
        let sender = spawn_scoped(scope, "send", send).inspect_err(give_up)?;
        let message = "a thread of the demonstration panicked";
        let lost = || Failure::new(Outcome::InternalError, message, hints::PANIC);
        let outcomes: Result<Vec<_>, _> =
            receivers.into_iter().map(|receiver| receiver.join().map_err(|_| lost())).collect();
        enough.cancel();
        let sent = sender.join().map_err(|_| lost())??;
        Ok((sent, outcomes?))
    })
}

/// Writes incompressible bytes, so that no receiver can guess any. The generator is SplitMix64
/// (Steele, Lea, Flood 2014).
fn write_noise(path: &Path, size: u64) -> io::Result<()> {
    let mut out = BufWriter::new(File::create_new(path)?);
    let mut state = u64::from(std::process::id());
    let mut left = size;
    while left > 0 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bytes = (word ^ (word >> 31)).to_le_bytes();
        let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        out.write_all(bytes.get(..take).unwrap_or(&bytes))?;
        left -= take as u64;
    }
    out.flush()
}

fn no_room(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write the file to be sent, {path:?}: {error}");
    Failure::new(
        Outcome::Io,
        message,
        "choose a directory with 300 MB of room: TMPDIR=DIR fontana demo",
    )
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name)
    }
}
