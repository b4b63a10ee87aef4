//! Calls of sockets that the content does not need, and what follows if the system refuses one.
//!
//! | call | what follows |
//! |---|---|
//! | size of the receive buffer | the kernel drops packets that arrive in a burst |
//! | size of the send buffer, longest wait for it | the sender waits more often, and ends later |
//! | receive offload | each datagram takes a call of its own |
//! | other programs' groups kept away, a port that others share | as the system does it |
//! | no fragments | packets that exceed the MTU are fragmented |
//! | traffic class | networks treat the packets as all others |
//! | hop limit | packets reach this network only, which is the system's default |
//! | copies for this host | receivers on this host have them, which is the system's default |
//! | interface of broadcasts | the routing table chooses it |
//!
//! Refused segmentation offload and priorities of threads only cost time, and are not told. A
//! socket, its bind, the permission to broadcast, the interface of multicast and the joins are
//! needed: their errors are those of the session.

use std::io;

/// A kind of call that the content does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OptionalSetting {
    /// The size of the receive buffer.
    ReceiveBuffer,
    /// The size of the send buffer.
    SendBuffer,
    /// The longest wait for room in the send buffer.
    SendTimeout,
    /// Receive offload, and what the system reports with it.
    ReceiveOffload,
    /// Groups that other programs have joined are kept away.
    OwnGroups,
    /// Other programs may use the port, too.
    SharedPort,
    /// An IPv6 socket has nothing to do with IPv4.
    OnlyVersion6,
    /// Packets are not fragmented.
    NoFragments,
    /// The traffic class of packets (DSCP).
    TrafficClass,
    /// The hop limit of multicast.
    HopLimit,
    /// Receivers on this host get copies.
    LocalCopies,
    /// The interface that broadcasts leave by.
    BroadcastInterface,
}

/// A call that the system refused, and that the session goes on without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ungranted {
    /// The kind of call.
    pub setting: OptionalSetting,
    /// The number of the system's error; 0 if it has none.
    pub errno: i32,
}

impl Ungranted {
    /// The system's error.
    pub fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// The calls that were refused for a socket, the first of each kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Vec<Ungranted>);

impl Refusals {
    /// The value of a call; `None` if it was refused, which is remembered.
    pub(crate) fn tolerate<T>(
        &mut self,
        setting: OptionalSetting,
        result: io::Result<T>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::debug!(?setting, %error, "refused, and not needed");
                if self.0.iter().all(|known| known.setting != setting) {
                    self.0.push(Ungranted { setting, errno: error.raw_os_error().unwrap_or(0) });
                }
                None
            }
        }
    }

    pub(crate) fn list(&self) -> &[Ungranted] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_refusal_is_remembered_once() {
        let mut refusals = Refusals::default();
        let refused = |errno| io::Result::<u8>::Err(io::Error::from_raw_os_error(errno));
        assert_eq!(refusals.tolerate(OptionalSetting::HopLimit, Ok(1)), Some(1));
        assert_eq!(refusals.tolerate(OptionalSetting::TrafficClass, refused(libc::EPERM)), None);
        assert_eq!(refusals.tolerate(OptionalSetting::TrafficClass, refused(libc::EINVAL)), None);
        let first = Ungranted { setting: OptionalSetting::TrafficClass, errno: libc::EPERM };
        assert_eq!(refusals.list(), [first]);
    }
}
