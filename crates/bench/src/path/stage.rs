//! The stages of the path from a file to a file.

use serde::Serialize;

/// A stage of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    /// System calls that send and receive, over the loopback interface.
    Socket,
    /// Decisions of the protocol, and headers.
    Header,
    /// The tags and the encryption of a group key.
    Seal,
    /// Reading a file, and encoding.
    Encode,
    /// Writing a file, hashing and recovering it.
    Store,
}

impl Stage {
    pub(super) const ALL: [Self; 5] =
        [Self::Socket, Self::Header, Self::Seal, Self::Encode, Self::Store];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Header => "header",
            Self::Seal => "seal",
            Self::Encode => "encode",
            Self::Store => "store",
        }
    }

    /// # Errors
    /// The names, if this is none of them.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|stage| stage.name() == name);
        found.ok_or_else(|| format!("{name} is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}
