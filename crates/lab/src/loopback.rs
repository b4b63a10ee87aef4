//! This host's loopback interface, for real runs of a program that brings its own sockets.

use fontana_net::{Interface, Interfaces, IpVersion, doctor};
use std::io;

/// Why nothing can be run over it.
#[derive(Debug, thiserror::Error)]
pub enum LoopbackError {
    /// The system does not say which interfaces there are.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// There is no loopback interface.
    #[error("there is no loopback interface that is up")]
    Missing,
    /// What is sent to a group there is not heard.
    #[error("multicast does not come back on {interface}: {finding}")]
    Deaf {
        /// Which interface.
        interface: String,
        /// What was found instead.
        finding: String,
    },
}

/// Whether what is sent to a group there is heard.
///
/// # Errors
/// What is in the way.
pub(crate) fn check() -> Result<(), LoopbackError> {
    let interface = interface()?;
    let found = doctor::multicast(&interface, IpVersion::V4, false);
    if found.verdict == doctor::Verdict::Good {
        return Ok(());
    }
    Err(LoopbackError::Deaf { interface: interface.name, finding: found.text })
}

/// It, if it is up.
pub(crate) fn interface() -> Result<Interface, LoopbackError> {
    let interfaces = Interfaces::list().map_err(LoopbackError::Interfaces)?;
    interfaces.loopback().cloned().ok_or(LoopbackError::Missing)
}
