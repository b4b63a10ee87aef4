//! The house's rules: the language of documents, the structure inside of crates, the arrows
//! between them, and their sizes.
#![allow(clippy::unwrap_used)]

mod arrows;
mod documents;
mod ratchet;
mod structure;
