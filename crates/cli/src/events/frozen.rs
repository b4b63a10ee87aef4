//! A test that the interface for scripts does not change by accident. It compares the names of all
//! events and fields, the words for outcomes and the exit codes with a committed list,
//! `frozen.txt`.
//!
//! An addition adds a line or a word to the list. A rename or a removal breaks scripts: it needs a
//! major version and an entry in CHANGELOG.md.

use super::tests::examples;
use super::*;
use crate::exit;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write;

const FROZEN: &str = include_str!("frozen.txt");

/// One line for each event: the command, the event's name, and the fields that `E` serializes. The
/// values come from the page, which has an example of each variant.
fn fields<E: Serialize + DeserializeOwned>(heading: &str, into: &mut String) {
    for example in examples(heading) {
        let event: E = serde_json::from_str(example).expect(example);
        let emitted: Value = serde_json::from_str(&line(&event)).unwrap();
        let emitted = emitted.as_object().unwrap();
        write!(into, "{heading}: {}:", emitted["event"].as_str().unwrap()).unwrap();
        for field in emitted.keys().filter(|&key| key != "event") {
            write!(into, " {field}").unwrap();
        }
        into.push('\n');
    }
}

fn interface() -> String {
    let mut text = String::new();
    fields::<Notice>("Every command", &mut text);
    fields::<SendEvent>("fontana send", &mut text);
    fields::<ReceiveEvent>("fontana recv", &mut text);
    fields::<PublishEvent>("fontana publish", &mut text);
    fields::<ServeEvent>("fontana serve", &mut text);
    fields::<ResumeEvent>("fontana resume", &mut text);
    fields::<DemoEvent>("fontana demo", &mut text);
    fields::<DoctorEvent>("fontana doctor", &mut text);
    fields::<LabEvent>("fontana lab", &mut text);
    fields::<RelayEvent>("fontana lab relay", &mut text);
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
