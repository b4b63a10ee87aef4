//! The trait that every code implements, and the facts it gives.

use crate::decode::{IdDecoder, Work};
use crate::ids::EncodingId;
use crate::limits::{ObjectLimits, OtiError};
use crate::parameters::SchemeParameters;
use crate::plan::{Plan, PlanCache};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A FEC scheme with its parameters. Each code implements it on its page.
///
/// Callers check that `source_symbols` is 1 to [`CodeProfile::max_source_symbols`]. For other
/// numbers a profile is meaningless, and a decoder or a plan may panic.
pub(crate) trait Code {
    /// The facts that are the same for all blocks.
    fn profile(&self) -> CodeProfile;

    /// The facts that depend on the length of a block.
    fn block_profile(&self, source_symbols: u32) -> BlockProfile;

    /// How objects are partitioned into blocks.
    ///
    /// # Errors
    /// The parameters are invalid, or do not fit symbols of `symbol_size` bytes.
    fn limits(&self, symbol_size: u16) -> Result<ObjectLimits, OtiError>;

    /// An empty decoder. `cache` stores what blocks of equal length share.
    fn decoder(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Box<dyn IdDecoder>;

    /// The plan of a block whose source symbols are all available, for encoders.
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
    /// True if senders should send source symbols. Decoders accept them from every code, but an LT
    /// code is designed for receivers without them.
    pub is_systematic: bool,
    /// True if a block has more encoding symbols than a sender ever sends, so that it never repeats
    /// one.
    pub is_rateless: bool,
    /// True if any `k` encoding symbols of a block recover it.
    pub is_mds: bool,
    /// The factors of source symbols in encoding symbols.
    pub factors: Factors,
    /// True if a sender mixes source and repair symbols in its cycle, because receivers need about
    /// the same share of every layer of the code.
    pub mixes_cycle: bool,
    /// Whether the last source symbol of an object is sent with its padding.
    pub padding: Padding,
    /// Most source symbols of a block.
    pub max_source_symbols: u32,
    /// Symbols beyond `k`, one duplicate included, with which decoding almost never fails. `None`
    /// if the number varies by per cents between blocks, so that only the decoder can tell.
    pub sure_surplus: Option<u32>,
}

/// The factors with which a code combines source symbols into encoding symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// None: every encoding symbol is a source symbol.
    None,
    /// 0 and 1: encoding symbols are sums.
    Bits,
    /// Elements of GF(256).
    Octets,
    /// Elements of GF(2^16).
    OctetPairs,
}

/// Whether a sender sends the zeros after the last byte of an object, in its last source symbol.
/// Repair symbols are computed over the padded symbol in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Never (RFC 5445, section 3.2.1).
    Omitted,
    /// Both are allowed (RFC 5053, section 5.3.2; RFC 6330, section 4.4.2). RFC 5510 states no rule
    /// of its own: its objects are divided as RFC 5052, section 9.1 says, where the last source
    /// symbol ends with the object.
    Optional,
    /// Always.
    Sent,
}

/// The facts about a code's blocks of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockProfile {
    /// `n`: encoding symbols of the block; their ESIs are `0..n`. For a Reed-Solomon block that is
    /// shorter than the longest one, senders make fewer: see `symbols_per_cycle`.
    pub encoding_symbols: u32,
    /// Encoding symbols that a sender makes before it repeats them, from ESI 0 on. It equals
    /// `encoding_symbols`, except for a Reed-Solomon block that is shorter than the longest one:
    /// `floor(k max_n / B)` (RFC 5510).
    pub symbols_per_cycle: u32,
    /// Most symbols other than source symbols that a decoder uses.
    pub max_repair_symbols: u32,
    /// Bytes that a decoder allocates before it has its plan, with the symbols of an honest sender.
    /// Ids chosen by a hostile sender take at most four times as much. `None` for codes whose
    /// decoders only record which symbols are available.
    pub decoder_memory: Option<u64>,
    /// A budget for [`IdDecoder::solve`]: four to ten times the usual work. The symbols of an
    /// honest sender practically never exhaust it, and it ends a hostile choice of ids in well
    /// under a second for the longest block of most codes, and about a second for a million symbols
    /// of LT.
    pub work: Work,
    /// Multiplications per byte of a symbol for the worst loss, if they may be more than a receiver
    /// can afford; 0 for the codes whose cost `work` bounds.
    pub products: u64,
}
