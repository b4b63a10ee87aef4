//! Syncs received content to the disk every few seconds, which limits the loss at a power failure.
//! It has a thread of its own, so that no other thread waits for the disk.

use super::worker::WorkerReport;
use crate::shared::Sender;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use fontana_proto::Scope;
use fontana_store::Staging;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after which received content is synced: the largest loss at a power failure, beside the
/// syncing itself. The system would write it after 30 s by itself (`dirty_expire_centisecs`), so
/// few additional bytes are written: repair symbols of blocks that are completed in between.
const SYNC_EVERY: Duration = Duration::from_secs(10);

/// Bytes after which it is synced earlier: less than a second of work for a common disk, so that
/// little is left when the last block arrives, and files get their names soon after. The system
/// itself begins at 10 % of its memory (`dirty_background_ratio`), and stops writers at 20 %.
const SYNC_BYTES: u64 = 64 << 20;

/// Interval between checks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Syncs the staging directory that arrives, until the channel is closed.
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
