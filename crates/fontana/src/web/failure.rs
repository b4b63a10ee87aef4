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
    #[error("{path}: HTTP status {status}")]
    Status {
        /// The file.
        path: String,
        /// The status.
        status: u16,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer has another range, or the file another length, than the manifest says.
    #[error("{path}: {what}")]
    Range {
        /// The file.
        path: String,
        /// The difference.
        what: String,
    },
    /// Redirects that are not followed.
    #[error("a redirect {0}")]
    Redirect(&'static str),
    /// Its name led to an address outside, and leads to one inside of this network.
    #[error("its name leads to a private address, and has led to a public one")]
    Rebound,
    /// The answer is encoded.
    #[error("the answer has the content encoding {0:?}, and none was asked for")]
    Encoding(String),
    /// The file with the manifest is another one.
    #[error("{path} is not the manifest of the ticket")]
    Manifest {
        /// The file.
        path: String,
    },
    /// Blocks from the mirror have wrong bytes.
    #[error("{0} blocks from it were wrong")]
    Wrong(u32),
    /// The server does not know ranges, and its files were read several times.
    #[error("it does not know ranges (RFC 9110, section 14)")]
    NoRanges,
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

impl MirrorFailure {
    /// Whether another attempt may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Silent(_) | Self::Drip | Self::Cut => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::Range { .. }
            | Self::Redirect(_)
            | Self::Rebound
            | Self::Certificate(_)
            | Self::Encoding(_)
            | Self::Manifest { .. }
            | Self::Wrong(_)
            | Self::Exhausted
            | Self::NotRequested
            | Self::NoAddress { .. }
            | Self::NoRanges => false,
        }
    }

    /// Whether the server has nothing under this address, or not this range: it may have been
    /// started again, with other symbols.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self, Self::Status { status: 404 | 410 | 416, .. })
    }

    /// Whether it concerns the server, and not the file that was requested: other requests would
    /// fail in the same way.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, Self::Certificate(_) | Self::Redirect(_) | Self::Rebound)
    }

    /// How long to wait before the attempt after `failures` failed ones: doubled each time, or what
    /// the server asks for, within a minute.
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        let longest = Duration::from_secs(60);
        let doubled = Duration::from_millis(500).saturating_mul(1 << failures.min(8));
        match self {
            Self::Status { retry_after: Some(wait), .. } => {
                (*wait).clamp(doubled.min(longest), longest)
            }
            _ => doubled.min(longest),
        }
    }
}
