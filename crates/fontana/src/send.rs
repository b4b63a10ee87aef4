//! Sending: [`Sender`](crate::sender::Sender) is its face, and
//! [`StreamSender`](crate::stream::StreamSender) that of a stream.

mod carousel;
mod checks;
mod control;
mod driver;
mod egress;
mod observe;
mod options;
mod order;
mod runner;
mod session;
mod stream;
mod train;

pub(crate) use carousel::Carousel;
pub use options::Ordering;
pub(crate) use options::SendOptions;
pub use session::{PreparedSender, SessionDescription};
pub use stream::PreparedStream;
pub(crate) use stream::StreamOptions;
