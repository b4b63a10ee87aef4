//! The real clock: nanoseconds since the run began, and two ways to wait.
//!
//! Endpoints of the protocol take the time as a number of nanoseconds since a fixed origin.
//! [`Clock`] provides these numbers. It is monotonic: setting the system's clock does not change
//! it.
//!
//! A pacing loop sleeps until its next tick and then sends all packets that are due *by the clock*.
//! So it catches up after a late wake-up, and the average rate is exact. Ordinary sleeps (Linux:
//! within about 50 microseconds plus scheduling) suffice for ticks of one millisecond; no function
//! here spins.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A clock: nanoseconds since the run began.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads 0 now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since the start; never decreases.
    pub fn now_nanos(&self) -> u64 {
        // 2^64 ns are 584 years.
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time until `nanos`; zero if that is past.
    pub fn until(&self, nanos: u64) -> Duration {
        Duration::from_nanos(nanos.saturating_sub(self.now_nanos()))
    }

    /// Sleeps until the clock reads at least `nanos`; returns at once if it already does.
    pub fn sleep_until(&self, nanos: u64) {
        let remaining = self.until(nanos);
        if !remaining.is_zero() {
            std::thread::sleep(remaining);
        }
    }
}

/// Sets the timer slack of the calling thread to its minimum. Otherwise Linux may end several waits
/// together, up to 50 microseconds late (prctl(2)). Does nothing on other systems.
pub fn wake_promptly() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // An error costs those microseconds. The minimum is one nanosecond.
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZero::<u64>::MIN));
}

/// A request, while it is held, that no processor of this host enters an idle state: idle
/// processors poll instead, at full power.
///
/// For measurements. An idle processor has to wake up before it can end a wait. In a virtual
/// machine the hypervisor may run others first: the wait is then late by milliseconds, which count
/// as stolen time.
///
/// Uses PM QoS of Linux with a latency of 0 (Documentation/power/pm_qos_interface.rst), which has
/// an effect if the kernel has a driver for idle processors.
#[derive(Debug)]
pub struct Wakefulness(#[allow(dead_code, reason = "withdrawn when it is closed")] File);

impl Wakefulness {
    /// Makes the request.
    ///
    /// # Errors
    /// Those of opening and writing the device: the system has none, or the process lacks root's
    /// rights.
    pub fn request() -> io::Result<Self> {
        let mut device = File::options().write(true).open("/dev/cpu_dma_latency")?;
        device.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self(device))
    }
}

/// Why [`Alarm::wait_until`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The time has come.
    Deadline,
    /// [`Alarm::ring`] was called, before or during the wait.
    Rung,
}

/// A wait that another thread can end. Clones share one state.
///
/// A ring without a waiting thread is stored for the next wait; several count as one.
#[derive(Debug, Clone, Default)]
pub struct Alarm {
    bell: Arc<(Mutex<bool>, Condvar)>,
}

impl Alarm {
    /// An alarm without a stored ring.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the wait of one waiting thread, or the next wait.
    pub fn ring(&self) {
        let (rung, changed) = &*self.bell;
        // A bool cannot be half written, so the value is usable after a panic of another thread.
        *rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_one();
    }

    /// Waits until `clock` reads `nanos` or the alarm rings, whichever comes first.
    pub fn wait_until(&self, clock: &Clock, nanos: u64) -> Wake {
        let (rung, changed) = &*self.bell;
        let mut rung = rung.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if std::mem::take(&mut *rung) {
                return Wake::Rung;
            }
            let remaining = clock.until(nanos);
            if remaining.is_zero() {
                return Wake::Deadline;
            }
            rung = changed.wait_timeout(rung, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_until_never_returns_early_and_at_once_for_the_past() {
        let clock = Clock::start();
        clock.sleep_until(3_000_000);
        assert!(clock.now_nanos() >= 3_000_000);
        // A time in the past: no sleep, so no deadline to miss.
        clock.sleep_until(0);
        assert_eq!(clock.until(0), Duration::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processors_are_kept_awake_while_the_request_is_held() {
        // The latency that the kernel uses, in microseconds, from all requests.
        let latency = || std::fs::read("/dev/cpu_dma_latency").map(|bytes| bytes[..4] == [0; 4]);
        match Wakefulness::request() {
            Ok(wakefulness) => {
                assert!(latency().unwrap());
                drop(wakefulness);
            }
            // The process may lack the rights, or the system the device.
            Err(error) => assert!(latency().is_err(), "{error}"),
        }
    }

    #[test]
    fn a_ring_before_the_wait_is_stored_once() {
        let (clock, alarm) = (Clock::start(), Alarm::new());
        alarm.ring();
        alarm.ring();
        assert_eq!(alarm.wait_until(&clock, u64::MAX), Wake::Rung);
        assert_eq!(alarm.wait_until(&clock, clock.now_nanos()), Wake::Deadline);
    }

    #[test]
    fn a_ring_ends_an_endless_wait() {
        let (clock, alarm) = (Clock::start(), Alarm::new());
        let bell = alarm.clone();
        let other = std::thread::spawn(move || bell.ring());
        assert_eq!(alarm.wait_until(&clock, u64::MAX), Wake::Rung);
        other.join().unwrap();
    }
}
