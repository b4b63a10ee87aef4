//! A switch between namespaces: a bridge that forwards a group only to hosts that have joined it.

use super::{Namespace, NamespaceError};
use std::thread;
use std::time::{Duration, Instant};

/// Commands that create the bridge. A bridge of Linux floods all groups until it has been the
/// querier for a query response interval (RFC 3376, section 8.3), which it reads when it becomes
/// the querier. The interval is in hundredths of a second: memberships arrive within 200 ms.
const BRIDGE: &str = "link add switch type bridge mcast_snooping 1 mcast_igmp_version 3 \
                      mcast_query_response_interval 20\n\
                      link set switch type bridge mcast_querier 1\n\
                      link set switch up\n";

/// Time until the bridge no longer floods: twice the interval, for a loaded host.
const SETTLED: Duration = Duration::from_millis(400);

/// A switch with IGMP snooping (RFC 4541) and a querier, in a namespace of its own.
///
/// It forwards a group to a port from the membership report of the port's host until its leave.
#[derive(Debug)]
pub struct Switch {
    namespace: Namespace,
    asks_since: Instant,
}

impl Switch {
    /// Name of the interface of a connected host.
    pub const HOST_INTERFACE: &str = "eth0";

    /// Creates a switch without ports in a new namespace without IPv6.
    ///
    /// # Errors
    /// As [`Namespace::new`] and [`Namespace::ip`].
    pub fn new() -> Result<Self, NamespaceError> {
        let namespace = Namespace::silent()?;
        namespace.ip(BRIDGE)?;
        Ok(Self { namespace, asks_since: Instant::now() })
    }

    /// The namespace that contains the ports.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Connects the interface [`HOST_INTERFACE`](Self::HOST_INTERFACE), which is created in `host`
    /// without an address, to a new port with this name.
    ///
    /// # Errors
    /// As [`Namespace::ip`].
    pub fn connect(&self, port: &str, host: &Namespace) -> Result<(), NamespaceError> {
        let (interface, path) = (Self::HOST_INTERFACE, host.path());
        let pair = format!("link add {port} type veth peer name {interface} netns {path}");
        self.namespace.ip(&format!("{pair}\n{}", Self::attach(port)))
    }

    /// Commands that make an interface of the switch's namespace one of its ports. A port has one
    /// host, so the switch stops forwarding a group as soon as the host leaves it.
    #[must_use]
    pub fn attach(port: &str) -> String {
        format!(
            "link set {port} master switch up\n\
             link set {port} type bridge_slave mcast_fast_leave on\n"
        )
    }

    /// Waits until the switch forwards groups only to hosts that have joined them.
    pub fn settle(&self) {
        thread::sleep(SETTLED.saturating_sub(self.asks_since.elapsed()));
    }
}
