//! The options of a receiver.

use super::held::HeldContent;
use crate::addressing::Addressing;
use crate::memory;
use crate::memory::{ReceiverMemory, UnlistedMemory};
use crate::reporting::Reporting;
use crate::seal::GroupKey;
use crate::sharing::Sharing;
use crate::versions::Versions;
use fontana_net::receiver::DEFAULT_RECEIVE_BUFFER;
use fontana_proto::{
    Acceptance, DecodePolicy, Expectation, MetadataMode, ReceiverConfig, ReceiverLimits,
};
use fontana_wire::{FdtLimits, Hash, MAX_CHANNELS, Manifest, ManifestLimits};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Datagrams that the receiver drops on purpose: a lossy path for demonstrations and tests. The
/// same seed drops the same datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedLoss {
    /// Share of the datagrams, 0 to 1.
    pub probability: f64,
    /// Seed of the choice.
    pub seed: u64,
}

/// The options of a receiver. Every option has a safe default.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveOptions {
    /// Where to listen: at the first address. Without a ticket, its channels are the only ones that
    /// a session of several channels may have.
    pub(crate) addressing: Addressing,
    /// Which session.
    pub(crate) expectation: Expectation,
    /// Whether to take the first session that meets the expectation, or to ask.
    pub(crate) acceptance: Acceptance,
    /// Which versions of a publisher, where the expectation names one.
    pub(crate) versions: Versions,
    /// How long to listen after an old version was received, where only newer ones are accepted: a
    /// newer one may follow, or be sent beside it.
    pub(crate) listen_after_old: Duration,
    /// A manifest that the previous reception collected, and its hash, which was checked.
    pub(crate) known_manifest: Option<(Hash, Arc<Manifest>)>,
    /// Which kind of session to receive. The files of plain FLUTE (RFC 6726) and FCAST (RFC 6968)
    /// sessions are not authenticated.
    pub(crate) metadata: MetadataMode,
    /// Receive what later tables announce until it is stopped. Only plain FLUTE.
    pub(crate) watches_tables: bool,
    /// Find files, and receive none. Only plain FLUTE.
    pub(crate) lists: bool,
    /// Delete what was written of files that tables do not name any more. Only plain FLUTE.
    pub(crate) deletes_expired: bool,
    /// The name of the session's only file in the directory. Only plain FLUTE.
    pub(crate) file_name: Option<OsString>,
    /// Where files go.
    pub(crate) directory: PathBuf,
    /// Replace files that exist.
    pub(crate) overwrite: bool,
    /// Do not receive again what the files in the directory hold: found by hashing them block by
    /// block. Files that are the same stay as they are, but for mode and time; of others, only
    /// blocks that differ are received. Not with FCAST.
    pub(crate) skip_existing: bool,
    /// Report each file that gets its name.
    pub(crate) report_files: bool,
    /// No file gets its name before all are complete.
    pub(crate) all_or_nothing: bool,
    /// Stay in the group until every block is verified.
    pub(crate) stays_until_verified: bool,
    /// Delete what earlier versions of the publisher created and a complete one lacks.
    pub(crate) delete: bool,
    /// Receive only what matches one of these patterns, in the form of `.gitignore`, relative to
    /// the top of what is sent; none: everything. Not with FCAST.
    pub(crate) only: Vec<String>,
    /// Most channels of a session that are joined at a time.
    pub(crate) max_channels: u8,
    /// Most bytes per second that are joined, IP and UDP headers included, by the rates of layers
    /// that the session declares. A session whose slowest layer is faster is refused. Also the
    /// most bytes per second of all mirrors together.
    pub(crate) max_rate_bytes_per_second: Option<u64>,
    /// When to decode.
    pub(crate) policy: DecodePolicy,
    /// Memory to use, in bytes, whatever the size of the files.
    pub(crate) memory: usize,
    /// Threads that decode and write.
    pub(crate) workers: usize,
    /// Bytes of kernel receive buffer to ask for.
    pub(crate) receive_buffer: usize,
    /// Most bytes to accept in one session.
    pub(crate) max_bytes: u64,
    /// Give up if the reception is not complete after this time.
    pub(crate) timeout: Option<Duration>,
    /// Give up after receiving nothing of the session for this time.
    pub(crate) give_up_after_silence: Option<Duration>,
    /// Bytes of a stream that may wait for its consumer on the disk, those being received included.
    pub(crate) window: u64,
    /// The key of the group: other packets are dropped.
    pub(crate) group_key: Option<GroupKey>,
    /// Report to the sender, if it asks.
    pub(crate) reporting: Option<Box<Reporting>>,
    /// Share with other receivers of this network.
    pub(crate) sharing: Option<Sharing>,
    /// Where to show what is held while it is received.
    pub(crate) held: Option<HeldContent>,
    /// Drop datagrams on purpose.
    pub(crate) simulated_loss: Option<SimulatedLoss>,
    /// Mirrors, from which the content is received as well.
    #[cfg(feature = "web")]
    pub(crate) web: crate::web::options::WebOptions,
    /// Whether to receive from the group; if not, only from mirrors.
    pub(crate) has_group: bool,
}

/// Bytes of symbols that wait on the disk for the manifest, at most: 80 s at 100 Mbit/s. A manifest
/// takes at least its share of the packets, so those of more content are complete before.
const MAX_SPILLED_BYTES: u64 = 1_000_000_000;

/// Time after which silence is reported, and the groups are joined again.
pub const SILENCE: Duration = ReceiverConfig::SILENCE_AFTER;

/// The limits of a receiver's endpoint within a budget of memory, in bytes, with this number of
/// threads that decode. In Fontana's format it expects one session.
pub fn receiver_limits(metadata: MetadataMode, memory: usize, workers: usize) -> ReceiverLimits {
    let mut options = ReceiveOptions::new(PathBuf::new());
    (options.metadata, options.memory, options.workers) = (metadata, memory, workers);
    options.expectation.manifest = Some(Hash([0; Hash::SIZE]));
    options.limits()
}

impl ReceiveOptions {
    /// Receives into `directory` with the defaults: the default group, any session, the first one
    /// that comes.
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            addressing: Addressing::default(),
            expectation: Expectation::default(),
            acceptance: Acceptance::Automatic,
            versions: Versions::default(),
            listen_after_old: Duration::ZERO,
            known_manifest: None,
            metadata: MetadataMode::Manifest,
            watches_tables: false,
            lists: false,
            deletes_expired: false,
            file_name: None,
            directory: directory.into(),
            overwrite: false,
            skip_existing: false,
            report_files: false,
            all_or_nothing: false,
            stays_until_verified: false,
            delete: false,
            only: Vec::new(),
            max_channels: MAX_CHANNELS,
            max_rate_bytes_per_second: None,
            policy: DecodePolicy::Incremental,
            memory: memory::DEFAULT_MEMORY,
            workers: crate::system::default_workers(),
            receive_buffer: DEFAULT_RECEIVE_BUFFER,
            max_bytes: u64::MAX,
            timeout: None,
            give_up_after_silence: None,
            window: ReceiverLimits::default().max_stream_window_bytes,
            group_key: None,
            reporting: None,
            sharing: None,
            held: None,
            simulated_loss: None,
            #[cfg(feature = "web")]
            web: Default::default(),
            has_group: true,
        }
    }

    pub(super) fn shares(&self) -> ReceiverMemory {
        ReceiverMemory::of(self.memory, self.workers)
    }

    pub(super) fn limits(&self) -> ReceiverLimits {
        let defaults = ReceiverLimits::default();
        let Expectation { manifest, publisher, .. } = &self.expectation;
        // If any manifest may be the one, those of all sessions must fit together.
        let expected = manifest.is_some() || publisher.is_some();
        let share = if expected { 8 } else { 4 * defaults.max_sessions };
        let bytes = defaults.manifest.bytes.min(self.memory / share);
        let limits = ReceiverLimits {
            max_early_bytes: self.shares().spool_bytes,
            max_spilled_bytes: if expected { MAX_SPILLED_BYTES } else { 0 },
            max_decoder_bytes: self.shares().decoder_bytes,
            max_transfer_bytes: self.max_bytes,
            max_stream_window_bytes: self.window,
            manifest: ManifestLimits { bytes, ..defaults.manifest },
            max_recoveries: 2 * self.workers.max(1),
            ..defaults
        };
        match self.metadata {
            MetadataMode::Manifest => limits,
            MetadataMode::Flute | MetadataMode::Fcast => self.limits_of_files(limits),
        }
    }

    /// The limits of a session whose files are not known beforehand.
    fn limits_of_files(&self, limits: ReceiverLimits) -> ReceiverLimits {
        let shares = UnlistedMemory::of(self.memory, self.workers);
        let fdt = FdtLimits {
            encoded_bytes: limits.fdt.encoded_bytes.min(shares.table_bytes),
            decoded_bytes: limits.fdt.decoded_bytes.min(shares.decoded_table_bytes),
            files: limits.fdt.files.min(shares.table_files),
            ..limits.fdt
        };
        ReceiverLimits {
            max_early_bytes: shares.spool_bytes,
            max_decoder_bytes: shares.decoder_bytes,
            max_files: limits.max_files.min(shares.files),
            max_blocks: limits.max_blocks.min(shares.blocks),
            fdt,
            ..limits
        }
    }
}
