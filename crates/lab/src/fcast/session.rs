//! Sessions of a file as the paper's tool sends it: in one object or in many, Reed-Solomon in
//! blocks of 32, on six layers under RLC with the constants of the library MCL.

use crate::bytes::Originals;
use crate::session::{HEADER_BYTES, Session};
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    DecodePolicy, Receiver, SplitMix64, SubscriptionLimits, TransmissionSchedule, presets,
};
use fontana_wire::{
    CongestionControl, Entry, FileEntry, LayerRates, Manifest, ManifestObject, Metadata,
    RelativePath, Segment,
};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a symbol (section 4.3).
pub(crate) const SYMBOL_BYTES: u16 = 512;
/// `n/k` of all experiments: "three FEC layers".
pub(crate) const STRETCH: u32 = 4;
/// Rates of the layers, in that of the lowest: each as many as all below it.
pub(crate) const LAYERS: [u32; 6] = [1, 1, 2, 4, 8, 16];
/// "A large (30MB) file" of sections 6.4.2 and 7, in objects of one block: with the default
/// fragments of four, 25.6 MB of it would wait in the buffer, and not 21.8.
pub(super) const LARGE_FILE: File =
    File { bytes: 30_000_000, object_bytes: 16_384, block_symbols: 32 };
/// Packets per second of its lowest layer, and the time for which its source computes all FEC
/// symbols. The paper gives neither. Both are fitted to three of its numbers: 4.6 Mbit/s with
/// coding included (section 6.4.2), and receptions that are 33.6 and 48.4 % shorter with
/// anticipation, on six layers and on five (section 7.2). None gives all three (`fc.fig20`).
pub(super) const LARGE_FILE_PACKETS: u32 = 96;
pub(super) const LARGE_FILE_CODING: Duration = Duration::from_secs(23);

/// In every interval of the control packets, so that a receiver soon knows the layers.
const HEAD_EVERY: u32 = 1;

/// The file of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) bytes: u64,
    /// Of an object: the whole file, or a fragment of it.
    pub(crate) object_bytes: u64,
    /// `k`.
    pub(crate) block_symbols: u16,
}

impl File {
    /// A session on layers, the lowest of which sends `base_packets` per second. Receivers know the
    /// manifest, as FCAST's know it from the objects. `None` if no session can have this file.
    pub(crate) fn session(
        self,
        base_packets: u32,
        schedule: TransmissionSchedule,
        policy: DecodePolicy,
        seed: u64,
    ) -> Option<Session> {
        let manifest = manifest(Session::objects(&self.otis())?)?;
        let base = base_packets * u32::from(SYMBOL_BYTES + HEADER_BYTES);
        let layers = LayerRates::listed(LAYERS.map(|rate| rate * base).to_vec()).ok()?;
        let session = Session::of_manifest(manifest, layers.total(), seed);
        let session = session.with_congestion(CongestionControl::Rlc(presets::rlc_mcl(layers)));
        let (manifest_is_known, head_every) = (true, HEAD_EVERY);
        Some(Session { schedule, policy, manifest_is_known, head_every, ..session })
    }

    /// The code of its objects.
    pub(super) fn scheme(self) -> FecScheme {
        let code = ReedSolomonCode::Rfc5510;
        FecScheme::ReedSolomon(ReedSolomon {
            code,
            max_source_block_length: self.block_symbols,
            max_encoding_symbols: code
                .max_encoding_symbols()
                .min(self.block_symbols.saturating_mul(STRETCH as u16)),
        })
    }

    fn otis(self) -> Vec<Oti> {
        let scheme = self.scheme();
        let object = self.object_bytes.max(1);
        let starts = (0..self.bytes).step_by(usize::try_from(object).unwrap_or(usize::MAX));
        let oti = |start| {
            let transfer_length = object.min(self.bytes - start);
            Oti { transfer_length, symbol_size: SYMBOL_BYTES, scheme }
        };
        starts.map(oti).collect()
    }
}

/// The same session with real bytes.
pub(crate) fn on_bytes(session: &Session) -> Option<(Session, Arc<Originals>)> {
    let otis: Vec<_> = session.manifest.objects().iter().map(|object| object.oti).collect();
    let (originals, objects) = Originals::draw(&otis, &mut SplitMix64::new(session.seed, 0))?;
    Some((session.clone().with_manifest(manifest(objects)?), Arc::new(originals)))
}

/// Limits of receivers. The paper's have no circuit breaker.
pub(crate) fn receiver(session: &Session) -> Receiver {
    session.receiver(SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() })
}

/// One file, the concatenation of these objects.
fn manifest(objects: Vec<ManifestObject>) -> Option<Manifest> {
    let extent = |object: &ManifestObject| {
        let length = object.oti.transfer_length;
        Segment::Extent { toi: object.toi, object_offset: 0, length }
    };
    let segments = objects.iter().map(extent).collect();
    let path = RelativePath::new("file").ok()?;
    let metadata = Metadata { mode: 0o644, ..Metadata::default() };
    let file = Entry::File(FileEntry { path, metadata, segments });
    Manifest::new(1, "fcast", objects, vec![file]).ok()
}
