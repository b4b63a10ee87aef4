//! `fontana doctor`: of this host, of a session, and of the network between this host and one that
//! sends probes (`--send`).

use crate::args::DoctorArguments;
use crate::events::{DoctorEvent, finding};
use fontana::net::PanicError;
use fontana::net::doctor::{self, DoctorConfig, Finding, Verdict};
use fontana::net::thread::spawn;
use fontana::wire::Ticket;
use fontana::{CancellationToken, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::signal::stop_on_signals;
use fontana_console::units::Time;
use fontana_console::{exit, hints};
use listening::{Listened, listen};
use place::Place;
use std::net::SocketAddr;
use std::time::Duration;

mod asking;
mod counts;
mod judged;
mod listening;
mod place;
mod probe;
mod sending;
mod session;

/// How long probes are sent, unless the user says it: enough to start the other host.
const SENDING: Duration = Duration::from_secs(60);

/// What was found, in the order in which it is shown.
struct Diagnosis {
    findings: Vec<Finding>,
    /// The likeliest cause of what is wrong, or that nothing is.
    likely: String,
}

pub(crate) fn run(
    arguments: &DoctorArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let diagnosis = match &arguments.ticket {
        Some(ticket) => of_session(arguments, ticket, console),
        None => {
            stop_on_signals(stop)?;
            let place = Place::of(arguments.interface.as_ref());
            match (arguments.send, place) {
                (true, place) => of_sender(arguments, &place?, console, stop)?,
                (false, Ok(place)) => of_receiver(arguments, &place, console, stop)?,
                (false, Err(failure)) => of_host(arguments, &failure),
            }
        }
    };
    let ended = if stop.is_cancelled() { Outcome::Interrupted } else { Outcome::Complete };
    Ok(show_all(diagnosis, ended, console))
}

fn of_session(arguments: &DoctorArguments, ticket: &Ticket, console: &Console) -> Diagnosis {
    note(console);
    let config = config(arguments, Some(ticket.destination()));
    let findings = doctor::examine(&config);
    let findings = session::examine(ticket, arguments.interface.as_ref()).before(findings);
    let likely = session::likely(&findings);
    Diagnosis { findings, likely }
}

/// There is no interface to listen on.
fn of_host(arguments: &DoctorArguments, failure: &Failure) -> Diagnosis {
    let findings = doctor::examine(&config(arguments, None));
    Diagnosis { findings, likely: failure.message.clone() }
}

fn of_sender(
    arguments: &DoctorArguments,
    place: &Place,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Diagnosis, Failure> {
    let limit = arguments.duration.unwrap_or(SENDING);
    console.say(format_args!(
        "sending packets to {} on {} for {}, at up to 100 Mbit/s; on the other hosts: fontana doctor",
        place.group,
        place.interface.name,
        Time(limit)
    ));
    let work = || Ok(sending::send(place, limit, stop));
    let (sent, local) = beside(config(arguments, None), stop, work)?;
    let trouble = match sent.is_good {
        true => judged::this_host(place, &local),
        false => Some(format!("{}: {}", sent.finding.subject, sent.finding.text)),
    };
    let likely = trouble.unwrap_or_else(|| {
        "this host sends as it should; what arrives says fontana doctor on the other hosts".into()
    });
    let likely: Vec<_> = [Some(likely), judged::no_querier(&local)].into_iter().flatten().collect();
    let findings = [sent.finding].into_iter().chain(local).collect();
    Ok(Diagnosis { findings, likely: likely.join("; ") })
}

fn of_receiver(
    arguments: &DoctorArguments,
    place: &Place,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Diagnosis, Failure> {
    note(console);
    let work = || {
        let failed = |error| Failure::new(Outcome::Io, error, "see what uses the port: ss -ulpn");
        listen(place, arguments.duration, stop).map_err(failed)
    };
    let (listened, local) = beside(config(arguments, Some(place.group)), stop, work)?;
    let Listened { counts, time } = listened;
    let likely = judged::likely(&counts, place, &local, time);
    let mut findings = judged::findings(&counts, place, time);
    findings.extend(local);
    Ok(Diagnosis { findings, likely })
}

fn note(console: &Console) {
    console.note("looking at interfaces, buffers, multicast and the firewall; takes some seconds");
}

/// What to examine of this host. `destination`: where packets go that have to arrive.
fn config(arguments: &DoctorArguments, destination: Option<SocketAddr>) -> DoctorConfig {
    let interface = arguments.interface.clone();
    DoctorConfig { interface, destination, ..DoctorConfig::default() }
}

/// Does the work, and examines this host meanwhile: it listens for a querier until the work is
/// done.
fn beside<T>(
    mut config: DoctorConfig,
    stop: &CancellationToken,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<(T, Vec<Finding>), Failure> {
    config.querier_wait = Duration::MAX;
    let over = stop.child_token();
    let is_over = over.clone();
    let examine = move || doctor::examine_until(&config, &|| is_over.is_cancelled());
    let examining = spawn("doctor", examine)?;
    let result = work();
    over.cancel();
    let local = examining.join().map_err(|panic| {
        let panic = PanicError::new("doctor", &*panic);
        Failure::new(Outcome::InternalError, panic.to_string(), hints::PANIC)
    })?;
    Ok((result?, local))
}

/// Shows what was found. `ended`: how the examination has ended. Returns how the command ends.
fn show_all(diagnosis: Diagnosis, ended: Outcome, console: &Console) -> Outcome {
    let Diagnosis { findings, likely } = diagnosis;
    let mut counts = [0_u64; 4];
    for found in findings {
        let (index, mark) = match found.verdict {
            Verdict::Good => (0, "ok  "),
            Verdict::Unknown => (1, "?   "),
            Verdict::Warning => (2, "warn"),
            Verdict::Bad => (3, "BAD "),
        };
        if let Some(count) = counts.get_mut(index) {
            *count += 1;
        }
        show(found, mark, console);
    }
    console.result(format_args!("most likely: {likely}"));
    let [good, unknown, warning, bad] = counts;
    let outcome = ended.worst(if bad > 0 { Outcome::Io } else { Outcome::Complete });
    console.result_event(&DoctorEvent::Summary {
        good,
        unknown,
        warning,
        bad,
        most_likely: likely,
        code: exit::code(outcome),
    });
    outcome
}

fn show(found: Finding, mark: &str, console: &Console) {
    console.result(format_args!("{mark}  {}: {}", found.subject, found.text));
    if let Some(remedy) = &found.remedy {
        console.result(format_args!("        {remedy}"));
    }
    console.result_event(&DoctorEvent::Finding {
        subject: found.subject,
        verdict: finding(found.verdict).into(),
        text: found.text,
        remedy: found.remedy,
    });
}
