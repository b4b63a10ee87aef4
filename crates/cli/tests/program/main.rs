//! Tests of the program as users and scripts see it: exit codes, messages, events. Real sockets on
//! the loopback interface, real files, no root.
#![allow(clippy::unwrap_used, clippy::panic)]

mod choice;
mod commands;
mod demonstration;
mod devices;
mod events;
mod failures;
mod foreign_flute;
mod forged;
mod group_key;
mod hook;
mod incomplete;
mod killed;
mod mirrors;
mod output;
mod pairs;
mod pipes;
mod published;
mod resume;
mod sandbox;
mod schedules;
mod serve;
mod strangers;
mod strict_flute;
mod support;
mod terminal;
mod threads;
mod transfer;
mod trees;
mod watching;
mod web;

#[path = "../support/nginx.rs"]
mod nginx;
