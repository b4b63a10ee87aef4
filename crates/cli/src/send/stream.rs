//! `fontana send -` without `--spool`: a stream, sent while it is produced.

use super::reports::ReportWatch;
use super::{Outline, Plan, confine, keys, memory, reports, standard_input, ticket_file, warnings};
use crate::address;
use crate::args::{Fec, OrderArgument, SendArguments, WaitArgument};
use crate::events::{SendEvent, Sent};
use crate::progress::{Gate, SendBar};
use fontana::reports::AwaitedReceivers;
use fontana::wire::{Printable, PublicKey, Ticket};
use fontana::{
    CancellationToken, Outcome, SendEvent as Event, SendReport, StreamRedundancy, StreamSender,
    StreamSenderBuilder,
};
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::json::{seconds, verdict};
use fontana_console::signal::stop_on_signals;
use fontana_console::units::{Bytes, Count, ExactRate, Time};
use std::io;
use std::time::Duration;

/// Sends standard input while it is read.
pub(super) fn run(
    arguments: &SendArguments,
    plan: Plan,
    name: Option<Vec<u8>>,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    refuse_what_needs_the_end(arguments)?;
    let asks = plan.format.reports.is_some();
    let awaited = reports::awaited(arguments, plan.format.reports.as_ref())?;
    let repairs_on_request = plan
        .format
        .reports
        .as_ref()
        .is_some_and(|reports| reports::is_authenticated(arguments, reports));
    let permille = StreamSenderBuilder::DEFAULT_REPAIR_PERMILLE;
    let wait = match arguments.wait {
        Some(wait) if !asks => wait.time(),
        Some(WaitArgument::Time(time)) => time,
        _ => Duration::ZERO,
    };
    let outline = Outline::of(arguments, &plan)?;
    address::warn_if_deaf(&outline.interface, plan.addressing.address().ip(), console);
    let copies = outline.addressing.to.len() as u64;
    let name = name.unwrap_or_else(|| standard_input::NAME.into());
    let collection = plan.format.reports.as_ref();
    let program = confine::confine(arguments, &[], &plan.addressing, collection, console)?;
    let prepared = StreamSender::builder(name.clone())
        .addressing(plan.addressing)
        .rate(fontana::Rate::bits_per_second(arguments.rate()))
        .peak_window(arguments.burst)
        .controlled_network(arguments.controlled_network)
        .tsi(arguments.tsi())
        .block_symbols(arguments.block_symbols)
        .symbol_size(arguments.symbol_size)
        .redundancy(match arguments.push {
            Some(permille) => StreamRedundancy::Fixed { permille },
            None if repairs_on_request => StreamRedundancy::Reported { permille },
            None => StreamRedundancy::Fixed { permille },
        })
        .announce(wait)
        .reports(plan.format.reports)
        .wait_for_receivers(awaited)
        .signer(plan.format.signer)
        .expires_after(plan.format.expires_after)
        .group_seal(plan.format.group_seal)
        .key(keys::of_stream(arguments)?)
        .memory(memory(arguments))
        .cancellation_token(stop)
        .prepare()?;
    if arguments.dry_run {
        let (name, rate) = (Printable(&name), ExactRate(outline.rate_bits_per_second));
        console.result(format_args!("would send standard input as {name}, at {rate} at most"));
        console.result("  its ticket is drawn when it is sent");
        return Ok(Outcome::Complete);
    }
    // Before others can know of the session: who has its ticket may stop the program.
    stop_on_signals(stop)?;
    console.write_aside()?;
    if let Some(path) = &arguments.ticket_file {
        ticket_file::write(path, &outline.tickets(prepared.ticket()))?;
    }
    let start = Start { wait, awaited: if prepared.ticket().ask.is_some() { awaited } else { 0 } };
    announce(&outline, prepared.ticket(), start, &name, console);
    let mut watch = ReportWatch::new(arguments, program.as_ref());
    let mut bar = SendBar::new(console, None);
    let mut gate = Gate::each_second();
    let sender = prepared.start(io::stdin())?;
    for event in sender.events() {
        match event {
            Event::Failed(error) => console.failure(&Failure::from(&*error)),
            Event::Progress(progress) => {
                if gate.passes(progress.elapsed) {
                    console.event(&SendEvent::progress(&progress, &outline.interface, copies));
                }
                bar.show(&progress);
                if let Some(line) = bar.minute(&progress) {
                    console.progress(line);
                }
            }
            Event::Awaited(awaited) => show_awaited(&awaited, console),
            Event::Report(status) => watch.show_report(&status, console),
            Event::Crowd(crowd) => watch.show_crowd(&crowd, console),
            Event::RateChanged { rate } => ReportWatch::show_rate(rate, console),
            Event::Slow { receiver, rate } => watch.note_slow(&receiver, rate, console),
            _ => warnings::show(&event, console),
        }
    }
    let report = sender.join();
    bar.clear();
    let report = report?;
    let program = report.crowd.as_ref().map(|crowd| watch.conclude(crowd, console));
    let outcome = program.unwrap_or(Outcome::Complete).worst(report.outcome);
    Ok(conclude(&report, outcome, &outline.interface, copies, console))
}

/// When a stream begins.
#[derive(Clone, Copy)]
struct Start {
    wait: Duration,
    /// Receivers that it waits for; 0: none.
    awaited: u32,
}

/// Shows which receivers the stream waits for.
fn show_awaited(awaited: &AwaitedReceivers, console: &Console) {
    let AwaitedReceivers { receivers, known, missing, .. } = awaited;
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let names = match &missing[..] {
        [] => String::new(),
        [first @ .., _] if first.len() >= MAX_NAMED => {
            let named = missing.get(..MAX_NAMED).unwrap_or_default().join(", ");
            format!("; missing: {named} and {} more", missing.len() - MAX_NAMED)
        }
        all => format!("; missing: {}", all.join(", ")),
    };
    console.event(&SendEvent::Awaited { receivers: *receivers, known: *known, missing });
    let of = Count(u64::from(*receivers), "receiver");
    if awaited.is_over() {
        console.note(format_args!("{known} of {of} have reported: it begins"));
    } else {
        console.note(format_args!("{known} of {of} have reported{names}"));
    }
}

/// Missing receivers that are named on a line.
const MAX_NAMED: usize = 5;

/// Refuses options that need the whole content before it is sent.
fn refuse_what_needs_the_end(arguments: &SendArguments) -> Result<(), Failure> {
    let given = [
        (arguments.interfaces.len() > 1, "several -i"),
        (arguments.flute.is_some(), "--flute"),
        (arguments.fcast.is_some(), "--fcast"),
        (arguments.manifest.is_some(), "--manifest"),
        (arguments.symbol_digests, "--symbol-digests"),
        (arguments.layered.is_some(), "--layered"),
        (arguments.fec() != Fec::Raptorq, "--fec"),
        (arguments.order != OrderArgument::Even, "--order"),
        (arguments.content_version != 1, "--content-version"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => {
            let message =
                format!("{option} with a stream, which is sent once and while it is made");
            let hint = "read standard input to its end first: --spool\nor leave the option out";
            Err(Failure::new(Outcome::Usage, message, hint))
        }
    }
}

fn announce(outline: &Outline, ticket: &Ticket, start: Start, name: &[u8], console: &Console) {
    let to: Vec<_> = outline.addressing.to.iter().map(ToString::to_string).collect();
    let tickets: Vec<_> = outline.tickets(ticket).iter().map(Ticket::to_string).collect();
    let Start { wait, awaited } = start;
    console.result_event(&SendEvent::Stream {
        ticket: ticket.to_string(),
        tickets: tickets.clone(),
        to: to.clone(),
        interface: outline.interface.clone(),
        tsi: ticket.tsi.0,
        key: ticket.key.as_ref().map(PublicKey::to_string),
        name: Printable(name).to_string(),
        rate_bits_per_second: outline.rate_bits_per_second,
        wait_seconds: seconds(wait),
        wait_receivers: awaited,
    });
    console.say(format_args!(
        "sending standard input as {}, to {} ({}) at {} at most, once; receive with",
        Printable(name),
        to.join(", "),
        outline.interface,
        ExactRate(outline.rate_bits_per_second),
    ));
    for ticket in tickets {
        console.result(format_args!("fontana recv '{ticket}' --to -"));
    }
    if awaited > 0 {
        console.note(match awaited {
            1 => "it begins when the first receiver has reported".to_owned(),
            _ => format!("it begins when {awaited} receivers have reported"),
        });
    } else if wait.is_zero() {
        console.note("it begins now: receivers that come later have missed the beginning (--wait)");
    } else {
        console.note(format_args!("it begins in {}", Time(wait)));
    }
}

fn conclude(
    summary: &SendReport,
    outcome: Outcome,
    interface: &str,
    copies: u64,
    console: &Console,
) -> Outcome {
    let sent = Sent::new(&summary.stats, summary.lost, copies);
    console.say(format_args!(
        "sent {} on the wire in {} and {} ({} source and {} repair symbols)",
        Bytes(sent.wire_bytes),
        Count(sent.packets, "packet"),
        Time(summary.elapsed),
        sent.source_symbols,
        sent.repair_symbols,
    ));
    warnings::show_lost(summary.lost, console);
    console.result_event(&SendEvent::Summary {
        interface: interface.to_owned(),
        verdict: verdict(outcome).into(),
        code: exit::code(outcome),
        seconds: seconds(summary.elapsed),
        passes: crate::events::passes(&summary.stats, summary.stats.source_symbols),
        solved_bytes: summary.solved_bytes,
        scratch_bytes: summary.scratch_bytes,
        sent,
    });
    outcome
}
