//! The rights of root that a confined process gives up (capabilities(7)).

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// Reading and writing files of all users. Landlock confines it to the rules of a process.
pub(crate) const ALL_FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;
/// Setting permissions and times of the files of other users, and replacing such files in a sticky
/// directory. By their names the filter of system calls refuses it, and Landlock confines what is
/// opened.
pub(crate) const ALL_ATTRIBUTES: CapabilitySet = CapabilitySet::FOWNER;
/// Listening at a port below 1024.
pub(crate) const LOW_PORTS: CapabilitySet = CapabilitySet::NET_BIND_SERVICE;

/// Gives up all capabilities of the calling thread but those of `kept`, for good: also those that a
/// program could get. Threads that it starts have what is left.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn give_up_others(kept: CapabilitySet) -> Result<()> {
    let now = capabilities(None)?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter() {
            match remove_capability_from_bounding_set(capability) {
                // An older kernel does not know it.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let (effective, permitted) = (now.effective & kept, now.permitted & kept);
    set_capabilities(
        None,
        CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() },
    )?;
    clear_ambient_capability_set()
}

/// Whether the calling thread reads and writes files of all users.
pub(crate) fn reaches_all_files() -> bool {
    capabilities(None).is_ok_and(|now| now.effective.contains(ALL_FILES))
}
