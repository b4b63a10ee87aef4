//! FCAST (RFC 6968): objects that carry their own metadata.

mod carousel;
mod checksum;
mod compound;
mod error;
mod metadata;

pub use carousel::{CarouselInstance, Equivalence};
pub use checksum::InternetChecksum;
pub use compound::{Compound, CompoundHeader};
pub use error::FcastError;
pub use metadata::{CompoundMetadata, Slice};
