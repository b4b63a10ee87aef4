//! The destination of a reception.

use fontana_store::{Device, Memory};
use std::io::Write;
use std::sync::Arc;

/// The destination that the caller chose.
pub(super) enum ReceiveInto {
    /// The options' directory.
    Directory,
    /// A writer, in order. The directory holds what is not written yet.
    Writer(Box<dyn Write + Send>),
    /// A device, or a file that is written in place. The directory holds repair symbols.
    Device(Device),
    /// Memory, in place. The directory holds repair symbols.
    Memory(Arc<dyn Memory>),
}
