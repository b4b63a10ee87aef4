//! The numbers of a download.

use super::plan::Client;
use super::scenario::Scenario;
use serde::Serialize;
use serde_json::Value;

/// The result of a download.
#[derive(Debug, Serialize)]
pub(super) struct DownloadRow {
    scenario: Scenario,
    program: Client,
    seconds: f64,
    /// Seconds that the servers take at the rates that `curl` measured.
    ideal_seconds: f64,
    ratio: f64,
    /// `equal`, `other` bytes, or `no file`.
    file: &'static str,
    /// Bytes of all servers over the size of the file, if the program tells.
    received: Option<f64>,
    /// Why each server that was not used until the end was given up; empty if the program does not
    /// tell.
    dropped: Vec<String>,
    /// Fontana within its goal; `None` for others.
    is_within_goal: Option<bool>,
}

pub(super) const HEADING: &str = "\
scenario program  seconds  ideal  ratio  file     received  dropped";

impl DownloadRow {
    #[expect(clippy::too_many_arguments, reason = "each is a column")]
    pub(super) fn new(
        scenario: Scenario,
        program: Client,
        has_succeeded: bool,
        is_equal: bool,
        seconds: f64,
        ideal_seconds: f64,
        said: &str,
        size: u64,
    ) -> Self {
        let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mirrors: Vec<_> = events.filter(|event| event["event"] == "mirror").collect();
        let bytes = mirrors.iter().filter_map(|mirror| mirror["bytes"].as_u64());
        let received = bytes.sum::<u64>() as f64 / size as f64;
        let dropped = mirrors.iter().filter_map(|mirror| {
            let reason = mirror["dropped"].as_str()?;
            Some(format!("{}: {reason}", mirror["mirror"].as_str().unwrap_or_default()))
        });
        let (factor, more) = scenario.goal();
        Self {
            scenario,
            program,
            seconds,
            ideal_seconds,
            ratio: seconds / ideal_seconds,
            file: match (has_succeeded, is_equal) {
                (true, true) => "equal",
                (true, false) => "other",
                (false, _) => "no file",
            },
            received: (!mirrors.is_empty()).then_some(received),
            dropped: dropped.collect(),
            is_within_goal: (program == Client::Fontana)
                .then_some(has_succeeded && is_equal && seconds <= factor * ideal_seconds + more),
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap()
    }

    pub(super) fn line(&self) -> String {
        let received = self.received.map_or("-".to_owned(), |received| format!("{received:.3}"));
        let missed = if self.is_within_goal == Some(false) { "  goal missed" } else { "" };
        format!(
            "{:8} {:8} {:7.2} {:6.2} {:6.3}  {:7} {:>9}  {}{missed}",
            self.scenario.name(),
            self.program.name(),
            self.seconds,
            self.ideal_seconds,
            self.ratio,
            self.file,
            received,
            self.dropped.join("; "),
        )
    }
}
