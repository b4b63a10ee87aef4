//! Files of rows. The first line states what determines the rows, so that only rows of one run are
//! joined.

use crate::experiment::Scale;
use crate::identity::RunIdentity;
use crate::table::CaseRow;
use crate::value::{TableRow, Value};
use std::fmt::Write;

/// The first line of the rows of all cases: `# fontana-lab ms.fig1 seed=1998 scale=quick case=0
/// of=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading<'a> {
    pub(crate) id: &'a str,
    pub(crate) seed: u64,
    pub(crate) scale: Scale,
}

/// The first line of the rows of one case:
/// `# fontana-lab ms.fig1 seed=1998 scale=quick commit=0123456789ab case=3`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseHeading<'a> {
    pub(crate) sweep: &'a str,
    pub(crate) case: u32,
    pub(crate) identity: &'a RunIdentity,
}

/// How every file begins.
const PREFIX: &str = "# fontana-lab ";
/// The word of the first line of a description of a run, where files of rows have an id.
const RUN: &str = "run";
/// How the first line of the rows of all cases ends.
const WHOLE: [&str; 2] = ["case=0", "of=1"];

/// A file with the rows of all cases.
pub(crate) fn write(heading: &Heading<'_>, columns: &[&str], rows: &[CaseRow]) -> String {
    let Heading { id, seed, scale } = heading;
    let first = format!("{PREFIX}{id} seed={seed} scale={} {}", scale.name(), WHOLE.join(" "));
    write_rows(first, columns, rows)
}

/// A file with the rows of one case.
pub(crate) fn write_case(heading: &CaseHeading<'_>, columns: &[&str], rows: &[CaseRow]) -> String {
    let CaseHeading { sweep, case, identity } = heading;
    write_rows(format!("{PREFIX}{sweep} {} case={case}", fields(identity)), columns, rows)
}

/// The first line of the description of a run.
pub(crate) fn write_run_heading(identity: &RunIdentity) -> String {
    format!("{PREFIX}{RUN} {}\n", fields(identity))
}

fn fields(identity: &RunIdentity) -> String {
    let RunIdentity { seed, scale, commit } = identity;
    format!("seed={seed} scale={} commit={commit}", scale.name())
}

fn write_rows(mut text: String, columns: &[&str], rows: &[CaseRow]) -> String {
    text.push_str("\ncase");
    for column in columns {
        text.push(',');
        text.push_str(column);
    }
    text.push('\n');
    for CaseRow { case, values } in rows {
        // Writing to a string does not fail.
        let _ = write!(text, "{case}");
        for value in values {
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

/// Words of a first line, each `NAME=VALUE`.
struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Option<Self> {
        Some(Self(line.strip_prefix(PREFIX)?.split(' ')))
    }

    fn field(&mut self, name: &str) -> Option<&'a str> {
        self.0.next()?.strip_prefix(name)?.strip_prefix('=')
    }

    fn scale(&mut self) -> Option<Scale> {
        let name = self.field("scale")?;
        [Scale::Quick, Scale::Full].into_iter().find(|scale| scale.name() == name)
    }

    fn identity(&mut self) -> Option<RunIdentity> {
        Some(RunIdentity {
            seed: self.field("seed")?.parse().ok()?,
            scale: self.scale()?,
            commit: self.field("commit")?.to_owned(),
        })
    }
}

/// Parses the first line of the rows of all cases; `None` if the lab did not write it.
pub(crate) fn heading(text: &str) -> Option<Heading<'_>> {
    let mut words = Words::of(text.lines().next()?)?;
    let id = words.0.next()?;
    let seed = words.field("seed")?.parse().ok()?;
    let scale = words.scale()?;
    words.0.eq(WHOLE).then_some(Heading { id, seed, scale })
}

/// Parses the first line of the rows of one case: its sweep, its index, and its run.
pub(crate) fn case_heading(text: &str) -> Option<(&str, u32, RunIdentity)> {
    let mut words = Words::of(text.lines().next()?)?;
    let id = words.0.next()?;
    let identity = words.identity()?;
    let case = words.field("case")?.parse().ok()?;
    words.0.next().is_none().then_some((id, case, identity))
}

/// Parses the first line of the description of a run.
pub(crate) fn run_heading(line: &str) -> Option<RunIdentity> {
    let mut words = Words::of(line)?;
    let is_run = words.0.next()? == RUN;
    let identity = words.identity()?;
    (is_run && words.0.next().is_none()).then_some(identity)
}

/// Parses the rows of a file.
///
/// # Errors
/// The number of the first invalid line, counted from 1.
pub(crate) fn rows(text: &str, columns: &[&str]) -> Result<Vec<CaseRow>, usize> {
    let mut lines = text.lines().enumerate().skip(1);
    let names = lines.next().map(|(_, line)| line.split(',').collect::<Vec<_>>());
    let expected = ["case"].iter().chain(columns).copied().collect::<Vec<_>>();
    if names != Some(expected) {
        return Err(2);
    }
    lines
        .map(|(number, line)| {
            let mut values = line.split(',');
            let case = values.next().and_then(|case| case.parse().ok());
            let row: TableRow = values.map(Value::parse).collect();
            case.filter(|_| row.len() == columns.len())
                .map(|case| CaseRow { case, values: row })
                .ok_or(number + 1)
        })
        .collect()
}
