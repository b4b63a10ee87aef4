//! Beyond the papers: what Fontana itself claims, or would like to.

pub(crate) mod window;
