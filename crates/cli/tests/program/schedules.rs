//! `fontana send --schedule`.

use crate::support::{Sender, arguments, noise, place, run};
use std::fs;

#[test]
fn a_schedule_is_announced_and_its_inefficiencies_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, noise(400_000, 1)).unwrap();
    for (options, announced) in [
        ("--schedule even", serde_json::Value::Null),
        ("--schedule random --fec rs", "random".into()),
        ("--schedule cumulative --fec rs --channels 2", "cumulative".into()),
        ("--schedule fcast:p_rand8/org_2", "fcast:p_rand8/org_2".into()),
        ("--schedule anticipated:1 --channels 2", "fcast:rand/org_2,anticipated:1".into()),
    ] {
        let place = place();
        let sender = Sender::start(&format!("--open --to {place} {options}"), &[&file]);
        let into = directory.path().join(options);
        let words = format!("recv --group {place} -i lo -y --timeout 20 --json -o");
        let received = run(&arguments(&words, &[&into])).expect(0);
        assert_eq!(received.event("offered")["schedule"], announced, "{options}");
        let summary = received.event("summary");
        let number = |field: &str| summary[field].as_f64().unwrap();
        let decoding = (number("fresh") + number("late")) / number("source_symbols");
        assert!((number("decoding_inefficiency") - decoding).abs() < 1e-6, "{summary}");
        let factor = number("distinctness_inefficiency");
        assert!(factor >= 1.0 && decoding * factor <= number("reception_inefficiency"));
        assert!(fs::read(into.join("file")).unwrap() == noise(400_000, 1));
        sender.finish();
    }
}

#[test]
fn a_schedule_that_cannot_be_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, noise(400_000, 1)).unwrap();
    for (options, expected) in [
        ("--schedule odd", "even, cumulative, random, fcast:ORDER/ORG"),
        ("--schedule anticipated:0", "1 to 64 layers"),
        ("--schedule cumulative", "--fec rs for cumulative"),
        ("--schedule cumulative --fec tornado", "without short files"),
        ("--schedule anticipated:1 --fec rs", "--channels N"),
        ("--schedule random --sequential", "--sequential"),
        ("--schedule random --profile space", "--profile"),
    ] {
        let words = format!("send -i lo --dry-run --to {} {options}", place());
        let refused = run(&arguments(&words, &[&file])).expect(2);
        assert!(refused.stderr.contains(expected), "{options}: {}", refused.stderr);
    }
}
