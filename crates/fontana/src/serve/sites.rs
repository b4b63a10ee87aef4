//! The site of a server, which may be replaced while it serves: content that is being received
//! becomes complete.

use super::counters::Counters;
use super::files::ServedFiles;
use super::memory::ServerMemory;
use super::symbols::{FreshSymbols, SymbolMemory};
use crate::error::Error;
use crate::mirror_head::MirrorHead;
use crate::mirrored::{MirroredContent, manifest_file_bytes, manifest_file_name};
use crate::receive::HeldContent;
use crate::shared::Lock;
use crate::system::random_u64;
use bytes::Bytes;
use fontana_wire::{FreshStart, Hash};
use std::sync::Arc;
use std::time::Duration;

/// What a server has at a time.
pub(super) struct Site {
    pub(super) hash: Hash,
    /// The name of the file with the manifest, and what is in it.
    pub(super) manifest: (String, Bytes),
    /// What the file of the head has.
    pub(super) head: Option<Bytes>,
    pub(super) files: ServedFiles,
    /// `None` if the code of an object has none.
    pub(super) symbols: Option<Arc<FreshSymbols>>,
    pub(super) counters: Arc<Counters>,
    /// Bytes of an answer that wait for its client.
    pub(super) waiting_bytes: usize,
}

/// How long a request waits for content that is not accepted yet: less than the silence after which
/// a client gives up.
const WAITS: u32 = 200;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a request waits for another block: a client whose other mirrors fail asks this one for
/// something else by then.
const WAITS_FOR_MORE: u32 = 50;

/// What a server has, now and later.
pub(super) struct Sites {
    present: Lock<Option<Arc<Site>>>,
    /// The content that is being received, if it is.
    held: Option<HeldContent>,
    pub(super) counters: Arc<Counters>,
    workers: usize,
    memory: ServerMemory,
}

impl Sites {
    pub(super) fn new(
        held: Option<HeldContent>,
        counters: Arc<Counters>,
        workers: usize,
        memory: usize,
    ) -> Self {
        let memory = ServerMemory::of(memory, workers);
        Self { present: Lock::default(), held, counters, workers, memory }
    }

    /// A server that has this site.
    #[cfg(test)]
    pub(super) fn of(site: &Arc<Site>) -> Arc<Self> {
        let sites = Self::new(None, Arc::clone(&site.counters), 1, crate::memory::MIN_MEMORY);
        *sites.present.lock() = Some(Arc::clone(site));
        Arc::new(sites)
    }

    /// The site of a request. `None`: no content is accepted yet.
    pub(super) fn present(&self) -> Option<Arc<Site>> {
        let mut present = self.present.lock();
        if present.is_none()
            && let Some(held) = &self.held
            && let Some((hash, manifest)) = held.accepted()
        {
            let head = MirrorHead::issue(&manifest, None, None).ok();
            *present = Some(Arc::new(Site {
                hash,
                manifest: (manifest_file_name(hash), manifest_file_bytes(&manifest, hash).into()),
                head: head.map(|head| head.file_bytes().to_vec().into()),
                files: ServedFiles::held(&manifest, hash, held.clone()),
                symbols: None,
                counters: Arc::clone(&self.counters),
                waiting_bytes: self.memory.waiting_bytes,
            }));
        }
        present.clone()
    }

    /// The site of a request, after some time if no content is accepted yet: the receivers of a
    /// chain begin one after the other, and a client that asks again does so after a second.
    pub(super) async fn wait(&self) -> Option<Arc<Site>> {
        for _ in 0..WAITS {
            let present = self.present();
            if present.is_some() {
                return present;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        None
    }

    /// Waits for a while until more is held, or all.
    pub(super) async fn wait_for_more(&self) {
        let blocks = || self.present().and_then(|site| site.files.blocks());
        let before = blocks();
        for _ in 0..WAITS_FOR_MORE {
            tokio::time::sleep(LOOK_EVERY).await;
            if blocks() != before {
                return;
            }
        }
    }

    /// The content is complete: from the next request on, this is what the server has.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn complete(
        &self,
        content: &MirroredContent,
        head: Option<&MirrorHead>,
    ) -> Result<(), Error> {
        let memory = SymbolMemory {
            runs: self.memory.symbol_bytes,
            solved: self.memory.solved_bytes,
            worker: self.memory.worker_bytes,
        };
        let (start, counters) = (FreshStart::draw(random_u64()?), Arc::clone(&self.counters));
        let symbols = FreshSymbols::new(content, start, memory, self.workers, counters);
        *self.present.lock() = Some(Arc::new(Site {
            hash: content.hash(),
            manifest: (content.file_name(), content.file_bytes().into()),
            head: head.map(|head| head.file_bytes().to_vec().into()),
            files: ServedFiles::new(content),
            symbols: symbols.map(Arc::new),
            counters: Arc::clone(&self.counters),
            waiting_bytes: self.memory.waiting_bytes,
        }));
        Ok(())
    }
}
