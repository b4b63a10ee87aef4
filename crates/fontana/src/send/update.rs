//! What the collecting thread of a sender tells its pacing thread.

use crate::reporting::{AwaitedReceivers, Crowd};
use fontana_fec::Esi;
use fontana_proto::report::{ReceiverStatus, SlowReceiver};
use fontana_proto::{BlockId, ControlObject};
use fontana_wire::{RepairRequest, RollCall};
use std::sync::Arc;
use std::time::Duration;

/// News of the collecting thread.
pub(super) enum Update {
    /// A receiver has lost packets, for the first time.
    Losses,
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
    /// News about the receivers of a stream.
    Stream(StreamUpdate),
    /// A receiver has a new state.
    Report(Box<ReceiverStatus>),
    /// The state of all receivers.
    Crowd(Arc<Crowd>),
    /// All expected receivers are complete, or it is the deadline.
    Over,
}

/// News about the receivers of a stream.
pub(super) enum StreamUpdate {
    /// A roll call, to which the pacing thread adds the repair round: for so many receivers, with
    /// this round trip.
    Call { call: Box<RollCall>, receivers: u32, round_trip: Duration },
    /// A receiver requests symbols.
    Request(Box<RepairRequest>),
    /// A receiver loses this part of the packets.
    Loss { ppm: u32 },
    /// Whether receivers report now.
    Followed(bool),
    /// The receivers that the stream waits for.
    Awaited(AwaitedReceivers),
}
