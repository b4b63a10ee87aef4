//! The operating system's processors, thread priorities and random numbers.

use crate::error::Error;
use fontana_store::ScratchFile;
use fontana_wire::SecretKey;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Threads for work on blocks: more than four rarely have anything to do.
pub(crate) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(1, 4)
}

/// Lowers the calling thread's priority below the threads that pace packets and drain the socket.
/// Those lose packets if they run late; work on blocks is done ahead of need. Per thread on Linux.
/// An error is ignored: only pacing suffers.
pub(crate) fn give_way() {
    let _ = rustix::process::nice(5);
}

/// A scratch file of at most `limit` bytes, or of a quarter of the free space, in the directory for
/// temporary files. An error is logged: only speed suffers.
pub(crate) fn scratch_file(limit: Option<u64>) -> Option<ScratchFile> {
    if limit == Some(0) {
        return None;
    }
    let directory = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    let directory = directory.map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let file = ScratchFile::create_in(&directory, limit);
    file.unwrap_or_else(|error| {
        tracing::info!(%error, ?directory, "no scratch file can be created");
        None
    })
}

/// The system's clock, in unix milliseconds.
pub(crate) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The date of this program, in unix milliseconds: 2026-11-20. A clock that is earlier is wrong. A
/// constant, so that builds can be reproduced. Each release sets it.
pub(crate) const WRITTEN_UNIX_MS: u64 = 1_795_132_800_000;

/// How much earlier this host's clock is than the date of this program; `None` if it is not.
pub fn clock_is_early() -> Option<Duration> {
    early(unix_ms())
}

fn early(unix_ms: u64) -> Option<Duration> {
    let early = WRITTEN_UNIX_MS.checked_sub(unix_ms).filter(|&ms| ms > 0)?;
    Some(Duration::from_millis(early))
}

/// Random bytes from the system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(std::io::Error::other)
        .map_err(Error::system("draw random numbers"))?;
    Ok(bytes)
}

/// A new publisher key, from the system's random numbers.
///
/// # Errors
/// [`IoError::System`](crate::IoError::System) if the system has none.
pub fn generate_key() -> Result<SecretKey, Error> {
    Ok(SecretKey::from_seed(&random_bytes()?))
}

/// Milliseconds of the wall clock since the beginning of 1970.
pub(crate) fn milliseconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(0)
}

/// The time after `lifetime`, in unix seconds.
pub(crate) fn expires_after(lifetime: Duration) -> Option<NonZeroU64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    NonZeroU64::new(now.saturating_add(lifetime).as_secs())
}

pub(crate) fn random_u64() -> Result<u64, Error> {
    random_bytes().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_earlier_than_the_program_is_early() {
        assert_eq!(early(WRITTEN_UNIX_MS), None);
        assert_eq!(early(WRITTEN_UNIX_MS + 1), None);
        assert_eq!(early(WRITTEN_UNIX_MS - 1000), Some(Duration::from_secs(1)));
    }
}
