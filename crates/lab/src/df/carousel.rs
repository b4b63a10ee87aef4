//! Receivers of a carousel, whichever code it carries.

use super::interleaved::Interleaved;
use super::loss::Loss;
use fontana_proto::SplitMix64;

/// What a receiver has seen of a carousel when it has the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reception {
    /// Distinct packets that it received.
    pub(crate) distinct: u32,
    /// Packets that were sent while it listened.
    pub(crate) sent: u32,
}

/// The codes that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Reed-Solomon codes over blocks of about so many source packets.
    Interleaved(u32),
}

impl Code {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Interleaved(length) => format!("interleaved k = {length}"),
        }
    }

    /// A carousel of a file of `source_symbols` with this code.
    pub(crate) fn carousel(self, source_symbols: u32) -> Carousel {
        match self {
            Self::Interleaved(length) => {
                Carousel::Interleaved(Interleaved::new(source_symbols, source_symbols / length))
            }
        }
    }
}

/// A carousel, and the memory of one receiver after the other.
#[derive(Debug)]
pub(crate) enum Carousel {
    Interleaved(Interleaved),
}

impl Carousel {
    /// A receiver that joins at any time.
    pub(crate) fn receive(&mut self, loss: &Loss, random: &mut SplitMix64) -> Reception {
        let got = match self {
            Self::Interleaved(file) => file.receive(loss.clone(), u32::MAX, random),
        };
        // Without a limit every receiver ends.
        got.unwrap_or(Reception { distinct: u32::MAX, sent: u32::MAX })
    }
}
