//! Joining and leaving the group of a socket, also while another thread receives on it.
//!
//! A [`Membership`] is a second handle to the socket of a [`crate::ReceiveSocket`]. It has no way
//! to send. To add and drop the channels of a session is the business of [`crate::Channels`].
//!
//! The kernel bounds the sources that one socket may join a group from: 10
//! (`net.ipv4.igmp_max_msf`; IPv6: 64, `net.ipv6.mld_max_msf`), and with
//! `net.core.optmem_max` the memory for them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use socket2::Socket;

use crate::group::{GroupError, check_group};
use crate::interface::Interface;
use crate::sys::{self, Change};

/// A join or a leave that failed.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// Not a group for a session.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The socket is bound to another group and would never hear this one.
    #[error("this socket is bound to {bound}: open another one for {group}")]
    BoundElsewhere {
        /// What the socket is bound to.
        bound: IpAddr,
        /// What was asked for.
        group: IpAddr,
    },
    /// Group and source must be both IPv4 or both IPv6.
    #[error("group {group} and source {source_address} are of different IP versions")]
    MixedVersions {
        /// What was to be joined.
        group: IpAddr,
        /// The source it was to be joined from.
        source_address: IpAddr,
    },
    /// A source must be one host.
    #[error("{0} cannot be a source: it is not the address of one host")]
    NotASource(IpAddr),
    /// One socket receives a group either from anyone or from named sources.
    #[error(
        "{group} is joined already, and not in the same way: from any source or from named ones"
    )]
    AnyAndOne {
        /// The group.
        group: IpAddr,
    },
    /// The kernel's limit per socket is reached.
    #[error(
        "the kernel's limit is reached while joining {group} on {interface}: \
         raise it with `sysctl -w {sysctl}=N`, or receive fewer of them"
    )]
    LimitReached {
        /// What was to be joined.
        group: IpAddr,
        /// Where.
        interface: String,
        /// The setting that limits it.
        sysctl: &'static str,
    },
    /// Anything else the system says.
    #[error("cannot {verb} {group} on {interface}: {error}")]
    System {
        /// `join` or `leave`.
        verb: &'static str,
        /// The group.
        group: IpAddr,
        /// Where.
        interface: String,
        /// The system's word.
        #[source]
        error: io::Error,
    },
}

/// The handle with which the groups of a receiving socket are joined and left.
#[derive(Debug)]
pub struct Membership {
    socket: Socket,
    interface_name: String,
    interface_index: u32,
    /// The group that the socket is bound to: it hears no other.
    bound_to: IpAddr,
    /// What is joined: for each group its sources, `None` being any. Shared by all handles; the
    /// kernel's limits bound it. The kernel's own answers would not do: it calls a join from any
    /// source "already there" when one source is joined, and turns the opposite case into a
    /// source-specific one in silence.
    joined: Arc<Mutex<Joined>>,
}

type Joined = BTreeMap<IpAddr, BTreeSet<Option<IpAddr>>>;

impl Membership {
    pub(crate) fn new(socket: Socket, interface: &Interface, bound_to: IpAddr) -> Self {
        Self {
            socket,
            interface_name: interface.name.clone(),
            interface_index: interface.index,
            bound_to,
            joined: Arc::default(),
        }
    }

    /// Another handle to the same socket.
    ///
    /// # Errors
    /// Out of file descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            interface_name: self.interface_name.clone(),
            interface_index: self.interface_index,
            bound_to: self.bound_to,
            joined: Arc::clone(&self.joined),
        })
    }

    /// Joins `group`, from any source or from one. What is joined already stays joined.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub fn join(&self, group: IpAddr, source: Option<IpAddr>) -> Result<(), MembershipError> {
        self.check(group, source)?;
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = joined.get(&group);
        if sources.is_some_and(|sources| sources.contains(&source)) {
            return Ok(());
        }
        if sources.is_some_and(|sources| source.is_none() || sources.contains(&None)) {
            return Err(MembershipError::AnyAndOne { group });
        }
        let limit = limit_name(group, sources.is_some());
        self.system(Change::Join, group, source, limit)?;
        joined.entry(group).or_default().insert(source);
        Ok(())
    }

    /// Leaves what was joined with the same arguments. What is not joined needs no leaving.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub fn leave(&self, group: IpAddr, source: Option<IpAddr>) -> Result<(), MembershipError> {
        self.check(group, source)?;
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sources) = joined.get_mut(&group) else { return Ok(()) };
        if !sources.remove(&source) {
            return Ok(());
        }
        if sources.is_empty() {
            joined.remove(&group);
        }
        self.system(Change::Leave, group, source, "")
    }

    /// Leaves and joins everything again, which makes the kernel report to the routers and
    /// switches once more: the first thing to try when a session has gone silent.
    ///
    /// # Errors
    /// The first join that failed; the others are tried all the same.
    pub fn rejoin(&self) -> Result<(), MembershipError> {
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        for (&group, sources) in &*joined {
            for &source in sources {
                // The interface may have vanished and come back: then there is nothing to leave.
                let _ = self.system(Change::Leave, group, source, "");
            }
            for &source in sources {
                let again = self.system(Change::Join, group, source, limit_name(group, false));
                result = result.and(again);
            }
        }
        result
    }

    fn check(&self, group: IpAddr, source: Option<IpAddr>) -> Result<(), MembershipError> {
        check_group(group)?;
        let bound = self.bound_to;
        if bound != group {
            return Err(MembershipError::BoundElsewhere { bound, group });
        }
        match source {
            Some(source_address) if source_address.is_ipv4() != group.is_ipv4() => {
                Err(MembershipError::MixedVersions { group, source_address })
            }
            Some(source) if source.is_multicast() || source.is_unspecified() => {
                Err(MembershipError::NotASource(source))
            }
            _ => Ok(()),
        }
    }

    fn system(
        &self,
        change: Change,
        group: IpAddr,
        source: Option<IpAddr>,
        limit: &'static str,
    ) -> Result<(), MembershipError> {
        let result =
            sys::change_membership(&self.socket, change, self.interface_index, group, source);
        let interface = || self.interface_name.clone();
        result.map_err(|error| match (change, error.raw_os_error()) {
            (Change::Join, Some(libc::ENOBUFS)) => {
                MembershipError::LimitReached { group, interface: interface(), sysctl: limit }
            }
            (Change::Join, _) => {
                MembershipError::System { verb: "join", group, interface: interface(), error }
            }
            (Change::Leave, _) => {
                MembershipError::System { verb: "leave", group, interface: interface(), error }
            }
        })
    }
}

/// The setting that bounds a join: of one more group, or of one more source of a joined group.
fn limit_name(group: IpAddr, is_joined: bool) -> &'static str {
    match (group, is_joined) {
        (IpAddr::V4(_), false) => "net.ipv4.igmp_max_memberships",
        (IpAddr::V4(_), true) => "net.ipv4.igmp_max_msf",
        (IpAddr::V6(_), false) => "net.core.optmem_max",
        (IpAddr::V6(_), true) => "net.ipv6.mld_max_msf",
    }
}
