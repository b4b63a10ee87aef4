//! What several files of tests share.

pub(crate) mod answers;
pub(crate) mod bottleneck;
pub(crate) mod cubic;
pub(crate) mod paths;
pub(crate) mod plain;
pub(crate) mod site;
pub(crate) mod world;
