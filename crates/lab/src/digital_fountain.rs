//! A digital fountain approach to asynchronous reliable multicast (Byers, Luby, Mitzenmacher, IEEE
//! JSAC 2002): Tornado codes against Reed-Solomon codes that are interleaved over blocks.
//!
//! A packet is 1 KB, and everything is stretched by 2, so a file of `m` MB is a thousand `m` source
//! packets and twice as many in the carousel.

pub(crate) mod block_counts;
pub(crate) mod carousel;
pub(crate) mod costs;
pub(crate) mod download;
pub(crate) mod fig6;
pub(crate) mod interleaved;
pub(crate) mod layers;
pub(crate) mod loss;
pub(crate) mod lt;
pub(crate) mod patient;
pub(crate) mod patterns;
pub(crate) mod receivers;
pub(crate) mod requirements;
pub(crate) mod shared;
pub(crate) mod times;
pub(crate) mod tornado;
pub(crate) mod xors;
