//! Mirrors: web servers that have the files of the content, as plain files.
//!
//! ```text
//!  mirror threads ── bytes ─▶ deciding thread ── symbols ─▶ proto::Receiver
//!        ▲                        │
//!        └──── ranges of files ───┘ proto::pull decides which
//! ```
//!
//! Each mirror has a thread and one connection. `client` makes a request, `mirror` is the thread,
//! `files` maps symbols to files, and `records` remembers which mirror sent what of a block, until
//! the block is verified. `discovery` asks mirrors what they have. The deciding thread joins them
//! (`receive/driver/mirrors.rs`).
//!
//! A mirror is not trusted: every block is verified, every answer is checked against the manifest,
//! every wait has a limit, and a mirror that fails is asked again after a pause.

pub(crate) mod address;
pub(crate) mod after;
pub(crate) mod client;
pub(crate) mod credentials;
pub(crate) mod discovery;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod limit;
pub(crate) mod mirror;
pub(crate) mod options;
pub(crate) mod records;
pub(crate) mod report;

mod gate;
mod patience;
mod proxy;
mod retry_after;
