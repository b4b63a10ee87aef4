//! Reports of receivers: which have finished. A sender asks in signed roll calls
//! ([`fontana_wire::roll_call`]), and receivers whose user allows it answer.
//!
//! A sender has a [`Collection`](crate::Collection), which decides what it does about them. A
//! [`ReportCollector`] issues the roll calls and keeps the state of each receiver. At a receiver,
//! a [`RollCallGate`] decides which roll calls are authentic and new, and a [`Reporter`] when to
//! answer.
//!
//! A sender that repairs on demand sends what receivers request in [`RepairRounds`]; a receiver's
//! [`Reporter`] requests what it [lacks](crate::Lacking), unless others have.
//!
//! A sender whose rate follows its receivers has a [`RateControl`]: receivers whose user allows it
//! report how much arrives.
//!
//! In each round of reports a receiver draws a number between 0 and 1, and reports when that part
//! of the round's window has passed. The collector chooses the window so that all receivers
//! together send at most its budget of reports. It may change the window during a round: the
//! numbers that were drawn stay.

mod answer;
mod authority;
mod collector;
mod gate;
mod head_count;
mod limit;
mod line_error;
mod offered;
mod outage;
mod places;
mod rate_control;
mod rate_reporter;
mod reporter;
mod requester;
mod round_trip;
mod rounds;
mod signers;
mod status;

pub use answer::{Answer, ReportFacts, unverified_call};
pub use authority::{Authority, Network};
pub use collector::{CollectorConfig, IgnoredReport, ReportCollector};
pub use gate::{RollCallGate, RollCallRefusal};
pub use rate_control::{IgnoredRate, RateConfig, RateControl, SlowReceiver};
pub use rate_reporter::PacketCounts;
pub use reporter::{Reporter, ReporterConfig};
pub use rounds::{IgnoredRequest, RepairConfig, RepairRounds};
pub use signers::{Authentic, NoCipher, Signers};
pub use status::{
    AwaitedReceivers, CrowdSummary, Expected, ExpectedReceiver, ExpectedState, MissingReceiver,
    ReceiverStatus,
};
