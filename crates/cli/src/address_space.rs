//! A limit on the address space of the process (`ulimit -v`, RLIMIT_AS of getrlimit(2)).
//!
//! An allocation that exceeds it ends the program, without a message that helps. So the limit is
//! compared with what is needed at the start, and threads then reserve no address space of their
//! own. Nor do they if the memory is small: each of them would keep what it has freed.

use fontana::Outcome;
use fontana::net::thread::{keep_little_memory, share_reserved_memory};
use fontana_console::failure::Failure;
use fontana_console::units::Bytes;
use rustix::process::{Resource, getrlimit};

/// Address space beside the memory of `--memory`: the program, and the stacks of its threads, 2 MiB
/// each.
const OTHER_BYTES: u64 = 256 << 20;

/// Memory below which threads keep nothing that they have freed: that would be 4 to 15 MB
/// (`fontana-lab hostile`), for which 32 MiB have no room.
const LITTLE_BELOW: u64 = 128 << 20;

/// Whether a process with so much memory keeps nothing that it has freed.
pub(crate) fn is_little(memory: u64) -> bool {
    memory < LITTLE_BELOW
}

/// Refuses a limit that `memory` bytes of content do not fit in.
///
/// # Errors
/// A failure with exit code 5 and the least limit.
pub(crate) fn check(memory: u64) -> Result<(), Failure> {
    let needed = memory.saturating_add(OTHER_BYTES);
    let limit = getrlimit(Resource::As).current;
    if is_little(memory) {
        keep_little_memory();
    } else if limit.is_some() {
        share_reserved_memory();
    }
    match limit {
        Some(limit) if limit < needed => {
            let message = format!(
                "the address space is limited to {} (ulimit -v), and --memory {} needs {}",
                Bytes(limit),
                Bytes(memory),
                Bytes(needed)
            );
            let hint =
                format!("raise the limit: ulimit -v {}\nor use less: --memory", needed >> 10);
            Err(Failure::new(Outcome::Io, message, &hint))
        }
        Some(_) | None => Ok(()),
    }
}
