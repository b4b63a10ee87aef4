//! `fontana doctor`.

use crate::args::DoctorArguments;
use crate::console::Console;
use crate::events::{DoctorEvent, finding};
use crate::exit;
use fontana::Outcome;
use fontana::net::doctor::{self, DoctorConfig};

pub(crate) fn run(arguments: &DoctorArguments, console: &Console) -> Outcome {
    console.note("looking at interfaces, buffers, multicast and the firewall; takes some seconds");
    let mut counts = [0_u64; 4];
    let interface = arguments.interface.clone();
    for found in doctor::examine(&DoctorConfig { interface, ..DoctorConfig::default() }) {
        let (index, mark) = match found.verdict {
            doctor::Verdict::Good => (0, "ok  "),
            doctor::Verdict::Unknown => (1, "?   "),
            doctor::Verdict::Warning => (2, "warn"),
            doctor::Verdict::Bad => (3, "BAD "),
        };
        if let Some(count) = counts.get_mut(index) {
            *count += 1;
        }
        console.result(format_args!("{mark}  {}: {}", found.subject, found.text));
        if let Some(remedy) = &found.remedy {
            console.result(format_args!("        {remedy}"));
        }
        console.event(&DoctorEvent::Finding {
            subject: found.subject,
            verdict: finding(found.verdict).into(),
            text: found.text,
            remedy: found.remedy,
        });
    }
    let [good, unknown, warning, bad] = counts;
    let outcome = if bad > 0 { Outcome::Io } else { Outcome::Complete };
    console.event(&DoctorEvent::Summary { good, unknown, warning, bad, code: exit::code(outcome) });
    outcome
}
