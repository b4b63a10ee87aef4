//! Checks of a sender's options.

use super::egress::FDT_EXTENSION_BYTES;
use super::options::SendOptions;
use crate::addressing::Addressing;
use crate::error::{Error, SetupError};
use crate::format::{FcastFormat, Format};
use crate::geometry::{self, FTI_BYTES};
use crate::memory;
use crate::rate::Rate;
use fontana_fec::EncodingId;
use fontana_proto::{Pacer, SendMode};
use fontana_wire::{CongestionControl, SessionHead, Tsi};
use std::time::Duration;

/// Longest window of [`SenderBuilder::peak_window`](crate::SenderBuilder::peak_window): no more
/// lost time than this is made up for.
pub const MAX_PEAK_WINDOW: Duration = Pacer::DEBT;
/// Smallest slice of a file: the header is a quarter of it.
const MIN_SLICE: u64 = 1024;

/// Refuses options that are invalid.
pub(super) fn check(options: &SendOptions) -> Result<(), Error> {
    if options.files.is_empty() && options.in_memory.is_empty() {
        return Err(SetupError::NothingToSend.into());
    }
    if options.format.fontana().is_none() && !options.parts.is_empty() {
        return Err(SetupError::Range {
            what: "the number of parts of a file",
            actual: options.parts.len() as u64,
            allowed: "0 without a manifest",
        }
        .into());
    }
    if options.format.fontana().is_none() && options.code.encoding_id() == EncodingId::EXPANDABLE {
        return Err(SetupError::CodeOfOurOwn.into());
    }
    let yields = options.layering().is_some_and(|layering| layering.scheme.is_controlled());
    check_addressing(&options.addressing, options.controlled_network || yields)?;
    if let Format::Fcast(FcastFormat { growing: true, .. }) = options.format
        && options.mode != SendMode::OnDemand
    {
        return Err(SetupError::GrowingPush.into());
    }
    if let Format::Fcast(FcastFormat { slice_bytes: Some(bytes), .. }) = options.format
        && bytes < MIN_SLICE
    {
        return Err(SetupError::Range {
            what: "the length of a slice in bytes",
            actual: bytes,
            allowed: "at least 1024",
        }
        .into());
    }
    Numbers {
        rate: options.rate,
        peak_window: options.peak_window,
        // Some programs know no other number.
        tsi: options
            .tsi
            .filter(|tsi| *tsi != Tsi(0) || !matches!(options.format, Format::Flute(_))),
        memory: options.memory,
        symbol_size: options.symbol_size,
        block_symbols: options.block_symbols,
    }
    .check(options.code.max_block_symbols())
}

/// Refuses a multicast session that leaves this network, unless it is `harmless`: receivers yield
/// to other traffic, or the caller asserts that there is none. Unicast hosts are named one by one,
/// and are not subject to the hop limit.
pub(super) fn check_addressing(addressing: &Addressing, harmless: bool) -> Result<(), Error> {
    let Addressing { hop_limit, .. } = *addressing;
    if hop_limit > 1 && addressing.address().ip().is_multicast() && !harmless {
        return Err(SetupError::UncontrolledNetwork { hop_limit }.into());
    }
    Ok(())
}

/// The numbers among the options of every kind of sender.
pub(super) struct Numbers {
    pub(super) rate: Rate,
    pub(super) peak_window: Duration,
    pub(super) tsi: Option<Tsi>,
    pub(super) memory: usize,
    pub(super) symbol_size: Option<u16>,
    pub(super) block_symbols: u32,
}

impl Numbers {
    /// Refuses numbers out of range; `longest` is the largest number of source symbols of a block.
    pub(super) fn check(&self, longest: u32) -> Result<(), Error> {
        let range = |what, actual, allowed| Err(SetupError::Range { what, actual, allowed }.into());
        if self.rate < Rate::bytes_per_second(1000) {
            let bits = self.rate.as_bits_per_second();
            return range("the rate in bits per second", bits, "at least 8000");
        }
        if self.peak_window > MAX_PEAK_WINDOW {
            let micros = u64::try_from(self.peak_window.as_micros()).unwrap_or(u64::MAX);
            return range("the peak window in microseconds", micros, "at most 100000");
        }
        if let Some(tsi) = self.tsi
            && !(1..=u64::from(u32::MAX)).contains(&tsi.0)
        {
            return range("the TSI", tsi.0, "1 to 4294967295, and 0 in plain FLUTE");
        }
        if self.memory < memory::MIN_MEMORY {
            return range("the memory in bytes", self.memory as u64, "at least 32M");
        }
        let least = SessionHead::MAX_SIZE as u16 + FTI_BYTES + FDT_EXTENSION_BYTES;
        if let Some(size) = self.symbol_size
            && (size < least || !size.is_multiple_of(4))
        {
            let allowed = "a multiple of 4, at least 220";
            return range("the symbol size", u64::from(size), allowed);
        }
        if !(1..=longest).contains(&self.block_symbols) {
            return range("the block length", self.block_symbols.into(), geometry::block_lengths());
        }
        Ok(())
    }
}

/// Refuses symbols that are too short for the session head, which grows with each layer and by its
/// records.
pub(super) fn check_head_room(
    congestion_control: &CongestionControl,
    record_bytes: usize,
    symbol_size: u16,
) -> Result<(), Error> {
    let least = SessionHead::MAX_SIZE
        + congestion_control.parameter_size()
        + record_bytes
        + usize::from(FTI_BYTES + FDT_EXTENSION_BYTES);
    if usize::from(symbol_size) < least {
        let (what, actual) = ("the symbol size", u64::from(symbol_size));
        let allowed = "at least 220, 4 more for each layer that is listed, 12 more for a schedule, \
                       36 more with symbol digests";
        return Err(SetupError::Range { what, actual, allowed }.into());
    }
    Ok(())
}
