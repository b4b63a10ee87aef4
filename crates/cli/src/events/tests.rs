//! Tests that `docs/events.md` and the events agree: every documented example is an event with
//! exactly its fields, and every event has an example.

use super::*;
use crate::exit;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/events.md");

/// The examples below a heading: the lines of its `json` blocks.
pub(super) fn examples(heading: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    section
        .split("```json\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .flat_map(|(block, _)| block.lines())
        .collect()
}

/// The names of all variants, taken from serde's error about an unknown one.
fn variants<E: DeserializeOwned>() -> BTreeSet<String> {
    let complaint = match serde_json::from_str::<E>(r#"{"event":"?"}"#) {
        Ok(_) => panic!("no event is called ?"),
        Err(error) => error.to_string(),
    };
    complaint.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

fn check<E: Serialize + DeserializeOwned>(heading: &str) {
    let mut seen = BTreeSet::new();
    for example in examples(heading) {
        let documented: Value = serde_json::from_str(example).expect(example);
        let event: E = serde_json::from_str(example)
            .unwrap_or_else(|error| panic!("{heading}: {error} in {example}"));
        // A field that the example lacks comes back as null. A field that the event lacks is
        // dropped.
        let emitted: Value = serde_json::from_str(&line(&event)).unwrap();
        assert_eq!(documented, emitted, "{heading}");
        seen.insert(documented["event"].as_str().expect("a name").to_owned());
    }
    assert_eq!(seen, variants::<E>(), "{heading}: events with an example, and all events");
}

#[test]
fn every_event_is_documented_with_exactly_its_fields() {
    check::<SendEvent>("fontana send");
    check::<ReceiveEvent>("fontana recv");
    check::<PublishEvent>("fontana publish");
    check::<ServeEvent>("fontana serve");
    check::<ResumeEvent>("fontana resume");
    check::<DemoEvent>("fontana demo");
    check::<DoctorEvent>("fontana doctor");
    check::<LabEvent>("fontana lab");
    check::<RelayEvent>("fontana lab relay");
    check::<Notice>("Every command");
}

#[test]
fn every_documented_field_is_explained() {
    for heading in [
        "fontana send",
        "fontana recv",
        "fontana publish",
        "fontana resume",
        "fontana demo",
        "fontana doctor",
        "fontana lab",
        "fontana lab relay",
        "Every command",
    ] {
        for example in examples(heading) {
            let event: Value = serde_json::from_str(example).unwrap();
            for field in event.as_object().unwrap().keys() {
                assert!(PAGE.contains(&format!("`{field}`")), "{heading}: {field}");
            }
        }
    }
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
    let notice = Notice::Warning { message: "two\nlines".into(), way_out: String::new() };
    assert_eq!(line(&notice).matches('\n').count(), 1);
}
