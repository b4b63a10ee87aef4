//! `--json`: what is printed is what `docs/events.md` says.

use crate::support::{Run, Running, arguments, documented, fields, noise, place, run};

fn assert_documented(run: &Run, heading: &str) {
    let documented = documented(heading);
    for event in run.events() {
        let name = event["event"].as_str().unwrap();
        let expected = documented.get(name).unwrap_or_else(|| panic!("{name} is not documented"));
        assert_eq!(&fields(&event), expected, "{heading}: {name}");
    }
}

#[test]
fn the_events_of_a_transfer_agree_with_the_page_and_with_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let (large, small) = (directory.path().join("large"), directory.path().join("small"));
    std::fs::write(&large, noise(400_000, 1)).unwrap();
    std::fs::write(&small, noise(10, 2)).unwrap();
    let words = format!("send -i lo --to {} --json", place());
    let mut sender = Running::start(&arguments(&words, &[&large, &small]));
    let session: serde_json::Value = serde_json::from_str(&sender.line()).unwrap();
    let ticket = session["tickets"][0].as_str().unwrap();
    let into = directory.path().join("into");
    let words = format!("recv {ticket} --json --timeout 20 -o");
    let received = run(&arguments(&words, &[&into])).expect(0);
    let sent = sender.stop().expect(130);
    assert_documented(&received, "fontana recv");
    assert_documented(&sent, "fontana send");

    let names: Vec<_> = received.events().iter().map(|e| e["event"].clone()).collect();
    assert_eq!(names.first().unwrap(), "session");
    assert_eq!(names.last().unwrap(), "summary");
    let summary = received.event("summary");
    assert_eq!(summary["bytes"], 400_010);
    assert_eq!(summary["verdict"], "complete");
    assert_eq!(summary["source_symbols"], session["source_symbols"]);
    let accepted = received.event("accepted");
    for field in ["manifest", "tsi", "files", "bytes", "version"] {
        assert_eq!(accepted[field], session[field], "{field}");
    }
    let done: Vec<_> =
        received.events().into_iter().filter(|e| e["event"] == "object_done").collect();
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|event| event["verified"] == "signed"));
    let number = |field: &str| summary[field].as_u64().unwrap();
    // `packets` is counted until reception is complete; later symbols may be fresh while a solver
    // runs.
    assert!(number("datagrams") >= number("fresh") + number("control_packets"), "{summary}");

    let summary = sent.event("summary");
    assert_eq!(summary["verdict"], "interrupted");
    let number = |field: &str| summary[field].as_u64().unwrap();
    let symbols = number("source_symbols") + number("repair_symbols");
    assert_eq!(number("packets"), symbols + number("control_packets"));
    assert_eq!(
        number("wire_bytes"),
        number("payload_bytes") + 28 * number("packets"),
        "IPv4 and UDP"
    );
}

#[test]
fn an_error_is_an_event_too() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let run = run(&arguments("send --json", &[&missing])).expect(6);
    assert_documented(&run, "fontana send");
    let error = run.event("error");
    assert_eq!(error["code"], 6);
    assert!(error["message"].as_str().unwrap().contains("missing"), "{error}");
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
}

#[test]
fn what_is_refused_on_a_group_is_an_event() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(1000, 3)).unwrap();
    let place = place();
    let sender = crate::support::Sender::start(&format!("--open --to {place}/5"), &[&file]);
    let words = format!("recv fontana://{place}/6 -i lo --json --timeout 700ms -o");
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    assert_documented(&received, "fontana recv");
    let rejected = received.event("rejected");
    assert_eq!(rejected["tsi"], 5);
    assert_eq!(rejected["reason"], "other_session");
    assert!(received.event("summary")["foreign"].as_u64().unwrap() > 0);
    sender.finish();
}

#[test]
fn what_the_doctor_finds_is_documented() {
    let run = run(&["doctor", "--json", "-i", "lo"]);
    assert!(matches!(run.code, Some(0 | 5)), "{}", run.stderr);
    assert_documented(&run, "fontana doctor");
    let events = run.events();
    let found = |subject: &str| events.iter().any(|event| event["subject"] == subject);
    assert!(found("receive buffer") && found("firewall"), "{}", run.stdout);
    assert_eq!(run.event("summary")["code"], run.code.unwrap());
}
