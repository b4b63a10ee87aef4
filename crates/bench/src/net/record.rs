//! The numbers of a run: a line of JSON, or a row of a table, and medians of several runs.

use super::setting::{Disturbance, Mode, Tool};
use serde::Serialize;

/// The result of a run. `null` is a number that the program cannot give, or that a run without
/// success has not.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunRecord {
    pub(crate) program: Tool,
    pub(crate) mode: Mode,
    /// Per cent.
    pub(crate) loss: u32,
    pub(crate) receivers: usize,
    pub(crate) scenario: Disturbance,
    /// Receivers whose file is equal; without files, receivers that have received its size.
    pub(crate) receivers_ok: usize,
    /// Bits of the file over the time until the last receiver has it.
    pub(crate) goodput_mbit: Option<f64>,
    /// UDP payload that was sent until the last receiver had enough, over the file's size.
    pub(crate) sent_until_enough: Option<f64>,
    /// From there until the last receiver had the file.
    pub(crate) tail_ms: Option<f64>,
    /// Processor time over the file's size, the kernel's included.
    pub(crate) cpu_s_per_gb_sender: Option<f64>,
    /// The mean of the receivers.
    pub(crate) cpu_s_per_gb_receiver: Option<f64>,
    /// Peak of anonymous resident memory.
    pub(crate) rss_anon_mb_sender: f64,
    /// The largest of the receivers'.
    pub(crate) rss_anon_mb_receiver: f64,
    /// Datagrams that found a full receive buffer, at all receivers.
    pub(crate) kernel_drops: u64,
    /// Per cent of the packets that the queues in front of the receivers dropped.
    pub(crate) queue_loss: f64,
    /// `equal`, or `no file`: a receiver has none, or another one, or the program writes none.
    pub(crate) file: &'static str,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// The rate that the sender was told.
    pub(crate) rate_mbit: Option<u32>,
    /// Share of the processors' time that the hypervisor gave to others, during the run.
    pub(crate) steal_percent: f64,
}

/// Heading of [`RunRecord::line`].
pub(crate) const HEADING: &str = "\
program          ok  goodput   sent    tail  CPU s/GB, sender, receiver  RSS MB, s., r.  drops  queue  steal";

impl RunRecord {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap()
    }

    /// A row of the table of a setting.
    pub(crate) fn line(&self) -> String {
        let number = |number: Option<f64>, digits: usize| {
            number.map_or("-".to_owned(), |number| format!("{number:.digits$}"))
        };
        let no_file = match self.program.has_file() && self.file != "equal" {
            true => "  no file",
            false => "",
        };
        format!(
            "{:15} {:3} {:>8} {:>6} {:>7} {:>17} {:>9} {:>10.0} {:>6.0} {:>6} {:>5.1}% {:>5.1}%{no_file}",
            self.program.name(),
            self.receivers_ok,
            number(self.goodput_mbit, 0),
            number(self.sent_until_enough, 3),
            number(self.tail_ms, 0),
            number(self.cpu_s_per_gb_sender, 2),
            number(self.cpu_s_per_gb_receiver, 2),
            self.rss_anon_mb_sender,
            self.rss_anon_mb_receiver,
            self.kernel_drops,
            self.queue_loss,
            self.steal_percent,
        )
    }

    /// The medians of the runs of one program in one setting, each number for itself. A number
    /// that one of the runs lacks is lacking. `None` without runs.
    pub(crate) fn medians(runs: &[&Self]) -> Option<Self> {
        let first = *runs.first()?;
        let optional = |number: fn(&Self) -> Option<f64>| {
            let numbers: Option<Vec<_>> = runs.iter().map(|run| number(run)).collect();
            numbers.map(median)
        };
        let plain = |number: fn(&Self) -> f64| median(runs.iter().map(|run| number(run)).collect());
        let is_equal = runs.iter().all(|run| run.file == "equal");
        Some(Self {
            receivers_ok: runs.iter().map(|run| run.receivers_ok).min().unwrap_or(0),
            goodput_mbit: optional(|run| run.goodput_mbit),
            sent_until_enough: optional(|run| run.sent_until_enough),
            tail_ms: optional(|run| run.tail_ms),
            cpu_s_per_gb_sender: optional(|run| run.cpu_s_per_gb_sender),
            cpu_s_per_gb_receiver: optional(|run| run.cpu_s_per_gb_receiver),
            rss_anon_mb_sender: plain(|run| run.rss_anon_mb_sender),
            rss_anon_mb_receiver: plain(|run| run.rss_anon_mb_receiver),
            kernel_drops: plain(|run| run.kernel_drops as f64) as u64,
            queue_loss: plain(|run| run.queue_loss),
            steal_percent: plain(|run| run.steal_percent),
            file: if is_equal { "equal" } else { "no file" },
            ..first.clone()
        })
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

#[cfg(test)]
mod tests {
    #[allow(unused_imports)]
    use super::*;

    #[allow(dead_code)]
    fn record(goodput_mbit: Option<f64>) -> RunRecord {
        RunRecord {
            program: Tool::Fontana,
            mode: Mode::Frames,
            loss: 10,
            receivers: 3,
            scenario: Disturbance::Plain,
            receivers_ok: 3,
            goodput_mbit,
            sent_until_enough: Some(1.13),
            tail_ms: None,
            cpu_s_per_gb_sender: Some(2.5),
            cpu_s_per_gb_receiver: Some(1.25),
            rss_anon_mb_sender: 64.0,
            rss_anon_mb_receiver: 48.0,
            kernel_drops: 7,
            queue_loss: 0.25,
            file: "equal",
            size: 256 << 20,
            rate_mbit: Some(2_400),
            steal_percent: 0.5,
        }
    }

    #[test]
    fn a_line_of_json_has_every_field_in_order() {
        let expected = "{\"program\":\"fontana\",\"mode\":\"frames\",\"loss\":10,\"receivers\":3,\
            \"scenario\":\"plain\",\"receivers_ok\":3,\"goodput_mbit\":861.5,\
            \"sent_until_enough\":1.13,\"tail_ms\":null,\"cpu_s_per_gb_sender\":2.5,\
            \"cpu_s_per_gb_receiver\":1.25,\"rss_anon_mb_sender\":64.0,\
            \"rss_anon_mb_receiver\":48.0,\"kernel_drops\":7,\"queue_loss\":0.25,\
            \"file\":\"equal\",\"size\":268435456,\"rate_mbit\":2400,\"steal_percent\":0.5}";
        assert_eq!(record(Some(861.5)).json(), expected);
    }

    #[test]
    fn medians_are_of_all_runs_or_lacking() {
        let runs = [record(Some(3.0)), record(Some(1.0)), record(Some(2.0))];
        let medians = RunRecord::medians(&runs.each_ref()).unwrap();
        assert_eq!((medians.goodput_mbit, medians.tail_ms), (Some(2.0), None));
        let runs = [record(Some(3.0)), record(None)];
        assert_eq!(RunRecord::medians(&runs.each_ref()).unwrap().goodput_mbit, None);
    }
}
