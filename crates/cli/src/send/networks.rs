//! `fontana send -i A -i B`: a session on each of several networks, with the same content. They
//! send different symbols, so that a receiver on several networks adds them up (dispersity routing:
//! Byers, Luby, Mitzenmacher 1998, section VIII).

mod joining;
mod together;

use super::confine::CompletionProgram;
use super::name_list::{Listed, NameList};
use super::reports::ReportWatch;
use super::{Named, Outline, Plan, Watch};
use crate::address;
use crate::args::{SendArguments, SessionFormat};
use crate::progress::{Gate, SendBar};
use fontana::net::InterfaceSelector;
use fontana::net::thread::spawn;
use fontana::wire::Ticket;
use fontana::{
    Addressing, CancellationToken, Outcome, PreparedSender, SendEvent, Sender, SessionDescription,
};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use joining::Joining;
use std::collections::BTreeSet;
use std::sync::mpsc::{SyncSender, sync_channel};
use together::Together;

/// Events of all sessions that wait to be shown. A session then waits, and drops progress.
const WAITING_EVENTS: usize = 64;

/// A session on one of the networks.
pub(super) struct OnNetwork {
    /// The name of the interface.
    pub(super) interface: String,
    /// Its bits per second, or the most of them.
    pub(super) rate: u64,
    pub(super) prepared: PreparedSender,
}

/// Refuses options that one session has, if there are several interfaces.
pub(super) fn check(arguments: &SendArguments) -> Result<(), Failure> {
    check_rates(arguments)?;
    if arguments.networks() == 1 {
        return Ok(());
    }
    let given = [
        (arguments.format() != SessionFormat::Fontana, "a plain FLUTE or FCAST session"),
        (arguments.watch.is_some(), "--watch"),
        (matches!(arguments.reports.ask, Some(Some(_))), "--ask with an address"),
        (arguments.certificate.is_some(), "--certificate"),
    ];
    let Some((_, what)) = given.into_iter().find(|(is_given, _)| *is_given) else {
        return Ok(());
    };
    let message = format!("{what} on several interfaces");
    let hint = match arguments.watch.is_some() {
        true => {
            "run a sender for each of them, with the same --sign and another number: --to GROUP:PORT/N"
        }
        false => "run a sender for each of them, with the same --manifest",
    };
    Err(Failure::new(Outcome::Usage, message, hint))
}

/// Refuses rates of other interfaces than those that are named.
fn check_rates(arguments: &SendArguments) -> Result<(), Failure> {
    let rates = arguments.rates();
    if rates.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = rates.iter().map(|rate| &rate.interface).collect();
    let has_one = |name: &&InterfaceSelector| names.iter().filter(|it| it == &name).count() == 1;
    let what = match arguments.interfaces.iter().find(|name| !has_one(name)) {
        Some(name) => format!("--rate has not one rate for {name}"),
        None => match names.iter().find(|name| !arguments.interfaces.contains(name)) {
            Some(name) => format!("--rate has one for {name}, on which nothing is sent"),
            None => return Ok(()),
        },
    };
    let hint = "name each interface as with -i: -i eth0 -i wlan0 --rate eth0=1G,wlan0=20M";
    Err(Failure::new(Outcome::Usage, what, hint))
}

/// Prepares the sessions on the interfaces after the first one. What the first session has read and
/// hashed is not read again.
pub(super) fn prepare(
    arguments: &SendArguments,
    plan: &Plan,
    content: &Named,
    first: &SessionDescription,
    stop: &CancellationToken,
) -> Result<Vec<OnNetwork>, Failure> {
    let mut names = BTreeSet::from([plan.addressing.interface()?.name]);
    let all = arguments.interfaces.iter().enumerate();
    let further = all.skip(1).map(|(number, selector)| {
        let plan = plan.on(arguments, selector.clone(), first, number);
        let interface = plan.addressing.interface()?.name;
        if !names.insert(interface.clone()) {
            let message = format!("the interface {interface} is named twice");
            return Err(Failure::new(Outcome::Usage, message, "leave one of them out"));
        }
        let sender = content.sender(&plan, arguments).cancellation_token(stop);
        Ok(OnNetwork { interface, rate: plan.rate, prepared: sender.prepare()? })
    });
    further.collect()
}

/// Names the networks that the session is not sent to, if the user has named none.
pub(super) fn tell_left_out(plan: &Plan, interface: &str, console: &Console) {
    let Addressing { interfaces, .. } = &plan.addressing;
    let others = match interfaces.is_empty() {
        true => address::multicast_interfaces(plan.addressing.address().ip(), Some(interface)),
        false => Vec::new(),
    };
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(ToString::to_string).collect();
        let others = others.join(", ");
        console.say(format_args!(
            "sent on {interface} only, not on {others}: name each that is meant (-i)"
        ));
    }
}

/// The tickets of all sessions, one for the receivers on each network. All name all sources.
pub(super) fn tickets(first: &Ticket, further: &[OnNetwork]) -> Vec<Ticket> {
    let others = further.iter().map(|other| &other.prepared.description().ticket);
    let mut tickets: Vec<Ticket> = std::iter::once(first).chain(others).cloned().collect();
    let mut sources: Vec<_> = tickets.iter().flat_map(|ticket| ticket.sources.clone()).collect();
    sources.sort_unstable();
    sources.dedup();
    tickets.iter_mut().for_each(|ticket| ticket.sources.clone_from(&sources));
    tickets
}

/// The names of all interfaces.
pub(super) fn names(first: &str, further: &[OnNetwork]) -> String {
    let others = further.iter().map(|other| other.interface.as_str());
    std::iter::once(first).chain(others).collect::<Vec<_>>().join(", ")
}

/// What is shown of the sessions.
pub(super) struct Watched<'a> {
    pub(super) arguments: &'a SendArguments,
    pub(super) outline: &'a Outline,
    pub(super) session: &'a SessionDescription,
    /// The program of `--exec`.
    pub(super) program: Option<&'a CompletionProgram>,
}

/// What becomes of the sessions.
enum Told {
    /// An event of one of them.
    Event(usize, SendEvent),
    /// One of them has ended.
    Ended,
    /// What the list of names has next.
    Listed(Result<Listed, Failure>),
}

/// Reads the rest of a list, as fast as its names are taken.
fn read(mut list: NameList, to: &SyncSender<Told>) {
    loop {
        let next = list.next();
        let is_end = next == Ok(Listed::End);
        if to.send(Told::Listed(next)).is_err() || is_end {
            return;
        }
    }
}

/// Sends all sessions until they end. One that fails does not end the others. `list`: names of
/// files that join the first session.
pub(super) fn send(
    first: OnNetwork,
    further: Vec<OnNetwork>,
    list: Option<NameList>,
    watched: &Watched<'_>,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let Watched { arguments, outline, session, program } = *watched;
    let is_one_of_several = !further.is_empty();
    let symbols = arguments.push.map(|repair| {
        let source = session.source_symbols;
        source.saturating_add(source.saturating_mul(repair.into()).div_ceil(1000))
    });
    let mut running: Vec<(Watch<'_>, Sender)> = Vec::new();
    for OnNetwork { interface, rate, prepared } in std::iter::once(first).chain(further) {
        let watch = Watch {
            console,
            stop,
            bar: match is_one_of_several {
                true => SendBar::named(console, &interface, symbols),
                false => SendBar::new(console, symbols),
            },
            interface,
            is_one_of_several,
            source_symbols: session.source_symbols,
            // With receivers that are expected, it is the deadline of the session, if that is the
            // only one.
            duration: arguments
                .duration
                .filter(|_| is_one_of_several || arguments.reports.receivers.is_none()),
            copies: outline.addressing.to.len() as u64,
            objects: session.manifest.objects().len(),
            rate_check: outline.rate_check(arguments, rate),
            gate: Gate::each_second(),
            failures_shown: 0,
            nothing_left: false,
            time_is_up: false,
            reports: ReportWatch::new(arguments, program.filter(|_| !is_one_of_several)),
        };
        running.push((watch, prepared.start()?));
    }
    let (sender, told) = sync_channel(WAITING_EVENTS);
    for (number, (_, session)) in running.iter().enumerate() {
        let (sender, events) = (sender.clone(), session.events());
        // It ends with the session.
        drop(spawn("events", move || {
            let mut events = events.map(|event| Told::Event(number, event));
            let _ = events.try_for_each(|event| sender.send(event));
            let _ = sender.send(Told::Ended);
        })?);
    }
    let mut joining = Joining::new(list.as_ref().map(NameList::place));
    match list {
        // The program that writes the list may be silent until this one has ended.
        Some(list) => drop(spawn("list", move || read(list, &sender))?),
        None => drop(sender),
    }
    let manifest = session.manifest_hash.filter(|_| is_one_of_several);
    let mut together = manifest.map(|manifest| {
        Together::new(running.len(), manifest, ReportWatch::new(arguments, program))
    });
    let mut active = running.len();
    while active > 0
        && let Ok(told) = told.recv()
    {
        match told {
            Told::Ended => active -= 1,
            Told::Listed(next) => {
                if let Some((_, sender)) = running.first().filter(|_| !stop.is_cancelled()) {
                    joining.take(sender, next, console);
                }
            }
            Told::Event(number, event) => {
                let is_handled =
                    together.as_mut().is_some_and(|it| it.handle(number, &event, console));
                if let Some((watch, _)) = running.get_mut(number).filter(|_| !is_handled) {
                    watch.handle(&event);
                }
            }
        }
        if together.as_ref().is_some_and(Together::is_over) {
            stop.cancel();
        }
    }
    Ok(conclude(running, together, console)?.worst(joining.outcome()))
}

/// Shows how the sessions have ended. Returns the worst outcome.
fn conclude(
    running: Vec<(Watch<'_>, Sender)>,
    together: Option<Together<'_>>,
    console: &Console,
) -> Result<Outcome, Failure> {
    running.iter().for_each(|(watch, _)| watch.bar.clear());
    // The receivers that were expected are complete.
    let is_over = together.as_ref().is_some_and(Together::is_over);
    let time_is_up = is_over || running.iter().any(|(watch, _)| watch.time_is_up);
    let is_only = running.len() == 1;
    let (mut worst, mut crowds) = (Outcome::Complete, Vec::new());
    for (number, (watch, sender)) in running.into_iter().enumerate() {
        let watch = Watch { time_is_up, ..watch };
        worst = worst.worst(match sender.join() {
            Ok(mut report) if together.is_some() => {
                crowds.extend(report.crowd.take().map(|crowd| (number, crowd)));
                if report.outcome == Outcome::ReceiversIncomplete {
                    // Others may have reported to another session.
                    report.outcome = Outcome::Interrupted;
                }
                watch.conclude(&report)
            }
            Ok(report) => watch.conclude(&report),
            Err(error) if is_only => return Err(error.into()),
            Err(error) => {
                let mut failure = Failure::from(error);
                failure.message = format!("{}: {}", watch.interface, failure.message);
                console.failure(&failure);
                failure.outcome
            }
        });
    }
    Ok(match together {
        Some(together) => worst.worst(together.conclude(crowds, console)),
        None => worst,
    })
}
