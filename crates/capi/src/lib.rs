//! Fontana for programs in C. `include/fontana.h`, which cbindgen makes of this crate, is its
//! documentation; `examples/transfer.c` is a program.
//!
//! | module | |
//! |---|---|
//! | `session` | senders and receivers: options, start, events, end |
//! | `error` | what the last call of a thread failed with |
//! | `text` | texts of C |
//!
//! This crate has `unsafe` code: pointers are what their documentation says.
#![allow(unsafe_code)]

pub mod error;
pub mod session;
mod text;
