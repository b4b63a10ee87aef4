//! The options of a sender.

use crate::addressing::Addressing;
use crate::certificate::Certificate;
use crate::format::{FontanaFormat, Format};
use crate::geometry::{self, Code};
use crate::layers::Layering;
use crate::memory;
use crate::rate::Rate;
use crate::seal::GroupSeal;
use fontana_proto::{Pacer, Profile, SendMode, TransmissionSchedule};
use fontana_store::{Filter, SourceBytes};
use fontana_wire::{AnnouncedSchedule, HeadRecords, Manifest, PublicKey, SealMode, SecretKey, Tsi};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// The order of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// All blocks of all files advance together, to the degree that
    /// [`SenderBuilder::profile`](crate::SenderBuilder::profile) sets. A receiver may join at any
    /// time.
    #[default]
    Even,
    /// One block after the other, each with this many repair symbols, for receivers that write
    /// blocks in order.
    Sequential {
        /// Repair symbols per thousand source symbols.
        repair_permille: u32,
    },
    /// This schedule, announced in the session's head. Most need lists of all symbols, so they are
    /// for content that is small beside the sender's memory; other content is refused.
    Schedule(TransmissionSchedule),
}

/// The options of a sender. [`SenderBuilder`](crate::sender::SenderBuilder) documents the fields.
#[derive(Clone, Debug)]
pub(crate) struct SendOptions {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) in_memory: Vec<(Vec<u8>, SourceBytes)>,
    pub(crate) parts: Vec<Range<u64>>,
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) filter: Filter,
    pub(crate) addressing: Addressing,
    pub(crate) rate: Rate,
    pub(crate) peak_window: Duration,
    pub(crate) controlled_network: bool,
    pub(crate) tsi: Option<Tsi>,
    pub(crate) mode: SendMode,
    pub(crate) ordering: Ordering,
    pub(crate) profile: Profile,
    pub(crate) code: Code,
    pub(crate) block_symbols: u32,
    pub(crate) symbol_size: Option<u16>,
    pub(crate) format: Format,
    pub(crate) source_pass: bool,
    pub(crate) pass_start: u32,
    pub(crate) mirrored: bool,
    pub(crate) memory: usize,
    pub(crate) scratch: Option<u64>,
    pub(crate) workers: usize,
    pub(crate) seed: Option<u64>,
}

impl SendOptions {
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        Self {
            files,
            in_memory: Vec::new(),
            parts: Vec::new(),
            name: None,
            filter: Filter::default(),
            addressing: Addressing::default(),
            rate: Rate::DEFAULT,
            peak_window: Pacer::PEAK_WINDOW,
            controlled_network: false,
            tsi: None,
            mode: SendMode::OnDemand,
            ordering: Ordering::Even,
            profile: Profile::default(),
            code: Code::RaptorQ,
            block_symbols: geometry::DEFAULT_BLOCK_SYMBOLS,
            symbol_size: None,
            format: Format::default(),
            source_pass: true,
            pass_start: 0,
            mirrored: false,
            memory: memory::DEFAULT_MEMORY,
            scratch: None,
            workers: crate::system::default_workers(),
            seed: None,
        }
    }

    /// Version of the content.
    pub(super) fn version(&self) -> u64 {
        match self.format.fontana() {
            Some(format) => format.manifest.as_ref().map_or(format.version, Manifest::version),
            None => FontanaFormat::default().version,
        }
    }

    /// Optional fields of the session head.
    pub(super) fn records(&self) -> HeadRecords {
        let schedule = match self.ordering {
            Ordering::Schedule(schedule) => schedule.announced(),
            Ordering::Even | Ordering::Sequential { .. } => None,
        };
        schedule.map_or_else(HeadRecords::default, AnnouncedSchedule::records)
    }

    /// Largest number of source symbols of a block.
    pub(super) fn max_block_symbols(&self) -> u32 {
        let limit = self.profile.max_block_symbols();
        limit.map_or(self.block_symbols, |limit| limit.min(self.block_symbols))
    }

    pub(super) fn manifest(&self) -> Option<&Manifest> {
        self.format.fontana().and_then(|format| format.manifest.as_ref())
    }

    pub(super) fn signer(&self) -> Option<&SecretKey> {
        self.format.fontana().and_then(|format| format.signer.as_ref())
    }

    /// Whether the session is signed, if its keys are not complete yet.
    pub(super) fn will_be_signed(&self) -> bool {
        self.format.fontana().is_some_and(|it| it.signer.is_some() || it.keys.is_some())
    }

    /// How packets are sealed, if the session's keys are not complete yet.
    pub(super) fn seal_mode(&self) -> Option<SealMode> {
        let format = self.format.fontana()?;
        let of_ticket = format.keys.is_some() && format.certificate.is_none();
        let of_group = format.group_seal.as_ref().map(|group| group.mode);
        of_group.or(of_ticket.then_some(SealMode::Encrypted))
    }

    /// Time from a signed head to its expiry.
    pub(super) fn head_lifetime(&self) -> Option<Duration> {
        let format = self.format.fontana().filter(|format| format.signer.is_some())?;
        format.expires_after.map(|lifetime| lifetime.max(FontanaFormat::LEAST_LIFETIME))
    }

    pub(super) fn group_seal(&self) -> Option<&GroupSeal> {
        self.format.fontana().and_then(|format| format.group_seal.as_ref())
    }

    /// Whether to announce the symbols by signed digests.
    pub(super) fn symbol_digests(&self) -> bool {
        let format = self.format.fontana();
        format.is_some_and(|format| format.symbol_digests || format.certificate.is_some())
    }

    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.format.fontana().and_then(|format| format.certificate.as_ref())
    }

    /// The key that receivers know: of the session's signer, or of the publisher that has certified
    /// it.
    pub(super) fn publisher(&self) -> Option<PublicKey> {
        let certified = self.certificate().map(Certificate::publisher);
        certified.or_else(|| self.signer().map(SecretKey::public_key))
    }

    pub(super) fn layering(&self) -> Option<&Layering> {
        self.format.fontana().and_then(|format| format.layering.as_ref())
    }
}
