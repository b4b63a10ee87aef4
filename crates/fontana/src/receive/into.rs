//! What a reception is received into.

use fontana_store::Device;
use std::io::Write;

/// What the caller of a reception asks for.
pub(super) enum ReceiveInto {
    /// The options' directory.
    Directory,
    /// A writer, in order. The directory holds what is not written yet.
    Writer(Box<dyn Write + Send>),
    /// A device, or a file that is written in place. The directory holds repair symbols.
    Device(Device),
}
