//! Why a mirror's answer is of no use.

use std::time::Duration;

/// Why a request to a mirror failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorFailure {
    /// The name cannot be resolved, or the connection fails or ends.
    #[error("{0}")]
    Connection(String),
    /// Its certificate is not valid, or of no authority that this host trusts.
    #[error("{0}")]
    Certificate(String),
    /// Nothing arrived for so long.
    #[error("nothing arrived for {} s", .0.as_secs())]
    Silent(Duration),
    /// Far too little arrived.
    #[error("less than {least} bytes per second arrived", least = super::patience::LEAST_RATE)]
    Drip,
    /// An HTTP status that is no answer to the request.
    #[error("{path}: HTTP status {status}{what}")]
    Status {
        /// The file.
        path: String,
        /// The status.
        status: u16,
        /// What came with it, in words: the type and length of the answer, and the proxy.
        what: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer is not what was asked for: it has another range, length or encoding.
    #[error("{path}: {what}")]
    Range {
        /// The file.
        path: String,
        /// The difference.
        what: String,
    },
    /// Redirects that are not followed.
    #[error("{path}: a redirect {what}")]
    Redirect {
        /// The file.
        path: String,
        /// Where it leads.
        what: &'static str,
    },
    /// Its name led to an address outside, and leads to one inside of this network.
    #[error("its name leads to a private address, and has led to a public one")]
    Rebound,
    /// A ticket alone names it, and its addresses are private ones of another network than the
    /// senders'.
    #[error("its address is private, and not in the network of the ticket's sender")]
    Far,
    /// The file with the manifest is another one.
    #[error("{path} is not the manifest of the ticket: {bytes} bytes")]
    Manifest {
        /// The file.
        path: String,
        /// The bytes that came.
        bytes: usize,
    },
    /// Blocks from the mirror have wrong bytes.
    #[error("{0} blocks from it were wrong")]
    Wrong(u32),
    /// Its shelf has no symbol that is lacking, and no other source sends any.
    #[error("its shelf has no more symbols of what is lacking")]
    Exhausted,
    /// Its fresh symbols are not those that were requested.
    #[error("it sent symbols that were not requested")]
    NotRequested,
    /// It has files with an address each, and none for this one.
    #[error("no address was given for {path}")]
    NoAddress {
        /// The file.
        path: String,
    },
    /// The answer was cut, because it is not needed any more.
    #[error("not needed any more")]
    Cut,
}

/// Longest pause before a mirror is asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Shortest one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

impl MirrorFailure {
    /// Whether it concerns the server for a while: it is busy, restarts, or cannot be reached.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Silent(_) | Self::Drip | Self::Cut => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            _ => false,
        }
    }

    /// The file that it concerns, if the server may have others.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            _ if self.may_pass() => None,
            Self::Status { path, .. }
            | Self::Range { path, .. }
            | Self::Redirect { path, .. }
            | Self::NoAddress { path } => Some(path),
            _ => None,
        }
    }

    /// Whether the server has nothing under this address, or not this range: it may have been
    /// started again, with other symbols.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self, Self::Status { status: 404 | 410 | 416, .. })
    }

    /// How long to wait before the attempt after `failures` failed ones: doubled each time, or what
    /// the server asks for, within limits.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = SHORTEST_PAUSE.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE);
        match self {
            Self::Status { retry_after: Some(wait), .. } => {
                (*wait).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
            }
            _ => doubled,
        }
    }
}
