//! A test that the interface for scripts does not change by accident. It compares the names of all
//! events and fields, the words for outcomes and the exit codes with a committed list,
//! `frozen.txt`.
//!
//! An addition adds a line or a word to the list. A rename or a removal breaks scripts: it needs a
//! major version and an entry in CHANGELOG.md.

use super::*;
use fontana::Outcome;
use fontana_console::exit;
use fontana_console::json::{Notice, verdict};
use fontana_testing::events::interface as events;
use std::fmt::Write;

const FROZEN: &str = include_str!("frozen.txt");

fn interface() -> String {
    let mut text = [
        events::<Notice>("Every command"),
        events::<SendEvent>("fontana send"),
        events::<ReceiveEvent>("fontana recv"),
        events::<PublishEvent>("fontana publish"),
        events::<ServeEvent>("fontana serve"),
        events::<ResumeEvent>("fontana resume"),
        events::<DemoEvent>("fontana demo"),
        events::<DoctorEvent>("fontana doctor"),
    ]
    .concat();
    for outcome in Outcome::ALL {
        writeln!(text, "exit code {}: {}", exit::code(outcome), verdict(outcome)).unwrap();
    }
    text
}

#[test]
fn names_of_events_and_fields_and_exit_codes_are_as_they_were() {
    let interface = interface();
    for (line, frozen) in interface.lines().zip(FROZEN.lines()) {
        assert_eq!(line, frozen, "the interface of --json or of exit codes has changed");
    }
    assert_eq!(interface, FROZEN, "the interface has more or fewer lines than frozen.txt");
}
