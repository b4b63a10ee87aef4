//! Improving the efficiency of a multicast file transfer tool based on ALC (Roca, Mordelet, INRIA
//! RR-4411, 2002): which symbols to send on which layer, and in which order.
//!
//! In this folder, a section without further source is a section of this paper.

pub(crate) mod alf;
pub(crate) mod anticipated;
pub(crate) mod bounded;
pub(crate) mod disk;
pub(crate) mod losses;
pub(crate) mod model;
#[cfg(test)]
mod orders;
mod pair;
pub(crate) mod profiles;
pub(crate) mod real;
pub(crate) mod schemes;
mod session;
pub(crate) mod tool;
mod transfer;
