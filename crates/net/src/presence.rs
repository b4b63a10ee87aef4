//! Whether the interfaces of a session are still there, and which index they have.
//!
//! An adapter that is plugged in again, a bridge that is made again and a tunnel that connects
//! again have their name, and another index. What was joined and chosen by the old index is lost
//! with it. The kernel is asked once a second, by ioctls of netdevice(7) and without netlink. An
//! interface that is renamed keeps its index, and nothing is lost.

use crate::interface::Interface;
use std::net::IpAddr;
use std::time::Duration;

/// Interval between two questions.
pub(crate) const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A change of an interface that a session uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceChange {
    /// No interface has its index or its name.
    Gone {
        /// Its name.
        interface: String,
    },
    /// It is used again, with the index that it has now.
    Back {
        /// Its name.
        interface: String,
        /// Sender: the source address, if it is another one than before.
        source: Option<IpAddr>,
    },
}

/// The interfaces that a receiver has joined groups on.
#[derive(Debug, Default)]
pub struct Presence {
    watched: Vec<Watched>,
    /// Time of the next question.
    due: Duration,
}

#[derive(Debug)]
struct Watched {
    interface: Interface,
    /// `None`: it is gone, or its groups are not joined again.
    joined: Option<u32>,
    /// That it is gone was returned.
    is_told: bool,
}

/// What [`Presence::poll`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The interface is gone. Returned once, until it is back.
    Gone(Interface),
    /// The interface has an index that its groups are not joined with. Returned until
    /// [`Presence::joined`] is called.
    Again(Interface),
}

impl Presence {
    /// Interfaces that are there now.
    pub fn new(interfaces: impl IntoIterator<Item = Interface>) -> Self {
        let watched = interfaces.into_iter().map(|interface| Watched {
            joined: Some(interface.index),
            is_told: false,
            interface,
        });
        Self { watched: watched.collect(), due: CHECK_EVERY }
    }

    /// The interfaces that are there, as far as is known.
    pub fn present(&self) -> impl Iterator<Item = &Interface> {
        self.watched.iter().filter(|it| it.joined.is_some()).map(|it| &it.interface)
    }

    /// The next call of [`poll`](Self::poll) asks, whatever the time.
    pub fn ask_now(&mut self) {
        self.due = Duration::ZERO;
    }

    /// Asks for each interface if it is time. `index_now` returns the index of an interface, by its
    /// last index or else by its name; `None` if there is none ([`index_now`]).
    pub fn poll(
        &mut self,
        now: Duration,
        mut index_now: impl FnMut(&Interface) -> Option<u32>,
    ) -> Vec<Found> {
        if now < self.due {
            return Vec::new();
        }
        self.due = now + CHECK_EVERY;
        let mut found = Vec::new();
        for watched in &mut self.watched {
            match index_now(&watched.interface) {
                None => {
                    watched.joined = None;
                    if !std::mem::replace(&mut watched.is_told, true) {
                        found.push(Found::Gone(watched.interface.clone()));
                    }
                }
                Some(index) if watched.joined == Some(index) => {}
                Some(index) => {
                    watched.interface.index = index;
                    watched.joined = None;
                    found.push(Found::Again(watched.interface.clone()));
                }
            }
        }
        found
    }

    /// The groups are joined with the index that the last [`Found::Again`] had.
    pub fn joined(&mut self, name: &str) {
        for watched in self.watched.iter_mut().filter(|it| it.interface.name == name) {
            watched.joined = Some(watched.interface.index);
            watched.is_told = false;
        }
    }
}

/// The index of an interface: that of before while an interface has it, else that of its name.
/// `None` if there is none. What cannot be asked counts as unchanged.
pub fn index_now(interface: &Interface) -> Option<u32> {
    crate::sys::index_now(&interface.name, interface.index).unwrap_or(Some(interface.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32) -> Interface {
        Interface {
            name: name.to_owned(),
            index,
            addresses: Vec::new(),
            mtu: 1500,
            is_up: true,
            is_multicast: true,
            is_loopback: false,
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_interface_that_is_gone_is_told_once_and_joined_when_it_is_back() {
        let mut presence = Presence::new([interface("eth0", 2), interface("eth1", 3)]);
        let with = |eth0: Option<u32>| {
            move |asked: &Interface| if asked.name == "eth0" { eth0 } else { Some(3) }
        };
        assert!(presence.poll(Duration::ZERO, |_| None).is_empty(), "too soon");
        assert!(presence.poll(seconds(1), with(Some(2))).is_empty());
        assert_eq!(presence.poll(seconds(2), with(None)), [Found::Gone(interface("eth0", 2))]);
        assert!(presence.poll(seconds(3), with(None)).is_empty(), "told once");
        assert_eq!(presence.present().count(), 1);
        let again = [Found::Again(interface("eth0", 7))];
        assert_eq!(presence.poll(seconds(4), with(Some(7))), again);
        assert_eq!(presence.poll(seconds(5), with(Some(7))), again, "the join failed");
        presence.joined("eth0");
        assert!(presence.poll(seconds(6), with(Some(7))).is_empty());
        assert_eq!(presence.present().count(), 2);
        // The same index, after a time without: the kernel has forgotten the groups.
        assert_eq!(presence.poll(seconds(7), with(None)), [Found::Gone(interface("eth0", 7))]);
        assert_eq!(presence.poll(seconds(8), with(Some(7))), again);
    }

    #[test]
    fn an_interface_that_is_replaced_between_two_questions_is_joined_again() {
        let mut presence = Presence::new([interface("br0", 2)]);
        let again = [Found::Again(interface("br0", 9))];
        assert_eq!(presence.poll(seconds(1), |_| Some(9)), again);
        presence.joined("br0");
        assert!(presence.poll(seconds(1), |_| None).is_empty(), "too soon");
        presence.ask_now();
        assert_eq!(presence.poll(seconds(1), |_| None).len(), 1);
    }

    #[test]
    fn this_host_has_the_loopback_interface_by_index_and_by_name() {
        let listed = crate::Interfaces::list().unwrap();
        let lo = listed.loopback().unwrap();
        assert_eq!(index_now(lo), Some(lo.index));
        let renamed = Interface { name: "other".into(), ..lo.clone() };
        assert_eq!(index_now(&renamed), Some(lo.index));
        let replaced = Interface { index: 1 << 30, ..lo.clone() };
        assert_eq!(index_now(&replaced), Some(lo.index));
        let gone = Interface { index: 1 << 30, name: "other".into(), ..lo.clone() };
        assert_eq!(index_now(&gone), None);
    }
}
