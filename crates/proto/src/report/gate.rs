//! Which roll calls a receiver obeys: those that its publisher has signed, for its session, lately,
//! and once each.

use crate::time::Instant;
use fontana_wire::{InstanceId, PublicKey, RollCall, RollCallError, Tsi, UnverifiedRollCall};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Largest difference between the time of issue and this host's clock.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Time without a roll call of one sender after which another one's is obeyed.
const SENDER_GONE: Duration = Duration::from_secs(5);
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
    /// Another sender of the session is obeyed.
    #[error("another sender of the session asks for reports")]
    OtherSender,
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
    tsi: Tsi,
    /// The sender that is obeyed, and its last roll call.
    last: Option<Last>,
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
    /// A gate for roll calls of `publisher` in the session `tsi`.
    pub fn new(publisher: PublicKey, tsi: Tsi) -> Self {
        Self {
            publisher,
            tsi,
            last: None,
            counted_from: Instant::ZERO,
            checks: 0,
            has_differed: false,
        }
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
        if claimed.tsi != self.tsi {
            return Err(RollCallRefusal::OtherSession(claimed.tsi));
        }
        let apart = unix_ms.map_or(0, |unix_ms| claimed.issued_unix_ms.abs_diff(unix_ms));
        let apart = Duration::from_millis(apart);
        if apart > MAX_AGE {
            let seconds = apart.as_secs();
            if self.last.is_some() || self.has_differed || self.count_check(now).is_err() {
                return Err(RollCallRefusal::NotNow { seconds });
            }
            unverified.verify(&self.publisher)?;
            self.has_differed = true;
            return Err(RollCallRefusal::ClocksDiffer { seconds });
        }
        if let Some(last) = &self.last {
            let is_same = last.instance == claimed.instance;
            if !is_same && now < last.at + SENDER_GONE {
                return Err(RollCallRefusal::OtherSender);
            }
            // A run of the sender that another has followed is not continued.
            let is_later = match is_same {
                true => claimed.serial > last.serial,
                false => claimed.issued_unix_ms >= last.issued_unix_ms,
            };
            if !is_later {
                return Err(RollCallRefusal::Replayed);
            }
        }
        if !can_collect(claimed.collector) {
            return Err(RollCallRefusal::Collector(claimed.collector));
        }
        self.count_check(now)?;
        let roll_call = unverified.verify(&self.publisher)?;
        self.last = Some(Last {
            instance: roll_call.instance,
            serial: roll_call.serial,
            issued_unix_ms: roll_call.issued_unix_ms,
            at: now,
        });
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
