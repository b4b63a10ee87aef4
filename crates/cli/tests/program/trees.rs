//! Directories get from `send` to `recv`.

use crate::support::{Sender, arguments, noise, place, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// `photos`, with 60 pictures, a link, an empty directory and an unwanted file.
fn plant(directory: &Path) -> PathBuf {
    let photos = directory.join("photos");
    fs::create_dir_all(photos.join("2026")).unwrap();
    fs::create_dir(photos.join("empty")).unwrap();
    for number in 0..60 {
        fs::write(photos.join(format!("2026/{number:02}.jpg")), noise(900, number)).unwrap();
    }
    fs::write(photos.join("core.tmp"), "x").unwrap();
    symlink("2026/00.jpg", photos.join("latest")).unwrap();
    photos
}

#[test]
fn a_directory_arrives_by_the_command_that_was_printed() {
    let directory = tempfile::tempdir().unwrap();
    let photos = plant(directory.path());
    let sender = Sender::start(&format!("--exclude *.tmp --to {}", place()), &[&photos]);
    let into = directory.path().join("into");
    let receive = arguments(&format!("recv {} --timeout 20 --json -o", sender.ticket), &[&into]);
    let received = run(&receive).expect(0);
    assert_eq!(received.event("accepted")["files"], 60);
    assert_eq!(received.event("summary")["objects"], 1);
    for number in 0..60 {
        let bytes = fs::read(into.join(format!("photos/2026/{number:02}.jpg"))).unwrap();
        assert!(bytes == noise(900, number), "{number}");
    }
    assert_eq!(fs::read_link(into.join("photos/latest")).unwrap(), Path::new("2026/00.jpg"));
    assert!(into.join("photos/empty").is_dir());
    assert!(!into.join("photos/core.tmp").exists());
    sender.finish();
}

#[test]
fn a_link_in_the_way_of_a_directory_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let photos = plant(directory.path());
    let sender = Sender::start(&format!("--to {}", place()), &[&photos]);
    let (into, outside) = (directory.path().join("into"), directory.path().join("outside"));
    fs::create_dir(&into).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, into.join("photos")).unwrap();
    let receive = arguments(&format!("recv {} --timeout 20 -o", sender.ticket), &[&into]);
    let refused = run(&receive).expect(6);
    assert!(refused.stderr.contains("into/photos\" is no directory"), "{}", refused.stderr);
    assert!(refused.stderr.contains("remove it, or choose another"), "{}", refused.stderr);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing outside");
    sender.finish();
}

#[test]
fn a_dry_run_lists_the_tree() {
    let directory = tempfile::tempdir().unwrap();
    let photos = plant(directory.path());
    fs::write(photos.join("\u{1b}[31m"), "x").unwrap();
    let listed = run(&arguments("send -i lo --dry-run", &[&photos])).expect(0).stdout;
    assert!(listed.contains("62 files, 3 directories, 1 link, "), "{listed}");
    for line in
        ["  photos/\n", "  photos/\\u{1b}[31m  1 byte\n", "  photos/2026/00.jpg  900 bytes\n"]
    {
        assert!(listed.contains(line), "{line:?} in {listed}");
    }
    assert!(listed.contains("... and 16 more (all of them: --json)"), "{listed}");
    let events = run(&arguments("send -i lo --dry-run --json", &[&photos])).expect(0).events();
    let of_kind = |kind| events.iter().filter(|event| event["kind"] == kind).count();
    assert_eq!((of_kind("file"), of_kind("directory"), of_kind("link")), (62, 3, 1));
    let link = events.iter().find(|event| event["kind"] == "link").unwrap();
    assert_eq!((&link["name"], &link["target"]), (&"photos/latest".into(), &"2026/00.jpg".into()));
    let chosen = "send -i lo --dry-run --include 0*.jpg --exclude 09.jpg";
    let listed = run(&arguments(chosen, &[&photos])).expect(0).stdout;
    assert!(listed.contains("would send 9 files, 2 directories, "), "{listed}");
}

#[test]
fn what_cannot_be_sent_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let photos = plant(directory.path());
    let _socket = std::os::unix::net::UnixListener::bind(photos.join("socket")).unwrap();
    let refused = run(&arguments("send -i lo --dry-run", &[&photos])).expect(6).stderr;
    assert!(refused.contains("photos/socket\" is a socket, not a regular file"), "{refused}");
    assert!(refused.contains("exclude it"), "{refused}");
    run(&arguments("send -i lo --dry-run --exclude socket", &[&photos])).expect(0);
    let pattern = run(&arguments("send -i lo --dry-run --include [", &[&photos])).expect(2).stderr;
    assert!(pattern.contains("the pattern \"[\"") && pattern.contains(".gitignore"), "{pattern}");
    run(&arguments("send -i lo --dry-run", &[Path::new("/")])).expect(2);
}

#[test]
fn plain_flute_gets_the_files_of_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let photos = plant(directory.path());
    let sender = Sender::start(&format!("--flute --to {}", place()), &[&photos]);
    let into = directory.path().join("into");
    let receive = format!("recv {} --flute --timeout 20 --json -o", sender.ticket);
    let received = run(&arguments(&receive, &[&into])).expect(0);
    let found = received.events().into_iter().filter(|event| event["event"] == "file_found");
    let names: Vec<_> = found.map(|event| event["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 61, "{names:?}");
    assert!(names.contains(&"photos/2026/07.jpg".to_owned()), "{names:?}");
    assert!(fs::read(into.join("photos/2026/07.jpg")).unwrap() == noise(900, 7));
    sender.finish();
    for format in ["--flute", "--fcast"] {
        let words = format!("send {format} -i lo --dry-run --json");
        let said = run(&arguments(&words, &[&photos])).expect(0);
        let warning = said.event("warning")["message"].clone();
        assert_eq!(warning, "left out: 1 link and 1 empty directory");
    }
}
