//! What the bindings to other languages share: options, events and failures as plain values.
//!
//! A binding has sessions as the library has them. Their options are numbers and texts, and their
//! events are those of the program: JSON objects with the names and fields of `docs/events.md`.
//!
//! ```
//! use fontana_bindings::{SendOptions, event};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let file = directory.path().join("a");
//! # std::fs::write(&file, "content").unwrap();
//! let here = SendOptions { interface: Some("127.0.0.1"), push: Some(10), ..Default::default() };
//! let sender = here.builder([file])?.start()?;
//! let summary = event::sent(&sender.join()?);
//! assert_eq!(summary["verdict"], "complete");
//! # Ok::<(), fontana_bindings::Failure>(())
//! ```
//!
//! | module | |
//! |---|---|
//! | [`event`] | events and reports as JSON objects |
//! | `failure` | errors with their kind and code: [`Failure`] |
//! | `memory` | memory that a session writes to: [`GivenMemory`] |
//! | `options` | [`SendOptions`], [`ReceiveOptions`] |

pub mod event;
mod failure;
mod memory;
mod options;

pub use failure::Failure;
pub use memory::{GivenMemory, staging_in_memory};
pub use options::{ReceiveOptions, SendOptions};
