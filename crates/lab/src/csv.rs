//! Files of rows. The first line ([`Heading`]) identifies the run, so that slices can be joined.

use crate::experiment::{Experiment, Scale, SweepSlice};
use crate::table::{CaseRow, Table, TableRow, Value};
use std::fmt::Write;

/// The first line of a file of rows:
/// `# fontana lab ms.fig1 seed=1998 scale=quick case=0 of=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading<'a> {
    pub(crate) id: &'a str,
    pub(crate) seed: u64,
    pub(crate) scale: Scale,
    pub(crate) slice: SweepSlice,
}

pub(crate) fn write(heading: &Heading<'_>, table: &Table) -> String {
    let Heading { id, seed, scale, slice } = heading;
    let (scale, case, of) = (scale.name(), slice.index(), slice.count());
    let mut text = format!("# fontana lab {id} seed={seed} scale={scale} case={case} of={of}\n");
    text.push_str("case");
    for column in table.columns {
        text.push(',');
        text.push_str(column);
    }
    text.push('\n');
    for CaseRow { case, values } in &table.rows {
        // Writing to a string does not fail.
        let _ = write!(text, "{case}");
        for value in values {
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

/// Parses the first line of a file; `None` if the lab did not write it.
pub(crate) fn heading(text: &str) -> Option<Heading<'_>> {
    let mut words = text.lines().next()?.strip_prefix("# fontana lab ")?.split(' ');
    let id = words.next()?;
    let mut field = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
    let seed = field("seed")?.parse().ok()?;
    let scale = match field("scale")? {
        "quick" => Scale::Quick,
        "full" => Scale::Full,
        _ => return None,
    };
    let slice = SweepSlice::new(field("case")?.parse().ok()?, field("of")?.parse().ok()?)?;
    Some(Heading { id, seed, scale, slice })
}

/// Parses the rows of a file.
///
/// # Errors
/// The number of the first invalid line, counted from 1.
pub(crate) fn rows(text: &str, experiment: &Experiment) -> Result<Vec<CaseRow>, usize> {
    let mut lines = text.lines().enumerate().skip(1);
    let names = lines.next().map(|(_, line)| line.split(',').collect::<Vec<_>>());
    let columns = experiment.sweep.columns();
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
