//! Receiving a part: `--only`, and `--list` to see what there is.

use crate::support::{Sender, arguments, noise, place, run};
use std::fs;

#[test]
fn a_part_is_chosen_by_patterns_and_the_names_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let photos = directory.path().join("photos");
    fs::create_dir_all(photos.join("2026")).unwrap();
    fs::write(photos.join("2026/a.jpg"), noise(90_000, 1)).unwrap();
    fs::write(photos.join("2026/b.jpg"), noise(90_000, 2)).unwrap();
    fs::write(photos.join("\u{1b}notes"), noise(90_000, 3)).unwrap();
    let sender = Sender::start(&format!("--to {}", place()), &[&photos]);
    let into = directory.path().join("into");
    let receive = |words: &str| {
        run(&arguments(&format!("recv {} --timeout 20 {words} -o", sender.ticket), &[&into]))
    };

    let listed = receive("--list").expect(0).stdout;
    for line in ["photos\n", "  photos/2026/a.jpg  90.0 kB\n", "  photos/\\u{1b}notes  90.0 kB\n"] {
        assert!(listed.contains(line), "{line:?} in {listed}");
    }
    let entries = receive("--list --json").expect(0).events();
    assert_eq!(entries.iter().filter(|event| event["event"] == "entry").count(), 5);
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0, "nothing was received");

    let refused = receive("--only *.png").expect(2).stderr;
    assert!(
        refused.contains("nothing in \"photos\" is what was asked for; it has photos"),
        "{refused}"
    );
    assert!(refused.contains("see all names: fontana recv --list"), "{refused}");
    let refused = receive("--only [").expect(2).stderr;
    assert!(refused.contains("the pattern \"[\"") && refused.contains(".gitignore"), "{refused}");

    let received = receive("--only b.jpg --only *.png --json").expect(0);
    let selected = received.event("selected");
    assert_eq!((&selected["files"], &selected["bytes"]), (&1.into(), &90_000.into()));
    assert!(received.event("summary")["deselected"].as_u64().unwrap() > 0);
    assert!(fs::read(into.join("photos/2026/b.jpg")).unwrap() == noise(90_000, 2));
    assert_eq!(fs::read_dir(into.join("photos")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(into.join("photos/2026")).unwrap().count(), 1);
    sender.finish();
}
