//! FEC Object Transmission Information: what a sender and a receiver must know of an object to
//! interpret its symbols (RFC 5052, section 6; RFC 5445; RFC 6330, section 3.3).

use crate::scheme::FecScheme;

/// FEC Object Transmission Information of one object.
///
/// It may come from the network: [`Oti::layout`] checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oti {
    /// `F`: bytes of the object as transported.
    pub transfer_length: u64,
    /// `T` (or `E`): bytes of an encoding symbol.
    pub symbol_size: u16,
    /// The code and its own parameters.
    pub scheme: FecScheme,
}
