//! Transmission schedules: the order in which the symbols of a session's blocks are sent, and their
//! channels.

mod cumulative;
mod fcast;
mod interleaved;
mod kind;
mod order;
mod phase;
mod random;
mod sequential;
mod stream;
#[cfg(test)]
mod tests;
mod turn;

pub use fcast::{Fcast, ObjectOrder, SymbolOrganization};
pub use kind::TransmissionSchedule;
pub(crate) use order::Order;
pub(crate) use phase::likely_symbols;
pub(crate) use stream::SymbolStream;
pub(crate) use turn::{BlockShape, RunLength, Turn, share};
