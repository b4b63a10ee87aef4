//! Hosts of a unicast session that packets do not reach, because their hardware addresses are
//! unknown.

use fontana_net::MissingNeighbor;
use fontana_net::neighbor::missing;
use std::net::IpAddr;
use std::time::Duration;

/// Time that an answer to an address request may take. The kernel asks three times, a second apart
/// (arp(7)); on a link that works the first answer comes within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval between checks while the end of a session waits for an answer.
const SETTLE_EVERY: Duration = Duration::from_millis(50);
/// Hosts that are checked: a check takes two system calls on the pacing thread.
const MAX_HOSTS: usize = 64;

/// The hosts that no packet has left for yet, as far as is known.
pub(super) struct Reach {
    pending: Vec<IpAddr>,
    hosts: usize,
    due: Duration,
    was_told: bool,
}

impl Reach {
    pub(super) fn new(hosts: impl Iterator<Item = IpAddr>) -> Self {
        let pending: Vec<_> = hosts.take(MAX_HOSTS).collect();
        Self { hosts: pending.len(), pending, due: PATIENCE, was_told: false }
    }

    /// Checks the hosts once a second until all are reached. Returns those to report.
    pub(super) fn check(&mut self, elapsed: Duration) -> Vec<MissingNeighbor> {
        if self.pending.is_empty() || elapsed < self.due {
            return Vec::new();
        }
        self.due = elapsed + PATIENCE;
        let found = self.find();
        if std::mem::replace(&mut self.was_told, true) { Vec::new() } else { found }
    }

    /// At the end of a session: a host that was not reached, if no host was.
    pub(super) fn nothing_left(&mut self, elapsed: Duration) -> Option<MissingNeighbor> {
        if self.pending.is_empty() || self.pending.len() < self.hosts {
            return None;
        }
        let mut waited = elapsed;
        loop {
            let found = self.find();
            if found.len() < self.hosts || waited >= PATIENCE {
                return found.into_iter().next().filter(|_| self.pending.len() == self.hosts);
            }
            std::thread::sleep(SETTLE_EVERY);
            waited += SETTLE_EVERY;
        }
    }

    /// The pending hosts that are still missing. If the system does not tell, a host counts as
    /// reached.
    fn find(&mut self) -> Vec<MissingNeighbor> {
        let missing = |host: &IpAddr| missing(*host).ok().flatten();
        let found: Vec<_> = self.pending.iter().filter_map(missing).collect();
        self.pending = found.iter().map(|missing| missing.host).collect();
        found
    }
}
