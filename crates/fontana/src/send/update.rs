//! What the collecting thread of a sender tells its pacing thread.

use crate::reporting::Crowd;
use fontana_fec::Esi;
use fontana_proto::report::{ReceiverStatus, SlowReceiver};
use fontana_proto::{BlockId, ControlObject};
use std::sync::Arc;

/// News of the collecting thread.
pub(super) enum Update {
    /// So many fresh symbols of each block are to be sent.
    Repair(Vec<(BlockId, u32)>),
    /// These symbols are to be sent again.
    Resend(Vec<(BlockId, Esi)>),
    /// The rate to send at from now on.
    Rate { bytes_per_second: u64 },
    /// A receiver gets less than the lowest rate.
    Slow(SlowReceiver),
    /// A roll call to be sent.
    RollCall(Box<ControlObject>),
    /// A receiver has a new state.
    Report(Box<ReceiverStatus>),
    /// The state of all receivers.
    Crowd(Arc<Crowd>),
    /// All expected receivers are complete, or it is the deadline.
    Over,
}
