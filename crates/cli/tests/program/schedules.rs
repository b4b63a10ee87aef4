//! `fontana send --order`.

use crate::support::{Sender, arguments, noise, place, run};
use std::fs;

#[test]
fn a_schedule_is_announced_and_its_inefficiencies_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, noise(400_000, 1)).unwrap();
    for (options, announced) in [
        ("--order even", serde_json::Value::Null),
        ("--order random --fec rs", "random".into()),
        ("--order cumulative --fec rs --layers 2", "cumulative".into()),
        ("--order fcast:p_rand8/org_2", "fcast:p_rand8/org_2".into()),
        ("--order anticipated:1 --layers 2", "fcast:rand/org_2,anticipated:1".into()),
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
        ("--order odd", "cumulative, random, fcast:ORDER/ORG"),
        ("--order anticipated:0", "1 to 64 layers"),
        ("--order cumulative", "--fec rs for cumulative"),
        ("--order cumulative --fec tornado", "without short files"),
        ("--order anticipated:1 --fec rs", "--layers N"),
    ] {
        let words = format!("send -i lo --dry-run --to {} {options}", place());
        let refused = run(&arguments(&words, &[&file])).expect(2);
        assert!(refused.stderr.contains(expected), "{options}: {}", refused.stderr);
    }
}
