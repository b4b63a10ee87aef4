//! The thread that stores early symbols beside the memory, and reads them again. It has no other
//! work: when the files are open, the placer has much to write, and the reception is complete when
//! the receiver knows what was read.

use super::worker::WorkerReport;
use crate::shared::Sender;
use crossbeam_channel::Receiver;
use fontana_store::SpillFile;

/// Work on the file of early symbols. Jobs are done in their order.
pub(super) enum SpillJob {
    Write { offset: u64, bytes: Vec<u8> },
    Read { offset: u64, length: u32 },
    Drop,
}

/// Does jobs until the driver drops its end of the queue.
pub(super) fn run(queue: &Receiver<SpillJob>, file: &SpillFile, reports: &Sender<WorkerReport>) {
    crate::system::give_way();
    for report in queue.into_iter().filter_map(|job| job.work(file)) {
        if reports.send(report).is_err() {
            return;
        }
    }
}

impl SpillJob {
    /// Does the job. No error ends the reception: what is lost is received again.
    pub(super) fn work(self, file: &SpillFile) -> Option<WorkerReport> {
        match self {
            Self::Write { offset, bytes } => {
                let why = file.write(offset, &bytes).err()?;
                tracing::debug!(%why, "early symbols are dropped");
                Some(WorkerReport::SpillRefused { offset })
            }
            Self::Read { offset, length } => {
                let bytes = file.read(offset, length as usize).unwrap_or_else(|why| {
                    tracing::debug!(%why, "early symbols are lost");
                    Vec::new()
                });
                Some(WorkerReport::SpillRead { offset, bytes })
            }
            Self::Drop => {
                file.clear();
                None
            }
        }
    }
}
