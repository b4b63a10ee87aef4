//! The command line.

use crate::workload::Scenario;

const USAGE: &str = "\
usage: fontana-bench codes [--json] [--code NAME] [--k K] [--scenario NAME] [--alone]

  codes   speed of the codes beside their peers, or alone (for a profile)
          scenarios: plan, encode, decode50, decode5, decode1";

pub(crate) struct Arguments {
    pub(crate) command: Command,
    /// One JSON object per line instead of a table.
    pub(crate) json: bool,
}

pub(crate) enum Command {
    Codes(Selection),
}

/// Which measurements to make; what is not said is not restricted.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) code: Option<String>,
    pub(crate) k: Option<u32>,
    pub(crate) scenario: Option<Scenario>,
    /// Without the peers.
    pub(crate) alone: bool,
}

impl Arguments {
    /// # Errors
    /// What is wrong, and how to say it right.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let wrong = |what: String| format!("error: {what}\n{USAGE}");
        let mut selection = Selection::default();
        let mut json = false;
        let mut arguments = arguments.peekable();
        // `cargo bench` names no command.
        if arguments.peek().is_some_and(|first| first == "codes") {
            arguments.next();
        }
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
        Ok(Self { command: Command::Codes(selection), json })
    }
}
