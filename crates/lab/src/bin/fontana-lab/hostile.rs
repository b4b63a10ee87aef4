//! `fontana-lab hostile`: what each class of hostile packets does to a receiver.

use crate::args::HostileArguments;
use crate::events::HostileEvent as Line;
use fontana::{CancellationToken, DEFAULT_MEMORY, MIN_MEMORY, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::hints;
use fontana_console::json::rounded;
use fontana_console::signal::stop_on_signals;
use fontana_console::units::Bytes;
use fontana_lab::hostile::{Bench, Class, ClassReport, classes, run as run_class};
use sockets::{Plan, Protection, Stage};
use std::fmt::Display;
use std::time::Duration;
use transfer::Transfer;

mod process;
mod sockets;
mod transfer;
mod web;

pub(crate) fn run(
    arguments: &HostileArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    stop_on_signals(stop)?;
    let chosen = choose(&arguments.classes, arguments.sockets)?;
    let broken = if arguments.sockets {
        on_sockets(&chosen, arguments, console, stop)?
    } else {
        in_process(&chosen, arguments, console, stop)?
    };
    if stop.is_cancelled() {
        return Ok(Outcome::Interrupted);
    }
    if broken.is_empty() {
        return Ok(Outcome::Complete);
    }
    let hint = format!(
        "to repeat it: fontana-lab hostile --classes ID --variants {} --seed {}",
        arguments.variants, arguments.seed
    );
    Err(Failure::new(Outcome::VerificationFailed, broken.join("; "), hint))
}

/// A run that could not be made.
fn not_run(error: &dyn Display) -> Failure {
    Failure::new(Outcome::InternalError, error.to_string(), hints::PANIC)
}

fn budgets(arguments: &HostileArguments) -> Vec<usize> {
    arguments.memory.map_or(vec![MIN_MEMORY, DEFAULT_MEMORY], |memory| {
        vec![usize::try_from(memory).unwrap_or(usize::MAX).max(MIN_MEMORY)]
    })
}

/// The classes with these ids, in their order; all that run in this way if there are none.
fn choose(ids: &[String], sockets: bool) -> Result<Vec<&'static Class>, Failure> {
    let runs = |class: &&Class| match class.over_http() {
        Some(_) => sockets,
        None => !sockets || class.has_packets(),
    };
    if ids.is_empty() {
        return Ok(classes().iter().filter(runs).collect());
    }
    let find = |id: &String| {
        let class = classes().iter().find(|class| class.id.eq_ignore_ascii_case(id));
        let class = class.ok_or_else(|| {
            let known: Vec<_> = classes().iter().map(|class| class.id).collect();
            let message = format!("no class of hostile packets is called {id:?}");
            Failure::new(Outcome::Usage, message, format!("there are {}", known.join(", ")))
        })?;
        if runs(&class) {
            return Ok(class);
        }
        let (way, hint) = match sockets {
            true => ("over sockets", "leave out --sockets"),
            false => ("in virtual time", "add --sockets"),
        };
        let message = format!("the class {} does not run {way}", class.id);
        Err(Failure::new(Outcome::Usage, message, hint))
    };
    ids.iter().map(find).collect()
}

/// Runs the classes in virtual time. Returns what they broke.
fn in_process(
    chosen: &[&Class],
    arguments: &HostileArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Vec<String>, Failure> {
    console.result(format_args!(
        "{:<4} {:>9} {:>9} {:>11} {:>9} {:>7}  class",
        "id", "packets", "memory", "log", "honest", "extra"
    ));
    let mut broken = Vec::new();
    // The smaller budget first, for all classes: this process keeps what it had allocated.
    for memory in budgets(arguments) {
        for class in chosen {
            if stop.is_cancelled() {
                return Ok(broken);
            }
            let bench = Bench { seed: arguments.seed, variants: arguments.variants, memory };
            let report = run_class(class, &bench).map_err(|error| not_run(&error))?;
            show(class, &report, console);
            broken.extend(report.broken().into_iter().map(|what| format!("{}: {what}", class.id)));
        }
    }
    Ok(broken)
}

fn show(class: &Class, report: &ClassReport, console: &Console) {
    let broken = report.broken();
    console.result_event(&Line::Class {
        id: class.id.into(),
        what: class.what.into(),
        packets: report.packets,
        alive: report.alive,
        memory: report.memory,
        memory_max: report.memory_max,
        disk_max: report.disk_max,
        log_bytes: report.log_bytes,
        honest_verified: report.honest_verified,
        honest_packets: report.honest_packets,
        extra_packets: report.extra_packets,
        forges: report.forges,
        broken: owned(&broken),
    });
    console.result(format_args!(
        "{:<4} {:>9} {:>9} {:>11} {:>9} {:>+7}  {}{}",
        class.id,
        report.packets,
        used(report.memory_max),
        Bytes(report.log_bytes),
        verified(report.honest_verified),
        report.extra_packets,
        class.what,
        mark(&broken),
    ));
}

/// Runs the classes that have packets over real sockets. Returns what they broke.
fn on_sockets(
    chosen: &[&Class],
    arguments: &HostileArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Vec<String>, Failure> {
    let HostileArguments { variants, seed, rate, symbol_digests, .. } = *arguments;
    let stage = Stage::new(arguments.size, rate)?;
    console.result(format_args!(
        "{:<4} {:>9} {:>9} {:>11} {:>9} {:>7} {:>7} {:>6}  class",
        "id", "packets", "memory", "log", "honest", "extra", "seconds", "drops"
    ));
    let has_group_key = |class: &&Class| class.has_group_key();
    let (sealed, open): (Vec<&Class>, Vec<&Class>) =
        chosen.iter().copied().filter(|class| class.over_http().is_none()).partition(has_group_key);
    let of_open = if symbol_digests { Protection::SymbolDigests } else { Protection::None };
    let over_http: Vec<_> =
        chosen.iter().filter_map(|class| Some((*class, class.over_http()?))).collect();
    let mut broken = Vec::new();
    for memory in budgets(arguments).into_iter().map(|bytes| bytes as u64) {
        let alone = match over_http.is_empty() {
            true => Transfer::default(),
            false => stage.transfer_over_http(None, memory)?,
        };
        for &(class, attack) in &over_http {
            if stop.is_cancelled() {
                return Ok(broken);
            }
            let transfer = stage.transfer_over_http(Some((attack, variants, seed)), memory)?;
            broken.extend(judge(class, &transfer, &alone, memory, console));
        }
        for (classes, protection) in [(&open, of_open), (&sealed, Protection::GroupKey)] {
            if classes.is_empty() {
                continue;
            }
            let alone = stage.transfer(None, protection, memory)?;
            if !alone.is_exact {
                return Err(not_run(&"the honest transfer fails without an attack"));
            }
            let during = Duration::from_secs_f64(alone.seconds);
            for class in classes {
                if stop.is_cancelled() {
                    return Ok(broken);
                }
                let plan = Plan { class, variants, seed, during };
                let transfer = stage.transfer(Some(&plan), protection, memory)?;
                broken.extend(judge(class, &transfer, &alone, memory, console));
            }
        }
    }
    Ok(broken)
}

/// Shows a transfer. Returns what the class broke.
fn judge(
    class: &Class,
    transfer: &Transfer,
    alone: &Transfer,
    memory: u64,
    console: &Console,
) -> impl Iterator<Item = String> {
    let broken = transfer.broken(class, alone, memory);
    console.result_event(&Line::ClassOnSockets {
        id: class.id.into(),
        what: class.what.into(),
        packets: transfer.packets,
        alive: transfer.exit_code.is_some(),
        memory,
        memory_max: transfer.memory_max,
        log_bytes: transfer.log_bytes,
        honest_verified: transfer.is_exact,
        extra_symbols: transfer.extra_symbols(alone),
        forges: class.forges,
        kernel_drops: transfer.kernel_drops,
        seconds: rounded(transfer.seconds),
        seconds_alone: rounded(alone.seconds),
        broken: owned(&broken),
    });
    console.result(format_args!(
        "{:<4} {:>9} {:>9} {:>11} {:>9} {:>+7} {:>7.2} {:>6}  {}{}",
        class.id,
        transfer.packets,
        used(transfer.memory_max),
        Bytes(transfer.log_bytes),
        verified(transfer.is_exact),
        transfer.extra_symbols(alone),
        transfer.seconds,
        transfer.kernel_drops,
        class.what,
        mark(&broken),
    ));
    let said = transfer.error.clone().filter(|_| !broken.is_empty());
    let broken = broken.into_iter().map(str::to_owned).chain(said);
    broken.map(|what| format!("{}: {what}", class.id))
}

fn owned(broken: &[&str]) -> Vec<String> {
    broken.iter().map(|&what| what.to_owned()).collect()
}

fn used(memory: Option<u64>) -> String {
    memory.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string())
}

fn verified(is_verified: bool) -> &'static str {
    if is_verified { "verified" } else { "NOT" }
}

fn mark(broken: &[&str]) -> String {
    if broken.is_empty() { String::new() } else { format!(": {}", broken.join(", ")) }
}
