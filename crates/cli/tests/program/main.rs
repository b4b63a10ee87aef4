//! The program as people and scripts see it: its exit codes, its words, its events. Real sockets on
//! the loopback interface, real files, no root.
#![allow(clippy::unwrap_used, clippy::panic)]

mod choice;
mod commands;
mod demonstration;
mod devices;
mod events;
mod failures;
mod hook;
mod lab;
mod mirrors;
mod pipes;
mod resume;
mod support;
mod terminal;
mod threads;
mod transfer;
mod trees;
mod watching;
