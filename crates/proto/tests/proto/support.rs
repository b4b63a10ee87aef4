//! What several files of tests share.

pub(crate) mod bottleneck;
pub(crate) mod plain;
pub(crate) mod world;
