//! The digest of a run.

use fontana_proto::Instant;

/// Hashes the notes of a run, in order. Equal digests mean equal runs.
#[derive(Debug)]
pub(crate) struct Trace {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

/// Kinds of notes. The numbers are part of the digest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    Sent = 1,
    Delivered = 2,
    Lost = 3,
    Joined = 4,
    Left = 5,
    Event = 6,
    Grafted = 7,
    Pruned = 8,
    Fault = 9,
    Segment = 10,
}

/// Bytes hashed at a time: BLAKE3 is fastest on many chunks.
const BUFFER: usize = 1 << 16;

impl Trace {
    pub(crate) fn new(seed: u64) -> Self {
        let mut trace =
            Self { hasher: blake3::Hasher::new(), buffer: Vec::with_capacity(BUFFER + 64) };
        trace.buffer.extend(seed.to_le_bytes());
        trace
    }

    /// Adds a note: its time, its kind, a node or link, and two more numbers.
    pub(crate) fn note(&mut self, at: Instant, what: Note, place: u32, which: [u64; 2]) {
        let place = (what as u64) << 32 | u64::from(place);
        for word in [at.as_nanos(), place, which[0], which[1]] {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        if self.buffer.len() >= BUFFER {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    /// The digest so far.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.buffer);
        hasher.finalize().into()
    }
}
