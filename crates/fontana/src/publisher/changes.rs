//! The system's reports of changes.

use crossbeam_channel::{Sender, bounded};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::fs::statfs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval without change reports: short enough for users, long enough for the disk.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(2);
/// Interval with change reports, which can be lost (a full queue).
const LOOK_ANYWAY: Duration = Duration::from_secs(60);

/// How changes are found.
pub(super) struct Changes {
    /// Interval between scans for which nothing is the reason.
    pub(super) every: Duration,
    /// Reports changes as long as it exists; `None` if only scans find them.
    pub(super) watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Reports changes of files, and of everything in directories, by a message each; one is enough
    /// if several wait.
    pub(super) fn watch(files: &[PathBuf], words: Sender<()>) -> notify::Result<Self> {
        if let Some(path) = files.iter().find(|path| is_on_network(path)) {
            let why = format!("{path:?} is on a network: changes by others are not reported");
            return Err(notify::Error::generic(&why));
        }
        let (alive, dropped) = bounded::<()>(0);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<_>| {
            let _ = &alive;
            if event.is_ok_and(|event: notify::Event| is_only_read(event.kind)) {
                return;
            }
            let _ = words.try_send(());
        })?;
        if dropped.try_recv() == Err(crossbeam_channel::TryRecvError::Disconnected) {
            // The watcher has dropped its function because its thread could not be started, which
            // it does not return as an error. Without the thread all of its functions panic, its
            // `drop` too.
            std::mem::forget(watcher);
            return Err(notify::Error::generic("its thread cannot be started"));
        }
        for path in files {
            watcher.watch(path, RecursiveMode::Recursive)?;
        }
        Ok(Self { every: LOOK_ANYWAY, watcher: Some(watcher) })
    }
}

/// File systems of other hosts, by their magic numbers (statfs(2)): NFS, SMB, CIFS, SMB2, Ceph,
/// AFS, 9P, Coda, GFS2, OCFS2, Lustre, and FUSE, behind which may be any of them.
const NETWORK: [u32; 12] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x00c3_6400,
    0x5346_414f,
    0x0102_1997,
    0x7375_7245,
    0x0116_1970,
    0x7461_636f,
    0x0bd0_0bd0,
    0x6573_5546,
];

/// Whether other hosts may change a file without a report of this system.
fn is_on_network(path: &Path) -> bool {
    statfs(path).is_ok_and(|system| NETWORK.contains(&(system.f_type as u32)))
}

/// Whether an event reports a program that reads: the publisher itself does so.
fn is_only_read(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access != AccessKind::Close(AccessMode::Write),
        _ => false,
    }
}
