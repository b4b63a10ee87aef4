//! What the target tells the driver.

use crate::error::Error;
use crate::event::{LittleRoom, NamedFile};
use crate::receive::object::Opened;
use fontana_proto::Scope;
use fontana_wire::{CarouselInstance, Hash, Toi};

/// The outcome of a job of the target, or how far it has come.
pub(in crate::receive) enum TargetReport {
    /// Bytes of existing files that were compared with the manifest, of all to compare.
    Compared { bytes: u64, of: u64 },
    /// Objects are ready for symbols. `room`: if the disk may not have room for repair symbols.
    Opened { scope: Scope, opened: Opened, room: Option<LittleRoom> },
    /// An FCAST object's header was read: the file `name` has `bytes` bytes.
    Found { toi: Toi, name: String, bytes: u64 },
    /// The file `name` exists, and is not received: its bytes are what the table says (`compared`),
    /// or the table does not say.
    Kept { toi: Toi, name: String, compared: bool },
    /// The file `name` has replaced an older version of it that this reception had written.
    Updated { toi: Toi, name: String },
    /// The file `name` was deleted: tables do not name it any more.
    Deleted { name: String },
    /// The object's files are complete on the disk, as far as they can be without other objects.
    Committed { toi: Toi },
    /// The object's bytes are not what the session says of them. Nothing is left of it.
    Mismatched { toi: Toi, digest: Hash, error: Error },
    /// The object was a descriptor of an FCAST session.
    CarouselRead { toi: Toi, instance: CarouselInstance },
    /// Bytes of a file that got its name and that were hashed, of all of it.
    Hashed { bytes: u64, of: u64 },
    /// A file or link got its name.
    Named(NamedFile),
    /// A file, link or directory could not get its name, or be deleted. The others go on.
    ItemFailed { error: Error },
    /// Everything is on the disk, but for items that failed.
    Finished,
    /// A job failed.
    Failed { scope: Scope, error: Error },
}
