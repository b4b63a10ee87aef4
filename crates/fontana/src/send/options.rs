//! What to send, and how.

use crate::geometry::{self, Code};
use crate::layers::Layering;
use crate::memory;
use crate::reach::Reach;
use fontana_proto::{MetadataMode, Profile, SendMode};
use fontana_store::Filter;
use fontana_wire::{Manifest, SecretKey, Tsi};
use std::path::PathBuf;

/// How blocks are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// All blocks of all files advance together, as far as [`SendOptions::profile`] has it: join at
    /// any time, no block is the last.
    #[default]
    Even,
    /// One block after the other, each with so many repair symbols per thousand source symbols,
    /// for receivers that write blocks in order.
    Sequential {
        /// Repair symbols per thousand source symbols.
        repair_permille: u32,
    },
}

/// What to send, and how. Everything has a safe default.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Files, and directories with all that is in them. Receivers see the last component of each.
    ///
    /// All of them are one session and scheduled together: what an application submits to FCAST's
    /// tool with KEEP_DATA before it says PUSH_DATA (Roca, Mordelet 2002, section 4.2.3). One
    /// object after the other, as that tool sends what is pushed at once, is
    /// [`Ordering::Sequential`].
    pub files: Vec<PathBuf>,
    /// What receivers know the file by, instead of its own name: for a single file.
    pub name: Option<Vec<u8>>,
    /// Which of the files in a directory.
    pub filter: Filter,
    /// Where to.
    pub reach: Reach,
    /// Cap on the bytes per second on the wire, IP and UDP headers included. With several unicast
    /// hosts their copies share it.
    pub rate_bytes_per_second: u64,
    /// How the rate is shared out to the channels of `reach`. By default a session of several
    /// channels has layers of doubling rates.
    pub layering: Option<Layering>,
    /// All networks that the packets can reach are the operator's, and have room for the rate:
    /// without congestion control, a session goes beyond this network (`reach.hop_limit`) only if
    /// this is said (RFC 8085, section 4.1).
    pub controlled_network: bool,
    /// Transport session identifier; if not given, that of the manifest ([`Tsi::of_manifest`]), and
    /// for plain FLUTE and FCAST one drawn at random.
    pub tsi: Option<Tsi>,
    /// For ever, or a finite amount.
    pub mode: SendMode,
    /// In which order.
    pub ordering: Ordering,
    /// What the session is to be good at: the order that [`Ordering::Even`] stands for, and how
    /// long blocks are. Receivers have a part in it, too: [`Profile::policy`].
    pub profile: Profile,
    /// With which code.
    pub code: Code,
    /// Source symbols per block, about.
    pub block_symbols: u32,
    /// Bytes per symbol; from the interface's MTU if not given.
    pub symbol_size: Option<u16>,
    /// How receivers learn what is sent. Plain FLUTE (RFC 6726) and FCAST (RFC 6968) sessions have
    /// nothing of our own, for other programs: one object per file, or for each slice of one.
    pub metadata: MetadataMode,
    /// For FCAST: bytes of a file that an object has at most; about a source block if not given.
    pub slice_bytes: Option<u64>,
    /// Whether this sender sends the source symbols; others of the same content do not.
    pub source_pass: bool,
    /// The manifest of another sender, or of an earlier life of this one, to pour the same symbols:
    /// the files must be what it says, and it decides on code, symbol size, blocks and version.
    pub manifest: Option<Manifest>,
    /// Hash files even if size and time of last modification are those of `manifest`.
    pub rehash: bool,
    /// Other senders pour the same content: the ticket names no source, where the group permits.
    pub mirrored: bool,
    /// Signs the session head.
    pub signer: Option<SecretKey>,
    /// Version of the content: tells receivers of a publisher which of two is newer.
    pub manifest_version: u64,
    /// Memory to use, in bytes, whatever the size of the files.
    pub memory: usize,
    /// Threads that read and encode.
    pub workers: usize,
    /// Seed of everything random that need not be secret; from the system if not given.
    pub seed: Option<u64>,
}

impl SendOptions {
    /// Sends `files` with the defaults: the default group, 100 Mbit/s at most, this network only.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self {
            files,
            name: None,
            filter: Filter::default(),
            reach: Reach::default(),
            rate_bytes_per_second: 100_000_000 / 8,
            layering: None,
            controlled_network: false,
            tsi: None,
            mode: SendMode::OnDemand,
            ordering: Ordering::Even,
            profile: Profile::default(),
            code: Code::RaptorQ,
            block_symbols: geometry::DEFAULT_BLOCK_SYMBOLS,
            symbol_size: None,
            metadata: MetadataMode::Manifest,
            slice_bytes: None,
            source_pass: true,
            manifest: None,
            rehash: false,
            mirrored: false,
            signer: None,
            manifest_version: 1,
            memory: memory::DEFAULT_MEMORY,
            workers: crate::system::default_workers(),
            seed: None,
        }
    }
}
