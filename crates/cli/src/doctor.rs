//! `fontana doctor`.

use crate::args::DoctorArguments;
use crate::events::{DoctorEvent, finding};
use fontana::Outcome;
use fontana::net::doctor::{self, DoctorConfig, Finding, Verdict};
use fontana::wire::Ticket;
use fontana_console::console::Console;
use fontana_console::exit;

mod asking;
mod session;

pub(crate) fn run(arguments: &DoctorArguments, console: &Console) -> Outcome {
    console.note("looking at interfaces, buffers, multicast and the firewall; takes some seconds");
    let interface = arguments.interface.clone();
    let destination = arguments.ticket.as_ref().map(Ticket::destination);
    let config = DoctorConfig { interface, destination, ..DoctorConfig::default() };
    let mut findings = doctor::examine(&config);
    if let Some(ticket) = &arguments.ticket {
        findings = session::examine(ticket, arguments.interface.as_ref()).before(findings);
    }
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
    let [good, unknown, warning, bad] = counts;
    let outcome = if bad > 0 { Outcome::Io } else { Outcome::Complete };
    console.result_event(&DoctorEvent::Summary {
        good,
        unknown,
        warning,
        bad,
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
