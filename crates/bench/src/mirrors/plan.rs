//! The command line of `mirrors`.

use super::scenario::Scenario;
use crate::numbers::within;
use serde::Serialize;
use std::path::PathBuf;

/// Name of the file that is downloaded.
pub(super) const FILE: &str = "content";

/// A program that downloads from several servers at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Client {
    Fontana,
    /// `aria2c -s4 -k1M`: a connection to each server, in pieces of 1 MiB.
    Aria2,
}

impl Client {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fontana => "fontana",
            Self::Aria2 => "aria2",
        }
    }
}

/// What is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct MirrorsPlan {
    pub(super) scenarios: Vec<Scenario>,
    /// Equal mirrors of each kind, instead of scenarios.
    pub(super) kinds: bool,
    pub(super) repetitions: usize,
    /// Bytes of the file.
    pub(super) size: u64,
    /// Fontana's program; `None`: that of this workspace.
    pub(super) fontana: Option<PathBuf>,
    /// Where the files are, in a directory of their own.
    pub(super) directory: PathBuf,
}

impl MirrorsPlan {
    /// Parses what follows `mirrors`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self {
            scenarios: Scenario::ALL.to_vec(),
            kinds: false,
            repetitions: 3,
            size: 64 << 20,
            fontana: None,
            directory: "/dev/shm".into(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--scenario" => {
                    let names = value()?;
                    plan.scenarios =
                        names.split(',').map(Scenario::named).collect::<Result<_, _>>()?;
                }
                "--kinds" => plan.kinds = true,
                "--repetitions" => plan.repetitions = within(&value()?, 1..=1_000)? as usize,
                "--size" => plan.size = within(&value()?, 1..=65_536)? << 20,
                "--fontana" => plan.fontana = Some(value()?.into()),
                "--directory" => plan.directory = value()?.into(),
                other => return Err(format!("what is {other}?")),
            }
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    // `cargo bench` compiles this without a harness: then there are no tests to use it.
    #[allow(unused_imports)]
    use super::*;

    #[test]
    fn scenarios_and_size_are_chosen() {
        let parse = |words: &str| MirrorsPlan::parse(words.split_whitespace().map(str::to_owned));
        let plan = parse("--scenario silent,all --size 16 --repetitions 1").unwrap();
        assert_eq!(plan.scenarios, [Scenario::Silent, Scenario::All]);
        assert_eq!((plan.size, plan.repetitions), (16 << 20, 1));
        assert_eq!(parse("--size 0").unwrap_err(), "0 is not a number from 1 to 65536");
        assert_eq!(
            parse("--scenario x").unwrap_err(),
            "x is none of all, killed, silent, damaged, wrong"
        );
    }
}
