//! What the collecting thread of a sender tells its pacing thread.

use crate::reporting::Crowd;
use fontana_proto::report::ReceiverStatus;
use fontana_proto::{BlockId, ControlObject};
use std::sync::Arc;

/// News of the collecting thread.
pub(super) enum Update {
    /// So many fresh symbols of each block are to be sent.
    Repair(Vec<(BlockId, u32)>),
    /// A roll call to be sent.
    RollCall(Box<ControlObject>),
    /// A receiver has a new state.
    Report(Box<ReceiverStatus>),
    /// The state of all receivers.
    Crowd(Arc<Crowd>),
    /// All expected receivers are complete, or it is the deadline.
    Over,
}
