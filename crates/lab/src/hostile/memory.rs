//! Memory of this process, as Linux reports it.

use std::fs;
use std::sync::OnceLock;

/// Forgets the peak so far (proc(5): 5 in `clear_refs`).
pub(super) fn forget_peak() {
    // Where the system does not allow it, the peak is that of the whole run.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Most resident memory since the peak was forgotten, in bytes, without that of the program before
/// its first run.
pub(super) fn peak() -> Option<u64> {
    let before = BEFORE.get().copied().flatten()?;
    Some(status("VmHWM:")?.saturating_sub(before))
}

/// Resident memory of the program before its first run.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Measures the program before it runs anything.
pub(super) fn measure_program() {
    BEFORE.get_or_init(|| status("VmRSS:"));
}

fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}
