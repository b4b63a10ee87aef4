//! Cuts the producer's bytes into fragments, and encodes them ahead of need.
//!
//! One thread reads, because a read may never return. Another thread cuts, and emits an incomplete
//! fragment when the producer pauses. Both block while there is no room for another fragment, and
//! end when the receiver of the fragments is dropped.

use crate::error::{Error, IoError};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Lent, PlanCache, Scratch};
use fontana_net::Bell;
use fontana_net::thread::{catch, spawn};
use fontana_proto::StreamRedundancy;
use fontana_wire::{BlockHasher, Hash};
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// The parameters of fragments.
pub(super) struct Cutter {
    pub(super) symbol_size: u16,
    pub(super) max_symbols: u32,
    pub(super) redundancy: StreamRedundancy,
    pub(super) requested_permille: u32,
}

/// A fragment that is ready to be sent.
pub(super) struct Prepared {
    pub(super) length: u32,
    pub(super) hash: Hash,
    /// Its source symbols, concatenated; the last one is padded.
    pub(super) source: Vec<u8>,
    /// Its repair symbols, from ESI k on.
    pub(super) repair: Vec<u8>,
}

/// Longest time that a byte waits for others to fill its fragment.
const FLUSH: Duration = Duration::from_secs(1);
/// Bytes that are read at a time: the capacity of a pipe.
const CHUNK: usize = 64 << 10;
/// Chunks that are read ahead: reading and cutting overlap.
const CHUNKS: usize = 4;

impl Cutter {
    /// Starts reading. The returned channel ends when the reader does. `bell` rings after each
    /// fragment and after the end.
    pub(super) fn spawn(
        self,
        reader: impl Read + Send + 'static,
        bell: Bell,
    ) -> Result<Receiver<Result<Prepared, Error>>, Error> {
        let (chunks, read) = bounded(CHUNKS);
        let (fragments, cut) = bounded(1);
        spawn("read", move || {
            // A reader that panics has not come to its end.
            if let Err(panic) = catch(|| read_all(reader, &chunks)) {
                let _ = chunks.send(Err(panic.into()));
            }
        })?;
        spawn("cut", move || {
            let emit = |fragment: Result<Prepared, Error>| {
                let is_taken = fragments.send(fragment).is_ok();
                bell.ring();
                is_taken
            };
            if let Err(panic) = catch(|| self.run(&read, &emit)) {
                emit(Err(panic.into()));
            }
            drop(fragments);
            bell.ring();
        })?;
        Ok(cut)
    }

    /// Emits fragments until the end of the chunks, or until one is not taken.
    fn run(
        &self,
        chunks: &Receiver<Result<Vec<u8>, Error>>,
        emit: &dyn Fn(Result<Prepared, Error>) -> bool,
    ) {
        crate::system::give_way();
        // Fragments of the full length, and incomplete ones: few lengths occur twice.
        let plans = PlanCache::new(2);
        let most = self.max_symbols as usize * usize::from(self.symbol_size);
        let mut fragment = Vec::new();
        let mut deadline = None;
        loop {
            let chunk = match deadline {
                None => chunks.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => chunks.recv_deadline(deadline),
            };
            let end = match chunk {
                Ok(Ok(chunk)) => {
                    let mut rest = chunk.as_slice();
                    while !rest.is_empty() {
                        let (now, later) = rest.split_at(rest.len().min(most - fragment.len()));
                        fragment.extend_from_slice(now);
                        rest = later;
                        deadline.get_or_insert_with(|| Instant::now() + FLUSH);
                        if fragment.len() == most {
                            deadline = None;
                            let full = std::mem::take(&mut fragment);
                            if !emit(self.prepare(full, &plans)) {
                                return;
                            }
                        }
                    }
                    continue;
                }
                Ok(Err(error)) => Some(Err(error)),
                Err(RecvTimeoutError::Disconnected) => Some(Ok(())),
                Err(RecvTimeoutError::Timeout) => None,
            };
            // At a pause or the end, the incomplete fragment is sent.
            if !fragment.is_empty() {
                deadline = None;
                let short = std::mem::take(&mut fragment);
                if !emit(self.prepare(short, &plans)) {
                    return;
                }
            }
            if let Some(Err(error)) = end {
                // It is not taken only if the session has ended.
                emit(Err(error));
                return;
            }
            if end.is_some() {
                return;
            }
        }
    }

    /// Hashes and encodes a fragment.
    fn prepare(&self, mut source: Vec<u8>, plans: &PlanCache) -> Result<Prepared, Error> {
        let size = usize::from(self.symbol_size);
        let mut hasher = BlockHasher::new();
        hasher.update(&source);
        let (length, hash) = (source.len() as u32, hasher.finalize());
        let symbols = source.len().div_ceil(size);
        source.resize(symbols * size, 0);
        let k = symbols as u32;
        let failed = |error| Error::system("encode a fragment")(io::Error::other(error));
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let plan = plans.source_plan(scheme, k).map_err(failed)?;
        let symbol = |esi: Esi| source.get(esi.0 as usize * size..).unwrap_or_default();
        let Ok(block) = plan.execute(size, Lent(symbol), Scratch::default());
        let repair_symbols = self.redundancy.prepared(k, self.requested_permille);
        let mut repair = vec![0; repair_symbols as usize * size];
        for (esi, symbol) in (k..).map(Esi).zip(repair.chunks_exact_mut(size)) {
            block.write_symbol(esi, symbol);
        }
        Ok(Prepared { length, hash, source, repair })
    }
}

fn read_all(mut reader: impl Read, chunks: &Sender<Result<Vec<u8>, Error>>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let result = match reader.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                chunk.truncate(count);
                Ok(chunk)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(IoError::Producer { error }.into()),
        };
        let failed = result.is_err();
        if chunks.send(result).is_err() || failed {
            return;
        }
    }
}
