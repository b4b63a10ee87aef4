//! Fuzz targets. Under `cargo test` each replays `fuzz/__fuzz__` and some random input, under
//! `cargo bolero test` it runs without limit.

mod racing;
mod recovery;
