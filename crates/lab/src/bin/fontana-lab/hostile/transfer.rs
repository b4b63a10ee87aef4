//! What came of a transfer over sockets.

use fontana_lab::hostile::{Class, MAX_LOG_BYTES};

/// The end of a transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    pub(super) packets: u64,
    pub(super) is_exact: bool,
    pub(super) exit_code: Option<i32>,
    /// What the receiver said of its end.
    pub(super) error: Option<String>,
    pub(super) memory_max: Option<u64>,
    pub(super) log_bytes: u64,
    pub(super) kernel_drops: u64,
    pub(super) seconds: f64,
    /// Symbols of the session that it did not have.
    pub(super) symbols: u64,
}

impl Transfer {
    /// Symbols that it took beyond those of `alone`.
    pub(super) fn extra_symbols(&self, alone: &Self) -> i64 {
        self.symbols as i64 - alone.symbols as i64
    }

    /// What it broke, beside `alone`. Times depend on what else the host does.
    pub(super) fn broken(&self, class: &Class, alone: &Self, memory: u64) -> Vec<&'static str> {
        let allowed = if class.forges { i64::MAX } else { alone.symbols as i64 / 100 };
        let checks = [
            (self.exit_code.is_some(), "the receiver or the server has failed"),
            (self.is_exact, "the honest transfer is not complete"),
            (self.memory_max.is_none_or(|most| most <= memory), "too much memory"),
            (self.log_bytes <= MAX_LOG_BYTES, "too much is logged"),
            (self.extra_symbols(alone) <= allowed, "too many honest packets"),
        ];
        checks.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
    }
}
