//! The events of `fontana serve`, and of `fontana recv --then-serve`.

use fontana::{Outcome, ServeProgress, ServeReport};
use fontana_console::exit;
use fontana_console::json::verdict;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum ServeEvent {
    Holding {
        ticket: String,
        listen: String,
        manifest: String,
    },
    Serving {
        ticket: String,
        listen: String,
        manifest: String,
        files: u64,
        bytes: u64,
        fresh: bool,
    },
    Served {
        #[serde(flatten)]
        counts: Counts,
    },
    Stopped {
        verdict: String,
        code: u8,
        #[serde(flatten)]
        counts: Counts,
    },
}

/// What a server has done.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Counts {
    clients: u64,
    requests: u64,
    waited: u64,
    slow: u64,
    bytes: u64,
    encoded_symbols: u64,
    sent_symbols: u64,
}

impl From<&ServeProgress> for Counts {
    fn from(progress: &ServeProgress) -> Self {
        Self {
            clients: progress.clients,
            requests: progress.requests,
            waited: progress.waited,
            slow: progress.slow,
            bytes: progress.bytes,
            encoded_symbols: progress.encoded_symbols,
            sent_symbols: progress.sent_symbols,
        }
    }
}

impl ServeEvent {
    pub(crate) fn progress(progress: &ServeProgress) -> Self {
        Self::Served { counts: progress.into() }
    }

    pub(crate) fn summary(report: &ServeReport, outcome: Outcome) -> Self {
        let (verdict, code) = (verdict(outcome).into(), exit::code(outcome));
        Self::Stopped { verdict, code, counts: (&report.progress).into() }
    }
}
