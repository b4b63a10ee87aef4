//! Versions of a publisher's content.

/// Which versions of a publisher a receiver accepts. A directory that is
/// [followed](crate::Follower) has a high-water mark: the newest version that was completed in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// Versions that are not older than the mark, if there is one. Reception raises the mark.
    #[default]
    NotOlder,
    /// Only versions above the mark, which is created if there is none. Files of earlier versions
    /// are replaced; others only with
    /// [`ReceiverBuilder::overwrite`](crate::ReceiverBuilder::overwrite).
    Newer,
    /// Any version. The mark does not change.
    Any,
}
