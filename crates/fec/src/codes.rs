//! A page for each code, and what several codes share.
//!
//! To add a code:
//!
//! 1. Write its page here, with a struct of its parameters. The head of the page names the RFC or
//!    the paper, and the tests that compare the code with a slow reference.
//! 2. Implement `Code` for the struct: the profiles with its facts and limits, how objects are
//!    partitioned into blocks, its parameters in protocols, a decoder and the plan of a full block.
//! 3. Implement `IdDecoder`, which records the received symbols of a block, and `Program`, the
//!    operations of a plan on bytes. [`no_code`] is the shortest example of all three.
//! 4. Add three lines to `scheme.rs`: a variant of [`FecScheme`](crate::FecScheme), an arm of
//!    `FecScheme::code`, and a parser. A new encoding id gets a constant in `ids.rs`, and its
//!    formats in `wire`.
//! 5. Test it in `crates/fec/tests` against a slow reference, and add it to the benchmark
//!    (`crates/bench/src/codes.rs`).

pub mod dispersal;
pub mod lt;
pub mod no_code;
pub mod raptor;
pub mod raptorq;
pub mod reed_solomon;
pub(crate) mod shared;
pub mod tornado;
