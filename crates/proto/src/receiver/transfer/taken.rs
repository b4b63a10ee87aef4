//! What becomes of a symbol that arrives.

/// The fate of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receiver) enum Taken {
    /// It was fresh and has been placed.
    Fresh,
    /// It was received before.
    Duplicate,
    /// The block needs nothing more, and is verified or given up.
    Late,
    /// The block needs nothing more if no symbol is wrong, which is not known yet.
    Unverified,
    /// The code has no such symbol.
    Invalid,
    /// The object is deselected.
    Deselected,
    /// It differs from the one that was received under its id.
    Disputed,
    /// Decoders of other blocks use all the memory for decoders.
    NoRoom,
}

impl Taken {
    /// Whether there may be something to do for the block.
    pub(in crate::receiver) fn is_news(self) -> bool {
        matches!(self, Self::Fresh | Self::Disputed)
    }
}
