//! Sending: files in, packets out.
//!
//! ```no_run
//! use fontana::{SendOptions, SendSession, Stop};
//!
//! let options = SendOptions::new(vec!["image.raw".into()]);
//! let session = SendSession::prepare(options)?;
//! println!("fontana recv '{}'", session.ticket());
//! let summary = session.run(&Stop::new(), &mut |_progress| {})?;
//! println!("{} bytes sent", summary.stats.wire_bytes);
//! # Ok::<(), fontana::Error>(())
//! ```

mod checks;
mod control;
mod driver;
mod egress;
mod options;
mod order;
mod progress;
mod session;
mod stream;
mod train;

pub use options::{Ordering, SendOptions};
pub use progress::{SendProgress, SendSummary};
pub use session::SendSession;
pub use stream::{StreamOptions, StreamSession};
