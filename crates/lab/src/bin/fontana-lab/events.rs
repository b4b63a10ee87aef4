//! The events of `--json`: `docs/events.md` describes them, and tests compare the two.

use serde::Serialize;

/// Events of the experiments and of the swarm.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum LabEvent {
    Experiment {
        id: String,
        real: bool,
        source: String,
        what: String,
        claims: Vec<String>,
    },
    /// A case of a plan, with its slice and its expected seconds; or of a run, with its seconds.
    Case {
        id: String,
        case: u32,
        seconds: f64,
        slice: Option<u32>,
    },
    /// The end of a plan.
    Plan {
        cases: u64,
        seconds: f64,
        slices: u32,
        longest_seconds: f64,
    },
    Verdict {
        id: String,
        claim: String,
        text: String,
        kind: String,
        quote: Option<String>,
        section: Option<String>,
        paper: f64,
        relation: String,
        ours: Option<f64>,
        error: Option<f64>,
        tolerance: f64,
        verdict: String,
        reason: Option<String>,
        expected: bool,
        seed: u64,
    },
    /// A run of the swarm that violated an invariant.
    Breach {
        seed: u64,
        what: String,
        message: String,
    },
    Swarm {
        runs: u64,
        breaches: u64,
        receivers: u64,
        deliveries: u64,
        corrupt_blocks: u64,
        virtual_seconds: u64,
        digest: String,
        seed: u64,
        version: String,
        commit: String,
        seconds: f64,
        code: u8,
    },
    Summary {
        experiments: u64,
        rows: u64,
        claims: u64,
        differing: u64,
        undecided: u64,
        unexpected: u64,
        digest: String,
        seed: u64,
        quick: bool,
        version: String,
        commit: String,
        seconds: f64,
        code: u8,
    },
}

/// Events of `fontana-lab emulate`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum EmulatorEvent {
    Emulator {
        between: Vec<String>,
        loss: f64,
        burst: Option<f64>,
        delay_seconds: f64,
        jitter_seconds: f64,
        rate_bits_per_second: Option<u64>,
        queue_seconds: Option<f64>,
        every_frame: bool,
        seed: u64,
    },
    Emulated {
        from: String,
        to: String,
        offered: u64,
        lost: u64,
        queue_drops: u64,
        exempt: u64,
        delivered: u64,
        overflow: u64,
        refused: u64,
        missed: u64,
        trains: u64,
        latest_seconds: f64,
    },
}

/// Events of `fontana-lab hostile`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum HostileEvent {
    Class {
        id: String,
        what: String,
        packets: u64,
        alive: bool,
        memory: u64,
        memory_max: Option<u64>,
        disk_max: u64,
        log_bytes: u64,
        honest_verified: bool,
        honest_packets: u64,
        extra_packets: i64,
        forges: bool,
        broken: Vec<String>,
    },
    /// Of `--sockets`.
    ClassOnSockets {
        id: String,
        what: String,
        packets: u64,
        alive: bool,
        memory: u64,
        memory_max: Option<u64>,
        log_bytes: u64,
        honest_verified: bool,
        extra_symbols: i64,
        forges: bool,
        kernel_drops: u64,
        seconds: f64,
        seconds_alone: f64,
        broken: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_testing::events::check;

    #[test]
    fn every_event_is_documented_with_exactly_its_fields() {
        check::<LabEvent>("fontana-lab");
        check::<EmulatorEvent>("fontana-lab emulate");
        check::<HostileEvent>("fontana-lab hostile");
    }
}
