//! The real clock: nanoseconds since the run began, and two ways to wait.
//!
//! Endpoints of the protocol take the time as a number of nanoseconds since a fixed origin.
//! [`Clock`] provides these numbers. It is monotonic: setting the system's clock does not change
//! it.
//!
//! A pacing loop sleeps until its next packet is due and then sends all packets that are due *by
//! the clock*. The sleep ends at an absolute time: a thread that the system suspends before it
//! sleeps does not sleep longer. Functions here neither spin nor yield the processor, which costs a
//! thread its turn on a busy host.

use std::fs::File;
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// A clock: nanoseconds since the run began.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: system::Origin,
}

impl Clock {
    /// A clock that reads 0 now.
    pub fn start() -> Self {
        Self { origin: system::Origin::now() }
    }

    /// Nanoseconds since the start; never decreases.
    pub fn now_nanos(&self) -> u64 {
        self.origin.elapsed_nanos()
    }

    /// The time until `nanos`; zero if that is past.
    pub fn until(&self, nanos: u64) -> Duration {
        Duration::from_nanos(nanos.saturating_sub(self.now_nanos()))
    }

    /// Sleeps until the clock reads at least `nanos`; returns at once if it already does.
    pub fn sleep_until(&self, nanos: u64) {
        while self.now_nanos() < nanos {
            self.origin.sleep_until(nanos);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use rustix::thread::{ClockId, clock_nanosleep_absolute};
    use rustix::time::{Timespec, clock_gettime};

    /// A time of the system's monotonic clock, in nanoseconds since the boot.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Origin(u64);

    const NANOS_PER_SECOND: u64 = 1_000_000_000;

    impl Origin {
        pub(super) fn now() -> Self {
            let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
            // Neither is negative. 2^64 ns are 584 years.
            Self(tv_sec as u64 * NANOS_PER_SECOND + tv_nsec as u64)
        }

        pub(super) fn elapsed_nanos(self) -> u64 {
            Self::now().0.saturating_sub(self.0)
        }

        /// Sleeps until this time after the origin, or until a signal.
        pub(super) fn sleep_until(self, nanos: u64) {
            let Self(at) = Self(self.0.saturating_add(nanos));
            let wake = Timespec {
                tv_sec: (at / NANOS_PER_SECOND) as i64,
                // Nanoseconds below a second fit any type.
                tv_nsec: (at % NANOS_PER_SECOND) as _,
            };
            // The only possible error is a signal.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &wake);
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::time::{Duration, Instant};

    /// A time of the system's monotonic clock.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Origin(Instant);

    impl Origin {
        pub(super) fn now() -> Self {
            Self(Instant::now())
        }

        pub(super) fn elapsed_nanos(self) -> u64 {
            // 2^64 ns are 584 years.
            u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
        }

        /// Sleeps until this time after the origin.
        pub(super) fn sleep_until(self, nanos: u64) {
            std::thread::sleep(Duration::from_nanos(nanos.saturating_sub(self.elapsed_nanos())));
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
    /// [`Bell::ring`] was called, before or during the wait.
    Rung,
}

/// Waits of one thread that others can end with a [`Bell`].
///
/// A ring without a wait is stored for the next wait; several count as one.
#[derive(Debug)]
pub struct Alarm {
    bell: Bell,
    /// Stays on its thread, the one that bells wake.
    _not_send: PhantomData<*const ()>,
}

/// The other end of an [`Alarm`], for any thread.
#[derive(Debug, Clone)]
pub struct Bell {
    rung: Arc<AtomicBool>,
    thread: Thread,
}

impl Alarm {
    /// An alarm for waits of the calling thread, without a stored ring.
    pub fn for_this_thread() -> Self {
        let bell = Bell { rung: Arc::default(), thread: std::thread::current() };
        Self { bell, _not_send: PhantomData }
    }

    /// A bell of this alarm.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Waits until `clock` reads `nanos` or a bell rings, whichever comes first.
    pub fn wait_until(&self, clock: &Clock, nanos: u64) -> Wake {
        loop {
            // Acquires what the ringing thread has written before.
            if self.bell.rung.swap(false, Ordering::Acquire) {
                return Wake::Rung;
            }
            let remaining = clock.until(nanos);
            if remaining.is_zero() {
                return Wake::Deadline;
            }
            std::thread::park_timeout(remaining);
        }
    }
}

impl Bell {
    /// Ends the wait of the alarm's thread, or its next one. A system call only if it waits.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.thread.unpark();
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
        let (clock, alarm) = (Clock::start(), Alarm::for_this_thread());
        alarm.bell().ring();
        alarm.bell().ring();
        assert_eq!(alarm.wait_until(&clock, u64::MAX), Wake::Rung);
        assert_eq!(alarm.wait_until(&clock, clock.now_nanos()), Wake::Deadline);
    }

    #[test]
    fn a_ring_ends_an_endless_wait() {
        let (clock, alarm) = (Clock::start(), Alarm::for_this_thread());
        let bell = alarm.bell();
        let other = std::thread::spawn(move || bell.ring());
        assert_eq!(alarm.wait_until(&clock, u64::MAX), Wake::Rung);
        other.join().unwrap();
    }
}
