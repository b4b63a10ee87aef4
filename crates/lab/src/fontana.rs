//! Beyond the papers: what Fontana itself claims, or would like to, on the real sender and
//! receivers in simulated networks where there is a network. Where no paper gives a number the
//! bounds are ours, and say so.

pub(crate) mod churn;
pub(crate) mod crowd;
pub(crate) mod eta;
pub(crate) mod fair;
pub(crate) mod window;
pub(crate) mod yielding;
