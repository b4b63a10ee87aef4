//! Events of `fontana lab`.

use serde::Serialize;

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
        poisoned_blocks: u64,
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
