//! The house's rules: the language of documents, the structure inside of crates, and the arrows
//! between them.
#![allow(clippy::unwrap_used)]

mod arrows;
mod documents;
mod structure;
