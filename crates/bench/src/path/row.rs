//! The results: processor time of a packet in a part of a stage.

use super::content::SYMBOL_SIZE;
use super::stage::Stage;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Heading of [`PathRow::line`].
pub(super) const HEADING: &str = "stage   part                        packets  us/packet  CPU s/GB";

/// Processor time of a packet.
#[derive(Debug, Serialize)]
pub(super) struct PathRow {
    /// `None`: a sum over stages.
    pub(super) stage: Option<Stage>,
    pub(super) part: &'static str,
    /// Packets that were measured.
    pub(super) packets: u64,
    pub(super) us_per_packet: f64,
    /// Of symbols.
    pub(super) cpu_s_per_gb: f64,
}

impl PathRow {
    pub(super) fn new(stage: Stage, part: &'static str, packets: u64, nanos: u64) -> Self {
        let us_per_packet = nanos as f64 / 1e3 / packets.max(1) as f64;
        Self { stage: Some(stage), ..Self::with_time(part, packets, us_per_packet) }
    }

    fn with_time(part: &'static str, packets: u64, us_per_packet: f64) -> Self {
        let cpu_s_per_gb = us_per_packet * 1e3 / f64::from(SYMBOL_SIZE);
        Self { stage: None, part, packets, us_per_packet, cpu_s_per_gb }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap()
    }

    pub(super) fn line(&self) -> String {
        let Self { stage, part, packets, us_per_packet, cpu_s_per_gb } = self;
        let stage = stage.map_or("sum", Stage::name);
        format!("{stage:7} {part:25} {packets:9} {us_per_packet:10.3} {cpu_s_per_gb:9.3}")
    }
}

/// What a packet costs altogether, by the parts that it passes: (sum, parts).
const SUMS: [(&str, &[&str]); 4] = [
    ("sender, source", &["read", "packets", "send"]),
    ("sender, repair", &["solve", "repair", "packets", "send"]),
    ("receiver", &["receive", "datagrams", "write", "hash"]),
    // The recovery hashes the block.
    ("receiver, 10 % lost", &["receive", "datagrams", "write", "solve ids", "recover and hash"]),
];

/// The sums of those whose parts were all measured.
pub(super) fn sums(rows: &[PathRow]) -> Vec<PathRow> {
    let row = |part: &&str| rows.iter().find(|row| row.part == *part);
    let sum = |&(name, parts): &(&'static str, &[&str])| {
        let rows: Option<Vec<_>> = parts.iter().map(row).collect();
        let rows = rows?;
        let packets = rows.iter().map(|row| row.packets).min().unwrap_or(0);
        let time = rows.iter().map(|row| row.us_per_packet).sum();
        Some(PathRow::with_time(name, packets, time))
    };
    SUMS.iter().filter_map(sum).collect()
}

/// Adds up the processor time of this thread, that of the kernel on its behalf included.
#[derive(Default)]
pub(super) struct Meter {
    pub(super) nanos: u64,
}

impl Meter {
    pub(super) fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = thread_nanos();
        let result = work();
        self.nanos += thread_nanos() - begin;
        result
    }
}

fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
