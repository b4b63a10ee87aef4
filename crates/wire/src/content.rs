//! Content encodings of FLUTE objects: zlib, deflate and gzip (RFC 6726, section 3.4.3; RFC 1950,
//! RFC 1951, RFC 1952).

mod deflate;
mod encoding;
mod inflate;

pub use deflate::encode;
pub use encoding::ContentEncoding;
pub use inflate::{DecodeError, DecodeLimits, decode_bounded};
