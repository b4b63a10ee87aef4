//! Which versions of a publisher a receiver takes.

/// Which versions are taken of what a publisher signs. A directory that versions were
/// [followed](crate::Follower) into has a high-water mark: the newest that was completed in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// None that is older than the mark, if there is one. The mark rises with what is received.
    #[default]
    NotOlder,
    /// Only those above the mark, which is made if there is none. Files that earlier versions have
    /// brought are replaced, others only with
    /// [`ReceiverBuilder::overwrite`](crate::ReceiverBuilder::overwrite).
    Newer,
    /// Any. The mark stays as it is.
    Any,
}
