//! Brings what is received to the medium now and then, so that a power failure costs little. It
//! waits for the medium, so it has a thread of its own, and nobody waits for it.

use super::worker::WorkerReport;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use fontana_proto::Scope;
use fontana_store::Staging;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after which what was received is synced: what a power failure costs at most, beside the
/// syncing itself. The system would write it after 30 s by itself (`dirty_expire_centisecs`), so
/// not much is written that would otherwise not be: repair symbols of blocks that end in between.
const SYNC_EVERY: Duration = Duration::from_secs(10);

/// Bytes after which it is synced earlier. A second's work for a common disk; the system itself
/// begins at 10 % of its memory (`dirty_background_ratio`), and stops writers at 20 %.
const SYNC_BYTES: u64 = 256 << 20;

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Syncs the staging directory that comes, until there is nobody to send one.
pub(super) fn run(opened: &Receiver<Arc<Staging>>, reports: &Sender<WorkerReport>) {
    crate::system::give_way();
    let mut staging: Option<Arc<Staging>> = None;
    let mut last = Instant::now();
    loop {
        match opened.recv_timeout(LOOK_EVERY) {
            Ok(opened) => staging = Some(opened),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(staging) = &staging else { continue };
        let bytes = staging.unsynced_bytes();
        if bytes >= SYNC_BYTES || (bytes > 0 && last.elapsed() >= SYNC_EVERY) {
            if let Err(error) = staging.sync() {
                let failed = WorkerReport::Failed { scope: Scope::Session, error: error.into() };
                let _ = reports.send(failed);
                return;
            }
            last = Instant::now();
        }
    }
}
