//! Tests that `docs/events.md` and the events agree: every documented example is an event with
//! exactly its fields, and every event has an example.

use super::*;
use fontana::Outcome;
use fontana_console::exit;
use fontana_console::json::{Notice, line, verdict};
use fontana_testing::events::{PAGE, check};

#[test]
fn every_event_is_documented_with_exactly_its_fields() {
    check::<SendEvent>("fontana send");
    check::<ReceiveEvent>("fontana recv");
    check::<PublishEvent>("fontana publish");
    check::<ServeEvent>("fontana serve");
    check::<ResumeEvent>("fontana resume");
    check::<DemoEvent>("fontana demo");
    check::<DoctorEvent>("fontana doctor");
    check::<Notice>("Every command");
}

#[test]
fn the_words_for_verdicts_are_in_the_page() {
    for one in Outcome::ALL {
        let row = format!("| {} | `{}` |", exit::code(one), verdict(one));
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[test]
fn an_event_is_one_line() {
    let notice = Notice::Warning { message: "two\nlines".into(), hint: String::new() };
    assert_eq!(line(&notice).matches('\n').count(), 1);
}
