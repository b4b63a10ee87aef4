//! The table of receivers on a terminal: those that have the least, or have failed.

use crate::progress::line;
use fontana::Crowd;
use fontana::reports::{CrowdSummary, ReceiverStatus};
use fontana::wire::ReceiverState;
use fontana_console::console::{Console, columns};
use indicatif::ProgressBar;

/// Rows at most, without the one that counts the rest: a terminal has 24 lines.
const ROWS: usize = 10;

/// A line for each of a few receivers, below the sender's own progress.
pub(super) struct ReceiverTable {
    lines: Vec<ProgressBar>,
}

impl ReceiverTable {
    pub(super) fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Draws the state of all receivers, if there is a terminal.
    pub(super) fn show(&mut self, crowd: &Crowd, console: &Console) {
        if !console.draws() {
            return;
        }
        let rows = rows(&crowd.receivers, &crowd.summary);
        while self.lines.len() < rows.len() {
            self.lines.push(console.bar(line()));
        }
        for line in self.lines.drain(rows.len()..) {
            line.finish_and_clear();
        }
        // The cursor stays on the line if its last column is empty.
        let width = columns().saturating_sub(1);
        for (line, row) in self.lines.iter().zip(rows) {
            line.set_message(row.chars().take(width).collect::<String>());
        }
    }

    pub(super) fn clear(&mut self) {
        self.lines.drain(..).for_each(|line| line.finish_and_clear());
    }
}

/// The rows: failed receivers, then those that receive and have the least. Complete ones are
/// counted with the rest.
fn rows(receivers: &[ReceiverStatus], summary: &CrowdSummary) -> Vec<String> {
    let is_shown = |status: &&ReceiverStatus| {
        !matches!(status.report.state, ReceiverState::Complete { .. }) || status.is_contradictory
    };
    let mut shown: Vec<&ReceiverStatus> = receivers.iter().filter(is_shown).collect();
    shown.sort_by_key(|status| {
        let receives = matches!(status.report.state, ReceiverState::Receiving);
        (receives, status.report.permille, status.report.receiver)
    });
    shown.truncate(ROWS);
    let mut rows: Vec<String> = shown.iter().map(|status| row(status)).collect();
    let rest = summary.known.saturating_sub(shown.len() as u64);
    if rest > 0 && !shown.is_empty() {
        let complete = summary.complete;
        rows.push(format!("and {rest} more, of which {complete} are complete"));
    }
    rows
}

/// `rack-1  45.0 %  loss 1.2 %  lacks 1234 symbols`.
fn row(status: &ReceiverStatus) -> String {
    let report = &status.report;
    let name = match report.label.is_empty() {
        true => report.receiver.to_string().chars().take(8).collect(),
        false => report.label.to_string(),
    };
    let percent = f64::from(report.permille) / 10.0;
    let loss = f64::from(report.loss_ppm) / 1e4;
    let state = match report.state {
        _ if status.is_contradictory => "contradicts itself".to_owned(),
        ReceiverState::Failed { exit_code } => format!("failed with exit code {exit_code}"),
        ReceiverState::Complete { .. } => "complete".to_owned(),
        ReceiverState::Receiving => format!("lacks {} symbols", report.symbols_lacking),
    };
    format!("{name:<20}  {percent:>5.1} %  loss {loss:>4.1} %  {state}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::reports::Authority;
    use fontana::wire::{Hash, ReceiverId, ReceiverReport, RollCallEcho};

    fn status(number: u8, state: ReceiverState, permille: u16) -> ReceiverStatus {
        let report = ReceiverReport {
            receiver: ReceiverId([number; 16]),
            label: format!("rack-{number}").parse().unwrap(),
            started_unix_ms: 0,
            round: 1,
            echo: RollCallEcho::default(),
            state,
            permille,
            symbols_lacking: 5,
            loss_ppm: 12_000,
            kernel_drops: 0,
            channels: 1,
            seconds: 1,
        };
        ReceiverStatus {
            report,
            reported_at: fontana_proto::Instant::ZERO,
            by: Authority::Group,
            is_contradictory: false,
        }
    }

    #[test]
    fn failed_receivers_and_those_that_have_the_least_come_first() {
        let complete = ReceiverState::Complete { manifest: Hash([1; 32]) };
        let receivers = [
            status(1, ReceiverState::Receiving, 900),
            status(2, complete, 1000),
            status(3, ReceiverState::Receiving, 450),
            status(4, ReceiverState::Failed { exit_code: 5 }, 990),
        ];
        let summary = CrowdSummary { known: 4, complete: 1, ..CrowdSummary::default() };
        let rows = rows(&receivers, &summary);
        let expected = [
            "rack-4                 99.0 %  loss  1.2 %  failed with exit code 5",
            "rack-3                 45.0 %  loss  1.2 %  lacks 5 symbols",
            "rack-1                 90.0 %  loss  1.2 %  lacks 5 symbols",
            "and 1 more, of which 1 are complete",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_table_is_short_whatever_the_number_of_receivers() {
        let many: Vec<_> =
            (0..=u8::MAX).map(|number| status(number, ReceiverState::Receiving, 0)).collect();
        let summary = CrowdSummary { known: 256, ..CrowdSummary::default() };
        let rows = rows(&many, &summary);
        assert_eq!(rows.len(), ROWS + 1);
        assert_eq!(rows.last().unwrap(), "and 246 more, of which 0 are complete");
        let complete = ReceiverState::Complete { manifest: Hash([1; 32]) };
        assert!(super::rows(&[status(1, complete, 1000)], &CrowdSummary::default()).is_empty());
    }
}
