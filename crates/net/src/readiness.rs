//! Waiting until one of many sockets is readable.
//!
//! On Linux this uses epoll(7), whose cost does not grow with the number of silent sockets;
//! elsewhere poll(2), whose cost does.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

pub(crate) use system::Readiness;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::*;
    use rustix::event::{Timespec, epoll};
    use rustix::io::Errno;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;

    /// Descriptors that one wait returns: about those of a session with the most channels. The next
    /// wait starts with the others.
    const AT_A_TIME: usize = 64;

    /// A set of descriptors, each with a number that the caller gives.
    #[derive(Debug)]
    pub(crate) struct Readiness(OwnedFd);

    impl Readiness {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
        }

        pub(crate) fn add(&mut self, source: impl AsFd, number: u64) -> io::Result<()> {
            let data = epoll::EventData::new_u64(number);
            Ok(epoll::add(&self.0, source, data, epoll::EventFlags::IN)?)
        }

        /// Removes a descriptor. The caller must do so before closing it.
        pub(crate) fn remove(&mut self, source: impl AsFd, _number: u64) {
            // The only possible error is that it is not in the set.
            let _ = epoll::delete(&self.0, source);
        }

        /// Waits at most `timeout` and puts the numbers of the readable descriptors into `ready`:
        /// none after the timeout or a signal.
        pub(crate) fn wait(&mut self, timeout: Duration, ready: &mut Vec<u64>) -> io::Result<()> {
            ready.clear();
            // Nanoseconds below a second fit any type.
            let nanos = i64::from(timeout.subsec_nanos()) as _;
            let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: nanos };
            let mut room = [MaybeUninit::uninit(); AT_A_TIME];
            match epoll::wait(&self.0, &mut room[..], Some(&timeout)) {
                Ok((events, _)) => ready.extend(events.iter().map(|event| event.data.u64())),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(())
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::*;
    use crate::sys::PollSet;
    use std::os::fd::{AsRawFd, RawFd};

    /// A set of descriptors, each with a number that the caller gives.
    #[derive(Debug)]
    pub(crate) struct Readiness(Vec<(RawFd, u64)>);

    impl Readiness {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(Vec::new()))
        }

        pub(crate) fn add(&mut self, source: impl AsFd, number: u64) -> io::Result<()> {
            self.0.push((source.as_fd().as_raw_fd(), number));
            Ok(())
        }

        pub(crate) fn remove(&mut self, _source: impl AsFd, number: u64) {
            self.0.retain(|&(_, n)| n != number);
        }

        pub(crate) fn wait(&mut self, timeout: Duration, ready: &mut Vec<u64>) -> io::Result<()> {
            ready.clear();
            let mut set = PollSet::new(self.0.iter().map(|&(descriptor, _)| descriptor));
            if set.wait(timeout)? {
                let numbers = self.0.iter().enumerate();
                ready.extend(numbers.filter(|(i, _)| set.is_ready(*i)).map(|(_, &(_, n))| n));
            }
            Ok(())
        }
    }
}
