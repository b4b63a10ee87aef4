//! What every code offers.

use crate::decode::{IdDecoder, Work};
use crate::ids::EncodingId;
use crate::limits::{ObjectLimits, OtiError};
use crate::parameters::SchemeParameters;
use crate::plan::{Plan, PlanCache};
use std::sync::Arc;

/// A FEC scheme with its parameters: implemented on each code's page.
///
/// Wherever a method takes `source_symbols`, the caller has checked that they are 1 to
/// [`CodeProfile::max_source_symbols`]; for other numbers a profile says something, but a decoder
/// or a plan may panic.
pub(crate) trait Code {
    /// What is the same for all blocks.
    fn profile(&self) -> CodeProfile;

    /// What depends on the length of a block.
    fn block_profile(&self, source_symbols: u32) -> BlockProfile;

    /// How objects are cut into blocks, if the parameters make sense with symbols of `symbol_size`
    /// bytes.
    fn limits(&self, symbol_size: u16) -> Result<ObjectLimits, OtiError>;

    /// An empty decoder. `cache` holds what blocks of a length share.
    fn decoder(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Box<dyn IdDecoder>;

    /// The plan of a block whose source symbols are all available: an encoder's.
    fn source_plan(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Arc<Plan>;

    /// The parameters as protocols carry them.
    fn parameters(&self) -> SchemeParameters;
}

/// The facts about a code that are the same for all its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeProfile {
    /// A short name, in lower case.
    pub name: &'static str,
    /// The FEC Encoding ID registered for the scheme (RFC 5052, section 9).
    pub encoding_id: EncodingId,
    /// True if source symbols are worth sending: they are encoding symbols like any other. Decoders
    /// take them from every code, but the other symbols of an LT code are made to do without.
    pub is_systematic: bool,
    /// True if a block has more encoding symbols than any sender will ever send, so that a sender
    /// never needs to repeat one.
    pub is_rateless: bool,
    /// True if any `k` encoding symbols of a block recover it.
    pub is_mds: bool,
    /// True if a sender mixes source and repair symbols in its cycle, because receivers need about
    /// the same share of every layer of the code.
    pub mixes_cycle: bool,
    /// True if the last source symbol of an object is sent without its padding (RFC 5445,
    /// section 3.2.1).
    pub omits_padding: bool,
    /// Most source symbols of a block.
    pub max_source_symbols: u32,
    /// Symbols beyond `k` with which a block hardly ever fails, one that arrived twice included.
    /// `None` if only the decoder can tell: how many a block needs varies by per cents.
    pub sure_surplus: Option<u32>,
}

/// The facts about a code's blocks of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockProfile {
    /// `n`: encoding symbols of the block; their ESIs are `0..n`. Of a Reed-Solomon block that is
    /// shorter than the longest one, senders make fewer: see `symbols_per_cycle`.
    pub encoding_symbols: u32,
    /// Encoding symbols that a sender makes before it repeats them, from ESI 0 on: all of them, but
    /// of a Reed-Solomon block that is shorter than the longest one only its share,
    /// `floor(k max_n / B)` (RFC 5510).
    pub symbols_per_cycle: u32,
    /// Most symbols other than source symbols that a decoder has a use for.
    pub max_repair_symbols: u32,
    /// Bytes that a decoder takes before it has its plan: what the symbols of an honest sender make
    /// it grow to; numbers that a hostile sender chose make it at most four times as much. `None`
    /// for codes whose decoders only note which symbols are available.
    pub decoder_memory: Option<u64>,
    /// A budget for [`IdDecoder::solve`] that symbols chosen by an honest sender practically never
    /// exhaust, and that still ends a hostile choice soon: four to ten times the usual work, well
    /// under a second for the longest block of most codes, and about a second for a million symbols
    /// of LT.
    pub work: Work,
    /// Multiplications that the worst loss costs for each byte of a symbol, where that may be more
    /// than a receiver can afford; 0 for the codes whose cost `work` bounds.
    pub products: u64,
}
