//! The command line.

use crate::workload::Scenario;

/// The largest `K'` of RFC 6330, table 2.
const LONGEST: u32 = fontana_fec::codes::raptorq::MAX_SOURCE_SYMBOLS;

const USAGE: &str = "\
usage: fontana-bench codes [--json] [--code NAME] [--k K] [--scenario NAME] [--alone]

  codes   speed of the codes beside their peers, or alone (for a profile)
          scenarios: plan, encode, decode50, decode5, decode1, receive, receive-ids
  failures [--json] [--k K]
          how often K, K + 1, K + 2 random RaptorQ symbols fail, on all cores; K is 10 if not given";

pub(crate) struct Arguments {
    pub(crate) command: Command,
    /// One JSON object per line instead of a table.
    pub(crate) json: bool,
}

pub(crate) enum Command {
    Codes(Selection),
    Failures { k: u32 },
}

/// The measurements to make. `None` does not restrict.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) code: Option<String>,
    pub(crate) k: Option<u32>,
    pub(crate) scenario: Option<Scenario>,
    /// Without other implementations.
    pub(crate) alone: bool,
}

impl Arguments {
    /// # Errors
    /// A message with the mistake and the correct form.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let wrong = |what: String| format!("error: {what}\n{USAGE}");
        let mut selection = Selection::default();
        let mut json = false;
        let mut arguments = arguments.peekable();
        // `cargo bench` names no command.
        let command = arguments.next_if(|first| !first.starts_with('-'));
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| wrong(format!("{argument} needs a value")));
            match argument.as_str() {
                "--json" => json = true,
                "--alone" => selection.alone = true,
                // `cargo bench` adds it.
                "--bench" => {}
                "--code" => selection.code = Some(value()?),
                "--k" => {
                    let k = value()?;
                    selection.k =
                        Some(k.parse().map_err(|_| wrong(format!("{k} is not a number")))?);
                }
                "--scenario" => {
                    let name = value()?;
                    let scenario = Scenario::named(&name);
                    selection.scenario =
                        Some(scenario.ok_or_else(|| wrong(format!("no scenario {name}")))?);
                }
                other => return Err(wrong(format!("what is {other}?"))),
            }
        }
        let command = match command.as_deref() {
            None | Some("codes") => Command::Codes(selection),
            Some("failures") => match selection.k.unwrap_or(10) {
                k @ 1..=LONGEST => Command::Failures { k },
                k => return Err(wrong(format!("blocks have 1 to {LONGEST} symbols, not {k}"))),
            },
            Some(other) => return Err(wrong(format!("what is {other}?"))),
        };
        Ok(Self { command, json })
    }
}
