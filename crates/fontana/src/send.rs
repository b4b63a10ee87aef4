//! The implementation of [`Sender`](crate::sender::Sender) and
//! [`StreamSender`](crate::stream::StreamSender).

mod ahead;
mod answers;
mod carousel;
mod checks;
mod control;
mod crowd;
mod digests;
mod driver;
mod egress;
mod emitted;
mod number;
mod options;
mod order;
mod pacing;
mod prepared;
mod queue;
mod rate;
mod reach;
mod renewal;
mod repair;
mod reports;
mod runner;
mod sealing;
mod session;
mod stream;

pub(crate) use carousel::Carousel;
pub use checks::MAX_PEAK_WINDOW;
pub use options::Ordering;
pub(crate) use options::SendOptions;
pub use session::{PreparedSender, SessionDescription};
pub use stream::PreparedStream;
pub(crate) use stream::StreamOptions;
