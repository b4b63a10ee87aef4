//! `fontana-lab plan`, and the number of the slice that a process computes.

use super::chosen;
use crate::args::PlanArguments;
use crate::events::LabEvent as Line;
use fontana::Outcome;
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::Count;
use fontana_lab::{PlannedCase, Scale, SweepSlice, dealt, planned_cases};
use std::collections::BTreeMap;

/// Variables that number the tasks of a job, from 0: of a Slurm array, and of an Indexed Job of
/// Kubernetes. Of a Slurm cluster that itself runs on Kubernetes, the first counts.
const TASK_NUMBERS: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

pub(crate) fn run(arguments: &PlanArguments, console: &Console) -> Result<Outcome, Failure> {
    let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
    let cases = planned_cases(&chosen(&arguments.ids)?, scale);
    let slices = dealt(&cases, arguments.of);
    let slice_of: BTreeMap<(&str, u32), u32> = (0..)
        .zip(&slices)
        .flat_map(|(slice, cases)| cases.iter().map(move |case| (name(case), slice)))
        .collect();
    console.result(" seconds  slice  case");
    for case in &cases {
        let ((id, index), seconds) = (name(case), case.seconds);
        let slice = slice_of.get(&(id, index)).copied();
        console.result(format_args!("{seconds:8.2} {:6}  {id} {index}", slice.unwrap_or(0)));
        console.result_event(&Line::Case { id: id.into(), case: index, seconds, slice });
    }
    let sum = |cases: &[PlannedCase]| cases.iter().map(|case| case.seconds).sum::<f64>();
    let (seconds, longest) = (sum(&cases), slices.iter().map(|s| sum(s)).fold(0.0, f64::max));
    console.result_event(&Line::Plan {
        cases: cases.len() as u64,
        seconds,
        slices: arguments.of,
        longest_seconds: longest,
    });
    let mean = seconds / f64::from(arguments.of);
    let ratio = if mean > 0.0 { longest / mean } else { 1.0 };
    console.result(format_args!(
        "{}: {seconds:.1} s of processor time; the longest of {} takes {longest:.1} s, {ratio:.2} of the mean",
        Count(cases.len() as u64, "case"),
        Count(arguments.of.into(), "slice"),
    ));
    Ok(Outcome::Complete)
}

fn name(case: &PlannedCase) -> (&'static str, u32) {
    (case.sweep.name(), case.index)
}

/// The slice of `--case` and `--of`, or of the task that this process is.
pub(super) fn slice(case: Option<u32>, of: u32) -> Result<SweepSlice, Failure> {
    let usage = |message, hint| Err(Failure::new(Outcome::Usage, message, hint));
    let from_task = || TASK_NUMBERS.iter().find_map(|&name| Some((name, std::env::var_os(name)?)));
    let (number, source) = match (case, from_task()) {
        (Some(case), _) => (case, "--case"),
        (None, Some((name, value))) => match value.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => (number, name),
            None => {
                let hint = "give the number of the slice: --case N".to_owned();
                return usage(format!("{name} is {value:?}, not a number"), hint);
            }
        },
        (None, None) => {
            let hint = format!("give it: --case N, from 0 to {}", of - 1);
            return usage(
                format!("which of the {of} slices? {} are not set", TASK_NUMBERS.join(" and ")),
                hint,
            );
        }
    };
    match SweepSlice::new(number, of) {
        Some(slice) => Ok(slice),
        None => {
            let hint = format!("{source} is from 0 to {}", of.saturating_sub(1));
            usage(format!("there is no slice {number} of {of}"), hint)
        }
    }
}
