//! Which roll calls a receiver obeys: those that its publisher has signed, for its session, lately,
//! and once each.

use crate::time::Instant;
use fontana_wire::{InstanceId, PublicKey, RollCall, RollCallError, Tsi, UnverifiedRollCall};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Largest difference between the time of issue and this host's clock.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Runs of senders that are obeyed at the same time: mirrors, and one sender on several networks.
pub(super) const MAX_RUNS: usize = 4;
/// Time without a roll call of one run after which another has its place.
pub(super) const RUN_GONE: Duration = Duration::from_secs(5);
/// How much older the last roll call of a run is whose place another takes, in milliseconds: as of
/// one that is silent for [`RUN_GONE`]. Any host can repeat those of runs that have ended.
const LAG: u64 = 5_000;
/// Largest number of signatures that are checked per second, of 50 microseconds each. A sender
/// issues 50 roll calls a second at most.
const CHECKS_PER_SECOND: u32 = 60;

/// Why a roll call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollCallRefusal {
    /// It is not a roll call, or not one of the publisher.
    #[error(transparent)]
    Invalid(#[from] RollCallError),
    /// Another session of the publisher.
    #[error("the roll call is for session {0}")]
    OtherSession(Tsi),
    /// It was issued too long ago, or in the future, by this host's clock.
    #[error("the roll call was issued {seconds} s from now by this host's clock")]
    NotNow {
        /// Seconds between issue and now.
        seconds: u64,
    },
    /// As `NotNow`, and the publisher has signed it: one of the clocks is wrong, or an old one is
    /// sent again. Until a roll call is obeyed, and once.
    #[error(
        "the publisher's roll call was issued {seconds} s from now by this host's clock: one of \
         the clocks is wrong"
    )]
    ClocksDiffer {
        /// Seconds between issue and now.
        seconds: u64,
    },
    /// It is not newer than the last one.
    #[error("the roll call was received before")]
    Replayed,
    /// As many other senders of the session are obeyed as may be.
    #[error("{MAX_RUNS} other senders of the session ask for reports")]
    OtherSenders,
    /// The collector's address is not that of one host.
    #[error("reports cannot be sent to {0}")]
    Collector(SocketAddr),
    /// More roll calls arrive than are checked.
    #[error("too many roll calls")]
    TooMany,
}

/// Checks roll calls.
#[derive(Debug)]
pub struct RollCallGate {
    publisher: PublicKey,
    tsi: Option<Tsi>,
    /// Collectors that are known from elsewhere.
    collectors: Vec<SocketAddr>,
    /// The runs that are obeyed, and their last roll calls.
    runs: Vec<Last>,
    /// When the newest roll call of a run was issued that has lost its place.
    newest_gone: Option<u64>,
    /// Start of the second in which signatures are counted, and their number.
    counted_from: Instant,
    checks: u32,
    /// That the clocks differ was returned.
    has_differed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    instance: InstanceId,
    serial: u64,
    issued_unix_ms: u64,
    at: Instant,
}

impl RollCallGate {
    /// A gate for roll calls of `publisher` in the session `tsi`, or in any of its sessions.
    pub fn new(publisher: PublicKey, tsi: impl Into<Option<Tsi>>) -> Self {
        Self {
            publisher,
            tsi: tsi.into(),
            collectors: Vec::new(),
            runs: Vec::new(),
            newest_gone: None,
            counted_from: Instant::ZERO,
            checks: 0,
            has_differed: false,
        }
    }

    /// Obeys roll calls for these collectors although the clocks differ, from when that was
    /// returned on: who repeats old ones cannot make this host send anywhere else.
    #[must_use]
    pub fn with_collectors(self, collectors: Vec<SocketAddr>) -> Self {
        Self { collectors, ..self }
    }

    /// Checks the symbol of a packet. `unix_ms` is this host's clock; `None` if it is known to be
    /// wrong: then the publisher's signature and the order of its roll calls suffice.
    ///
    /// # Errors
    /// Why it asks for nothing.
    pub fn check(
        &mut self,
        now: Instant,
        unix_ms: Option<u64>,
        symbol: &[u8],
    ) -> Result<RollCall, RollCallRefusal> {
        let unverified = UnverifiedRollCall::parse(symbol)?;
        let claimed = unverified.claimed();
        if self.tsi.is_some_and(|tsi| claimed.tsi != tsi) {
            return Err(RollCallRefusal::OtherSession(claimed.tsi));
        }
        let apart = unix_ms.map_or(0, |unix_ms| claimed.issued_unix_ms.abs_diff(unix_ms));
        let apart = Duration::from_millis(apart);
        let is_known = self.collectors.contains(&claimed.collector);
        if apart > MAX_AGE && !(is_known && self.has_differed) {
            let seconds = apart.as_secs();
            let is_old = !self.runs.is_empty() && !is_known;
            if is_old || self.has_differed || self.count_check(now).is_err() {
                return Err(RollCallRefusal::NotNow { seconds });
            }
            unverified.verify(&self.publisher)?;
            self.has_differed = true;
            return Err(RollCallRefusal::ClocksDiffer { seconds });
        }
        let is_gone = |run: &Last| now >= run.at + RUN_GONE;
        let mut displaced = None;
        let is_later = match self.runs.iter().find(|run| run.instance == claimed.instance) {
            Some(last) => claimed.serial > last.serial,
            None if self.runs.len() >= MAX_RUNS && !self.runs.iter().any(is_gone) => {
                let oldest = self.runs.iter().min_by_key(|run| run.issued_unix_ms);
                let oldest = oldest.filter(|run| claimed.issued_unix_ms > run.issued_unix_ms + LAG);
                displaced = Some(oldest.ok_or(RollCallRefusal::OtherSenders)?.instance);
                true
            }
            // A run that another has followed is not continued.
            None => {
                let gone = self.runs.iter().filter(|run| is_gone(run));
                let gone = gone.map(|run| run.issued_unix_ms).chain(self.newest_gone);
                gone.max().is_none_or(|newest| claimed.issued_unix_ms >= newest)
            }
        };
        if !is_later {
            return Err(RollCallRefusal::Replayed);
        }
        if !can_collect(claimed.collector) {
            return Err(RollCallRefusal::Collector(claimed.collector));
        }
        self.count_check(now)?;
        let roll_call = unverified.verify(&self.publisher)?;
        let &RollCall { instance, serial, issued_unix_ms, .. } = &roll_call;
        self.runs.retain(|run| {
            let is_other = run.instance != instance;
            if is_other && (now >= run.at + RUN_GONE || Some(run.instance) == displaced) {
                self.newest_gone = self.newest_gone.max(Some(run.issued_unix_ms));
                return false;
            }
            is_other
        });
        self.runs.push(Last { instance, serial, issued_unix_ms, at: now });
        Ok(roll_call)
    }

    /// Counts the check of a signature.
    fn count_check(&mut self, now: Instant) -> Result<(), RollCallRefusal> {
        if now >= self.counted_from + Duration::from_secs(1) {
            (self.counted_from, self.checks) = (now, 0);
        }
        if self.checks >= CHECKS_PER_SECOND {
            return Err(RollCallRefusal::TooMany);
        }
        self.checks += 1;
        Ok(())
    }
}

/// True for the address of one host, with a port.
fn can_collect(collector: SocketAddr) -> bool {
    let is_host = match collector.ip() {
        IpAddr::V4(address) => !address.is_broadcast(),
        // An IPv4 address in the form of IPv6 would pass the checks of IPv6.
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
    };
    is_host
        && !collector.ip().is_multicast()
        && !collector.ip().is_unspecified()
        && collector.port() != 0
}
