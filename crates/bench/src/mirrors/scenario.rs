//! What goes wrong during a download.

use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// The server that dies or falls silent: the fastest.
pub(super) const FASTEST: usize = 0;
/// The server that serves other bytes: the second.
pub(super) const ALTERED: usize = 1;

/// Bytes of the pieces of which a damaged file has one altered byte in some.
const PIECE: usize = 64 << 10;
/// One piece in so many is altered.
const DAMAGED: usize = 100;

/// What the servers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scenario {
    /// All serve until the end.
    All,
    /// The fastest is killed at half time: its connections end.
    Killed,
    /// The fastest falls silent at half time: its link is down.
    Silent,
    /// The second has altered one byte in 1 % of the pieces of 64 KiB.
    Damaged,
    /// The second has altered every byte.
    Wrong,
}

impl Scenario {
    pub(super) const ALL: [Self; 5] =
        [Self::All, Self::Killed, Self::Silent, Self::Damaged, Self::Wrong];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Killed => "killed",
            Self::Silent => "silent",
            Self::Damaged => "damaged",
            Self::Wrong => "wrong",
        }
    }

    pub(super) fn named(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == name);
        found.ok_or_else(|| format!("{name} is none of {names}"))
    }

    /// Seconds in which the servers deliver this many bits at these rates, in bit/s, as long as
    /// each serves what is right.
    pub(super) fn ideal(self, bits: f64, rates: &[f64]) -> f64 {
        let all: f64 = rates.iter().sum();
        match self {
            Self::All | Self::Damaged => bits / all,
            // Half of the bits come before, the others without the fastest.
            Self::Killed | Self::Silent => bits / 2.0 / all + bits / 2.0 / (all - rates[FASTEST]),
            Self::Wrong => bits / (all - rates[ALTERED]),
        }
    }

    /// The most that a download of Fontana may take over the ideal, and the seconds on top.
    pub(super) fn goal(self) -> (f64, f64) {
        match self {
            Self::All => (1.05, 0.0),
            Self::Killed => (1.06, 0.0),
            Self::Silent => (1.06, 3.0),
            Self::Damaged | Self::Wrong => (1.10, 0.0),
        }
    }
}

/// Copies a file as the server of [`ALTERED`] has it.
///
/// # Errors
/// The system's.
pub(super) fn write_altered(scenario: Scenario, from: &Path, to: &Path) -> io::Result<()> {
    let mut bytes = fs::read(from)?;
    match scenario {
        Scenario::Wrong => bytes.iter_mut().for_each(|byte| *byte ^= 1),
        _ => {
            let pieces = bytes.chunks_mut(PIECE).step_by(DAMAGED);
            pieces.filter_map(|piece| piece.get_mut(PIECE / 2)).for_each(|byte| *byte ^= 1);
        }
    }
    fs::write(to, bytes)
}

#[cfg(test)]
mod tests {
    // `cargo bench` compiles this without a harness: then there are no tests to use it.
    #[allow(unused_imports)]
    use super::*;

    #[test]
    fn after_half_of_the_time_the_rate_of_the_fastest_is_missing() {
        let ideal = |scenario: Scenario| scenario.ideal(80.0, &[4.0, 2.0, 1.0, 1.0]);
        assert_eq!(ideal(Scenario::All), 10.0);
        assert_eq!(ideal(Scenario::Silent), 15.0);
        assert!((ideal(Scenario::Wrong) - 80.0 / 6.0).abs() < 1e-9);
    }
}
