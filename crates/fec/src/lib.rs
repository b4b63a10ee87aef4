//! Erasure codes: they encode source blocks into encoding symbols, and recover lost symbols.
//!
//! Decoding has two steps. On *ids*, an [`IdDecoder`] takes the ESIs of received symbols, and
//! returns a [`Plan`] if they suffice. On *bytes*, the plan is executed, over as many columns at a
//! time as the caller has memory for. An encoder executes the plan of a block whose source symbols
//! are all available. A sender and a receiver with the same [`Oti`] compute the same symbol for
//! each ESI. The crate reads no clock, starts no thread and uses no ambient randomness. No input
//! from the network makes it panic.
//!
//! ```
//! use fontana_fec::codes::raptorq::RaptorQ;
//! use fontana_fec::simple::{BlockDecoder, encode};
//! use fontana_fec::{Esi, FecScheme};
//!
//! let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
//! let block = b"fair water flows to everyone";
//! let symbols = encode(scheme, block, 4)?;
//!
//! // The first two of the seven source symbols are lost; repair symbols replace them.
//! let mut decoder = BlockDecoder::new(scheme, block.len(), 4)?;
//! let mut received = None;
//! for esi in (2..).map(Esi) {
//!     let mut symbol = [0; 4];
//!     symbols.write_symbol(esi, &mut symbol);
//!     received = decoder.push(esi, &symbol)?;
//!     if received.is_some() {
//!         break;
//!     }
//! }
//! assert_eq!(received.as_deref(), Some(&block[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the standard library, but with an allocator: `default-features = false` and the feature
//! `no_std`. Kernels are then those that the target is compiled for.
//!
//! | module | what it holds |
//! |---|---|
//! | [`codes`] | a page for each code: [Raptor](codes::raptor), [RaptorQ](codes::raptorq), [Tornado](codes::tornado), [LT](codes::lt), [Reed-Solomon](codes::reed_solomon), [none](codes::no_code), [dispersal](codes::dispersal) |
//! | [`object`] | objects in memory as RaptorQ packets, and back |
//! | [`presets`] | codes with the same shards as those of other programs |
//! | [`simple`] | encoding and decoding of one block in memory |
//! | `locate` | [`Locator`]: which of a block's available symbols are wrong |
//! | `scheme`, `code` | [`FecScheme`], the list of codes, and the trait that every code implements |
//! | `ids`, `oti`, `layout`, `parameters` | identifiers of symbols, and the geometry of objects |
//! | `bytes`, `field`, `sync` | stripes of symbols, SIMD kernels, finite fields, locks |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

mod bytes;
mod code;
pub mod codes;
mod decode;
mod field;
mod ids;
mod layout;
mod limits;
mod locate;
pub mod object;
mod oti;
mod parameters;
mod plan;
pub mod presets;
mod scheme;
pub mod simple;
#[doc(hidden)]
pub mod study;
mod sync;

pub use bytes::stripes::Scratch;
pub use bytes::stripes::loading::{Lent, SymbolSource};
pub use code::{BlockProfile, CodeProfile, Factors, Padding};
pub use codes::shared::splitmix::SplitMix64;
pub use decode::{EsiError, IdDecoder, Novelty, Progress, Work};
pub use ids::{EncodingId, Esi, Sbn};
pub use layout::{ObjectLayout, SymbolPiece};
pub use limits::{BlockLengthError, MAX_TRANSFER_LENGTH, OtiError};
pub use locate::{Located, Location, Locator};
pub use oti::Oti;
pub use parameters::{CodeError, Information, SchemeParameters};
pub use plan::{Intermediate, Plan, PlanCache, Recovered, SymbolSums};
pub use scheme::FecScheme;
