//! `docs/events.md`, and the events of the programs.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The page that describes all events.
pub const PAGE: &str = include_str!("../../../docs/events.md");

/// The examples below a heading: the lines of its `json` blocks.
///
/// # Panics
/// If there is no such heading.
#[must_use]
pub fn examples(heading: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let blocks = section.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```"));
    blocks.flat_map(|(block, _)| block.lines()).collect()
}

/// The fields of the events of a command, and of those of every command.
///
/// # Panics
/// If there is no such heading, or an example is no event.
#[must_use]
pub fn documented(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let examples = examples("Every command").into_iter().chain(examples(heading));
    let events = examples.map(|example| serde_json::from_str::<Value>(example).expect(example));
    events.map(|event| (name(&event).to_owned(), fields(&event))).collect()
}

/// The names of the fields of an event.
///
/// # Panics
/// If it is no JSON object.
#[must_use]
pub fn fields(event: &Value) -> BTreeSet<String> {
    event.as_object().expect("an object").keys().cloned().collect()
}

fn name(event: &Value) -> &str {
    event["event"].as_str().expect("a name")
}

/// The names of all variants, taken from serde's error about an unknown one.
fn variants<E: DeserializeOwned>() -> BTreeSet<String> {
    let complaint = match serde_json::from_str::<E>(r#"{"event":"?"}"#) {
        Ok(_) => panic!("no event is called ?"),
        Err(error) => error.to_string(),
    };
    complaint.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// Checks that each example below the heading is an event with exactly its fields, that each event
/// has an example, and that the page explains each field.
///
/// # Panics
/// If not.
pub fn check<E: Serialize + DeserializeOwned>(heading: &str) {
    let mut seen = BTreeSet::new();
    for example in examples(heading) {
        let documented: Value = serde_json::from_str(example).expect(example);
        let event: E = serde_json::from_str(example)
            .unwrap_or_else(|error| panic!("{heading}: {error} in {example}"));
        // A field that the example lacks comes back as null. A field that the event lacks is
        // dropped.
        let emitted = serde_json::to_value(&event).expect(example);
        assert_eq!(documented, emitted, "{heading}");
        for field in fields(&documented) {
            assert!(PAGE.contains(&format!("`{field}`")), "{heading}: {field}");
        }
        seen.insert(name(&documented).to_owned());
    }
    assert_eq!(seen, variants::<E>(), "{heading}: events with an example, and all events");
}

/// One line for each event below the heading: its name, and the fields that `E` serializes.
///
/// # Panics
/// If an example is no event.
#[must_use]
pub fn interface<E: Serialize + DeserializeOwned>(heading: &str) -> String {
    let mut text = String::new();
    for example in examples(heading) {
        let event: E = serde_json::from_str(example).expect(example);
        let emitted = serde_json::to_value(&event).expect(example);
        let _ = write!(text, "{heading}: {}:", name(&emitted));
        for field in fields(&emitted).iter().filter(|field| *field != "event") {
            let _ = write!(text, " {field}");
        }
        text.push('\n');
    }
    text
}
