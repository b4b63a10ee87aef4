//! Joining and leaving the group of a socket, also while another thread receives from it.
//!
//! A [`Membership`] is a second handle to the socket of a [`crate::ReceiveSocket`]. It cannot send.
//! [`crate::Channels`] opens and closes the channels of a session.
//!
//! The kernel limits the sources from which one socket may join a group: 10
//! (`net.ipv4.igmp_max_msf`; IPv6: 64, `net.ipv6.mld_max_msf`), and their memory with
//! `net.core.optmem_max`.

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
    /// The group cannot carry a session.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The socket is bound to another group, so it would not receive this one.
    #[error("this socket is bound to {bound}: open another one for {group}")]
    BoundElsewhere {
        /// The group that the socket is bound to.
        bound: IpAddr,
        /// The requested group.
        group: IpAddr,
    },
    /// Group and source must be both IPv4 or both IPv6.
    #[error("group {group} and source {source_address} are of different IP versions")]
    MixedVersions {
        /// The requested group.
        group: IpAddr,
        /// The requested source.
        source_address: IpAddr,
    },
    /// A source must be the address of one host.
    #[error("{0} cannot be a source: it is not the address of one host")]
    NotASource(IpAddr),
    /// One socket receives a group either from any source or from named sources.
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
        /// The requested group.
        group: IpAddr,
        /// The interface's name.
        interface: String,
        /// The setting that limits it.
        sysctl: &'static str,
    },
    /// Another error of the system.
    #[error("cannot {verb} {group} on {interface}: {error}")]
    System {
        /// `join` or `leave`.
        verb: &'static str,
        /// The group.
        group: IpAddr,
        /// The interface's name.
        interface: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// The handle that joins and leaves the groups of a receiving socket.
#[derive(Debug)]
pub struct Membership {
    socket: Socket,
    interface_name: String,
    interface_index: u32,
    /// The group that the socket is bound to. It receives no other.
    bound_to: IpAddr,
    /// The joined sources of each group; `None` means any. All handles share it; the kernel's
    /// limits bound it. The kernel's answers do not suffice: after a join from one source it
    /// reports a join from any source as "already joined", and in the opposite case it changes to
    /// source-specific reception without an error.
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
    /// The system has no file descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            interface_name: self.interface_name.clone(),
            interface_index: self.interface_index,
            bound_to: self.bound_to,
            joined: Arc::clone(&self.joined),
        })
    }

    /// Name of the interface that it joins on.
    pub(crate) fn interface_name(&self) -> &str {
        &self.interface_name
    }

    /// Joins `group`, from any source or from one. A repeated join has no effect.
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

    /// Leaves what was joined with the same arguments. Does nothing if it is not joined.
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

    /// Leaves all groups and joins them again, so that the kernel sends reports to routers and
    /// switches: the first remedy for a silent session.
    ///
    /// # Errors
    /// The first join that failed; the other joins are attempted too.
    pub fn rejoin(&self) -> Result<(), MembershipError> {
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        for (&group, sources) in &*joined {
            for &source in sources {
                // If the interface has vanished and returned, there is nothing to leave.
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

/// The setting that limits a join: of one more group, or of one more source of a joined group.
fn limit_name(group: IpAddr, is_joined: bool) -> &'static str {
    match (group, is_joined) {
        (IpAddr::V4(_), false) => "net.ipv4.igmp_max_memberships",
        (IpAddr::V4(_), true) => "net.ipv4.igmp_max_msf",
        (IpAddr::V6(_), false) => "net.core.optmem_max",
        (IpAddr::V6(_), true) => "net.ipv6.mld_max_msf",
    }
}
