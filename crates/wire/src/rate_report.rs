//! Rate reports: how much of what is sent arrives at a receiver, in a [datagram](crate::feedback)
//! to its collector.
//!
//! ```text
//! offset  bytes
//!     41      4  rate round of the roll call
//!     45      8  serial number of the last roll call that it has received
//!     53      4  microseconds since it has arrived
//!     57      4  microseconds that the packets were counted for; not 0
//!     61      4  packets that arrived in this time
//!     65      4  packets that were lost in this time
//!     69      1  weight with which the receiver has drawn whether it reports, 1 to 100
//! ```

use crate::bytes::Reader;
use crate::feedback::echo::RollCallEcho;
use crate::feedback::error::FeedbackError;
use crate::receiver_id::ReceiverId;

/// How much arrives at a receiver, in a rate round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateReport {
    /// The process.
    pub receiver: ReceiverId,
    /// The round that it answers.
    pub round: u32,
    /// The last roll call that it has received.
    pub echo: RollCallEcho,
    /// Time in microseconds that the packets were counted for; not 0.
    pub window_us: u32,
    /// Packets of the session that arrived in this time.
    pub received: u32,
    /// Packets of the session that were lost in this time, on the way or at the receiver.
    pub lost: u32,
    /// The receiver has reported with the probability `weight` / [divisor](crate::RateCall).
    pub weight: u8,
}

impl RateReport {
    /// Largest weight.
    pub const MAX_WEIGHT: u8 = 100;
    pub(crate) const MAX_BODY: usize = 29;

    pub(crate) fn emit_body(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_be_bytes());
        self.echo.emit(out);
        for field in [self.window_us, self.received, self.lost] {
            out.extend(field.to_be_bytes());
        }
        out.push(self.weight);
    }

    /// `None` if the bytes end too early.
    pub(crate) fn read_body(
        receiver: ReceiverId,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Self, FeedbackError>> {
        let round = reader.u32()?;
        let echo = RollCallEcho::read(reader)?;
        let (window_us, received, lost) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let weight = reader.u8()?;
        if window_us == 0 {
            return Some(Err(FeedbackError::Window));
        }
        if !(1..=Self::MAX_WEIGHT).contains(&weight) {
            return Some(Err(FeedbackError::Weight(weight)));
        }
        Some(Ok(Self { receiver, round, echo, window_us, received, lost, weight }))
    }
}
