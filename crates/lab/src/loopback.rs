//! This host's loopback interface, for real runs of the library with its own sockets.

use fontana_net::{Interface, Interfaces, IpVersion, doctor};
use std::io;

/// Why no session can run over the loopback interface.
#[derive(Debug, thiserror::Error)]
pub enum LoopbackError {
    /// The system does not list its interfaces.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// There is no loopback interface.
    #[error("there is no loopback interface that is up")]
    Missing,
    /// Packets to a multicast group on it are not received.
    #[error("multicast does not come back on {interface}: {finding}")]
    Deaf {
        /// Name of the interface.
        interface: String,
        /// Result of the test.
        finding: String,
    },
}

/// Checks that packets to a multicast group on the loopback interface are received.
///
/// # Errors
/// They are not, or there is no such interface.
pub(crate) fn check() -> Result<(), LoopbackError> {
    let interface = interface()?;
    let found = doctor::multicast(&interface, IpVersion::V4, false);
    if found.verdict == doctor::Verdict::Good {
        return Ok(());
    }
    Err(LoopbackError::Deaf { interface: interface.name, finding: found.text })
}

/// The loopback interface, if it is up.
pub(crate) fn interface() -> Result<Interface, LoopbackError> {
    let interfaces = Interfaces::list().map_err(LoopbackError::Interfaces)?;
    interfaces.loopback().cloned().ok_or(LoopbackError::Missing)
}
