//! Receiving: packets in, verified files out.
//!
//! ```no_run
//! use fontana::{Outcome, ReceiveOptions, ReceiveSession, Stop};
//!
//! let ticket = "fontana://10.0.0.7@239.255.77.1:7701/5".parse().unwrap();
//! let options = ReceiveOptions::from_ticket(&ticket, "downloads");
//! let session = ReceiveSession::open(options)?;
//! let summary = session.run(&Stop::new(), &mut |_event| {})?;
//! assert_eq!(summary.outcome, Outcome::Complete);
//! # Ok::<(), fontana::Error>(())
//! ```

mod delivery;
mod driver;
mod event;
mod handle;
mod into;
mod object;
mod options;
mod outcome;
mod plan;
mod saved;
mod session;
mod staging_root;
mod summary;
mod syncer;
mod target;
mod threads;
mod worker;

pub use event::{ObjectReport, ReceiveEvent, ReceiveProgress, ReceivedPart};
pub use handle::ReceiveHandle;
pub use options::{ReceiveOptions, SILENCE, SimulatedLoss};
pub use session::ReceiveSession;
pub use summary::{Delivery, Ended, ReceiveSummary};
