//! `fontana send -` without `--spool`: a stream, sent while it is produced.

use super::{Outline, Plan, memory, standard_input, ticket_file, warnings};
use crate::address;
use crate::args::{Fec, ProfileArgument, ScheduleArgument, SendArguments};
use crate::console::Console;
use crate::events::{SendEvent, Sent, seconds, verdict};
use crate::exit;
use crate::failure::Failure;
use crate::progress::{Gate, SendBar};
use crate::signal::stop_on_signals;
use crate::units::{Bytes, Count, ExactRate, Time};
use fontana::wire::{Printable, PublicKey, Ticket, Tsi};
use fontana::{CancellationToken, Outcome, SendEvent as Event, SendReport, StreamSender};
use std::io;

/// Sends standard input while it is read.
pub(super) fn run(
    arguments: &SendArguments,
    plan: Plan,
    name: Option<Vec<u8>>,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    refuse_what_needs_the_end(arguments)?;
    let outline = Outline::of(arguments, &plan.addressing)?;
    address::warn_if_deaf(&outline.interface, plan.addressing.address().ip(), console);
    let copies = outline.addressing.to.len() as u64;
    let name = name.unwrap_or_else(|| standard_input::NAME.into());
    let prepared = StreamSender::builder(name.clone())
        .addressing(plan.addressing)
        .rate(fontana::Rate::bits_per_second(arguments.rate))
        .peak_window(arguments.burst)
        .controlled_network(arguments.controlled_network)
        .tsi(arguments.tsi.map(Tsi))
        .block_symbols(arguments.block_symbols)
        .symbol_size(arguments.symbol_size)
        .repair_permille(arguments.repair)
        .announce(arguments.wait.unwrap_or_default())
        .signer(plan.format.signer)
        .expires_after(plan.format.expires_after)
        .group_seal(plan.format.group_seal)
        .memory(memory(arguments))
        .cancellation_token(stop)
        .prepare()?;
    // Before others can know of the session: who has its ticket may stop the program.
    stop_on_signals(stop)?;
    if let Some(path) = &arguments.ticket_file {
        ticket_file::write(path, &outline.tickets(prepared.ticket()))?;
    }
    announce(&outline, prepared.ticket(), arguments, &name, console);
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
            _ => warnings::show(&event, console),
        }
    }
    let report = sender.join();
    bar.clear();
    Ok(conclude(&report?, &outline.interface, copies, console))
}

/// Refuses options that need the whole content before it is sent.
fn refuse_what_needs_the_end(arguments: &SendArguments) -> Result<(), Failure> {
    let given = [
        (arguments.push.is_some(), "--push"),
        (arguments.sequential.is_some(), "--sequential"),
        (arguments.duration.is_some(), "--duration"),
        (arguments.interfaces.len() > 1, "several -i"),
        (arguments.flute, "--flute"),
        (arguments.fcast, "--fcast"),
        (arguments.manifest.is_some(), "--manifest"),
        (arguments.mirror, "--mirror"),
        (arguments.symbol_digests, "--symbol-digests"),
        (arguments.dry_run, "--dry-run"),
        (arguments.fec != Fec::Raptorq, "--fec"),
        (arguments.profile != ProfileArgument::Speed, "--profile"),
        (arguments.schedule != ScheduleArgument::Even, "--schedule"),
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

fn announce(
    outline: &Outline,
    ticket: &Ticket,
    arguments: &SendArguments,
    name: &[u8],
    console: &Console,
) {
    let to: Vec<_> = outline.addressing.to.iter().map(ToString::to_string).collect();
    let tickets: Vec<_> = outline.tickets(ticket).iter().map(Ticket::to_string).collect();
    let wait = arguments.wait.unwrap_or_default();
    console.event(&SendEvent::Stream {
        ticket: ticket.to_string(),
        tickets: tickets.clone(),
        to: to.clone(),
        interface: outline.interface.clone(),
        tsi: ticket.tsi.0,
        key: ticket.key.as_ref().map(PublicKey::to_string),
        name: Printable(name).to_string(),
        rate_bits_per_second: outline.rate_bits_per_second,
        wait_seconds: seconds(wait),
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
    if wait.is_zero() {
        console.note("it begins now: receivers that come later have missed the beginning (--wait)");
    } else {
        console.note(format_args!("it begins in {}", Time(wait)));
    }
}

fn conclude(summary: &SendReport, interface: &str, copies: u64, console: &Console) -> Outcome {
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
    console.event(&SendEvent::Summary {
        interface: interface.to_owned(),
        verdict: verdict(summary.outcome).into(),
        code: exit::code(summary.outcome),
        seconds: seconds(summary.elapsed),
        passes: crate::events::passes(&summary.stats, summary.stats.source_symbols),
        solved_bytes: summary.solved_bytes,
        scratch_bytes: summary.scratch_bytes,
        sent,
    });
    summary.outcome
}
