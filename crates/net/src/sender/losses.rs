//! Datagrams that did not leave this host for a reason that may pass.

use std::io;
use std::net::SocketAddr;

/// Sends that failed for a temporary reason, by reason, in datagrams. The session continues,
/// because no single datagram of a fountain is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendLosses {
    /// A queue of the kernel was full (ENOBUFS, ENOMEM): the rate exceeds that of the device.
    pub no_buffer_space: u64,
    /// The send buffer stayed full for 100 ms (EAGAIN): the device does not send.
    pub stalled: u64,
    /// No route, host or network down (ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN); the
    /// interface or its address is gone (ENODEV, ENXIO, EADDRNOTAVAIL, EINVAL).
    pub unreachable: u64,
    /// A host of a list reported that the port is closed (ECONNREFUSED).
    pub refused: u64,
    /// A local packet filter forbids it (EPERM, EACCES).
    pub not_permitted: u64,
    /// The MTU is lower than when a datagram of this size was sent earlier (EMSGSIZE).
    pub too_large: u64,
}

impl SendLosses {
    pub(super) fn counter(&mut self, cause: LossCause) -> &mut u64 {
        match cause {
            LossCause::NoBufferSpace => &mut self.no_buffer_space,
            LossCause::Stalled => &mut self.stalled,
            LossCause::Unreachable => &mut self.unreachable,
            LossCause::Refused => &mut self.refused,
            LossCause::NotPermitted => &mut self.not_permitted,
            LossCause::TooLarge => &mut self.too_large,
        }
    }
}

/// A reason for losses inside this host. [`SendLosses`] counts the datagrams of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// A queue of the kernel was full.
    NoBufferSpace,
    /// The send buffer stayed full.
    Stalled,
    /// No route, host or network down, or the interface or its address is gone.
    Unreachable,
    /// The port is closed.
    Refused,
    /// A local packet filter forbids it.
    NotPermitted,
    /// The MTU was lowered.
    TooLarge,
}

/// The first loss of a socket for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendLoss {
    /// The cause.
    pub cause: LossCause,
    /// The destination of the datagram.
    pub to: SocketAddr,
    /// The number of the system's error.
    pub errno: i32,
}

impl SendLoss {
    /// The system's error.
    pub fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// The cause of a temporary error; `None` for a permanent one.
pub(super) fn passing_cause(error: &io::Error) -> Option<LossCause> {
    match error.raw_os_error()? {
        libc::ENOBUFS | libc::ENOMEM => Some(LossCause::NoBufferSpace),
        libc::EAGAIN => Some(LossCause::Stalled),
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => {
            Some(LossCause::Unreachable)
        }
        // EINVAL: the source address is no longer one of this host.
        libc::ENODEV | libc::ENXIO | libc::EADDRNOTAVAIL | libc::EINVAL => {
            Some(LossCause::Unreachable)
        }
        libc::ECONNREFUSED => Some(LossCause::Refused),
        libc::EPERM | libc::EACCES => Some(LossCause::NotPermitted),
        // A datagram that never fitted is an error, which is decided earlier.
        libc::EMSGSIZE => Some(LossCause::TooLarge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_errors_are_counted_and_others_are_not() {
        let mut losses = SendLosses::default();
        for code in [
            libc::ENOBUFS,
            libc::EAGAIN,
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ECONNREFUSED,
            libc::EPERM,
            libc::EMSGSIZE,
            libc::ENODEV,
            libc::EINVAL,
            libc::EADDRNOTAVAIL,
        ] {
            let error = io::Error::from_raw_os_error(code);
            *losses.counter(passing_cause(&error).unwrap()) += 1;
        }
        assert_eq!(
            losses,
            SendLosses {
                no_buffer_space: 1,
                stalled: 1,
                unreachable: 5,
                refused: 1,
                not_permitted: 1,
                too_large: 1,
            }
        );
        for code in [libc::EBADF, libc::ENOTSOCK, libc::EFAULT] {
            assert!(passing_cause(&io::Error::from_raw_os_error(code)).is_none());
        }
    }
}
