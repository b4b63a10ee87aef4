//! Following a publisher with `recv --watch`: messages and exit codes.

use crate::support::{Running, Sender, arguments, noise, place, run, without_port};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A key, and a directory with one file.
fn plant(directory: &Path) -> (String, std::path::PathBuf) {
    let key = directory.join("key");
    run(&["keygen", key.to_str().unwrap()]).expect(0);
    let folder = directory.join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("image"), noise(200_000, 1)).unwrap();
    (key.to_str().unwrap().to_owned(), folder)
}

#[test]
fn versions_are_taken_as_they_come_and_old_ones_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let (key, folder) = plant(directory.path());
    let (place, into) = (place(), directory.path().join("into"));
    let send = |version: u32| {
        Sender::start(&format!("--to {place} --sign {key} --content-version {version}"), &[&folder])
    };
    let sender = send(7);
    let ticket = sender.ticket.clone();
    let watch = format!("recv {ticket} --watch --json -o");
    let mut watching = Running::start(&arguments(&watch, &[&into]));
    let await_event = |watching: &mut Running, name: &str| loop {
        let event: serde_json::Value = serde_json::from_str(&watching.line()).unwrap();
        if event["event"] == name {
            return event;
        }
    };
    assert_eq!(await_event(&mut watching, "taken")["version"], 7);
    await_event(&mut watching, "waiting");
    sender.finish();
    fs::write(folder.join("image"), noise(200_000, 2)).unwrap();
    let sender = send(8);
    assert_eq!(await_event(&mut watching, "taken")["version"], 8);
    assert!(fs::read(into.join("folder/image")).unwrap() == noise(200_000, 2));
    let ended = watching.stop().expect(0);
    assert_eq!(ended.event("summary")["verdict"], "complete", "{}", ended.stdout);
    sender.finish();

    let sender = send(7);
    let older = format!("recv {} --timeout 1 -o", sender.ticket);
    let refused = run(&arguments(&older, &[&into])).expect(7).stderr;
    assert!(refused.contains("is older than what this directory has had"), "{refused}");
    assert!(refused.contains("--accept old"), "{refused}");
    let any = format!("recv {} --timeout 20 --accept old --existing replace -o", sender.ticket);
    run(&arguments(&any, &[&into])).expect(0);
    sender.finish();
}

#[test]
fn following_nobody_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let refused = run(&arguments("recv --watch -i lo -o", &[directory.path()])).expect(2).stderr;
    assert!(refused.contains("needs the publisher's key"), "{refused}");
    assert!(refused.contains("fontana keygen") && refused.contains("--key"), "{refused}");
    let (key, folder) = plant(directory.path());
    let sender = Sender::start(&format!("--to {} --sign {key}", place()), &[&folder]);
    let other = fontana::generate_key().unwrap().public_key();
    let words = format!("recv {} --key {other} -o", sender.ticket);
    let refused = run(&arguments(&words, &[directory.path()])).expect(2).stderr;
    assert!(refused.contains("--key is another one"), "{refused}");
    let named = sender.ticket.split("key=").nth(1).unwrap().split('&').next().unwrap();
    let mark = directory.path().join(format!(".fontana-mark-{named}"));
    fs::write(&mark, "nonsense").unwrap();
    let words = format!("recv {} -o", sender.ticket);
    let refused = run(&arguments(&words, &[directory.path()])).expect(7).stderr;
    assert!(refused.contains("which versions are old is not known"), "{refused}");
    assert!(refused.contains("remove the file"), "{refused}");
    sender.finish();
}

#[test]
fn a_folder_is_sent_as_it_changes_under_one_ticket() {
    let directory = tempfile::tempdir().unwrap();
    let (key, folder) = plant(directory.path());
    let words = format!("--watch=300ms --rate 20M --to {} --sign {key}", place());
    let sender = Sender::start(&words, &[&folder]);
    assert!(sender.ticket.contains("key=") && !sender.ticket.contains("manifest="));
    // Programs get the same ticket, but for the port, which the first sender has.
    let mut json = Running::start(&arguments(&format!("send -i lo --json {words}"), &[&folder]));
    let session: serde_json::Value = serde_json::from_str(&json.line()).unwrap();
    assert_eq!(session["event"], "session");
    let ticket = session["ticket"].as_str().unwrap();
    assert_eq!(without_port(ticket), without_port(&sender.ticket));
    json.stop();
    let into = directory.path().join("into");
    let audit = directory.path().join("audit");
    let watch = format!("recv {} --watch=2", sender.ticket);
    let watch = format!("{watch} --audit {} --json -o", audit.display());
    let mut line = arguments(&watch, &[&into]);
    // The first version that is taken leads to the next one.
    let more = folder.join("more").display().to_string();
    let script = format!("test -e {more} || echo $FONTANA_VERSION > {more}");
    line.extend(["--exec", "sh", "-c", &script].map(str::to_owned));
    let ended = run(&line).expect(0);
    let taken: Vec<_> = ended.events().into_iter().filter(|e| e["event"] == "taken").collect();
    let version = |index: usize| taken[index]["version"].as_u64().unwrap();
    assert!(version(1) > version(0), "{taken:?}");
    let more = fs::read_to_string(into.join("folder/more")).unwrap();
    assert_eq!(more.trim(), version(0).to_string());
    // Each version names what it brought, and the file that stays is not named again.
    let lines = fs::read_to_string(&audit).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<_> = lines.iter().map(|l| (l["event"].as_str(), l["name"].as_str())).collect();
    let file = |name| (Some("file"), Some(name));
    let version_line = (Some("version"), None);
    assert_eq!(said, [file("folder/image"), version_line, file("folder/more"), version_line]);
    assert_eq!(lines[3]["version"].as_u64(), Some(version(1)));
    assert_eq!(lines[0]["bytes"].as_u64(), Some(200_000));
    assert!(lines[0]["blake3"].as_str().is_some_and(|hash| hash.len() == 64));
    sender.finish();

    // Without a key of the user it has one of its own, also after a restart.
    let words = format!("--watch --to {}", place());
    let with_slash = folder.join("");
    let [first, second] = [&folder, &with_slash].map(|folder| {
        let sender = Sender::start(&words, &[folder]);
        let ticket = sender.ticket.clone();
        sender.finish();
        ticket
    });
    assert_eq!(without_port(&first), without_port(&second));
    assert!(first.contains("key=") && !first.contains(ticket.split('&').next().unwrap()));

    let refused =
        run(&arguments(&format!("send -i lo --watch --sign {key} -"), &[])).expect(2).stderr;
    assert!(refused.contains("--watch is for directories"), "{refused}");
    let missing = directory.path().join("missing");
    run(&arguments(&format!("send -i lo --watch --sign {key}"), &[&missing])).expect(6);
}

/// A sender of one version counts who follows its publisher.
#[test]
fn a_follower_reports_to_a_sender_of_one_version() {
    let directory = tempfile::tempdir().unwrap();
    let (key, folder) = plant(directory.path());
    for words in [String::new(), format!("--sign {key} --content-version 5")] {
        let words = format!("--rate 20M --to {} --receivers 1 {words}", place());
        let sender = Sender::start(&words, &[&folder]);
        let into = tempfile::tempdir().unwrap();
        let watch = format!("recv {} --watch=1 -o", sender.ticket);
        run(&arguments(&watch, &[into.path()])).expect(0);
        sender.into_running().wait().expect(0);
    }
}

#[test]
fn a_folder_whose_version_is_sent_waits_idly_and_ends_when_the_time_is_up() {
    let directory = tempfile::tempdir().unwrap();
    let (key, folder) = plant(directory.path());
    let words = format!("send --to {} --sign {key} --watch=100ms --push 10", place());
    let mut sending = Running::start(&arguments(&format!("{words} --for 4"), &[&folder]));
    sending.line(); // the ticket
    std::thread::sleep(Duration::from_millis(1_500));
    let before = sending.processor_time();
    std::thread::sleep(Duration::from_millis(1_500));
    let used = sending.processor_time() - before;
    assert!(used < Duration::from_millis(100), "{used:?}");
    sending.wait().expect(0);
}

/// As beside a key on a read-only file system: what cannot be kept is said, and versions are sent.
#[test]
fn a_version_that_cannot_be_kept_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let (key, folder) = plant(directory.path());
    fs::create_dir(format!("{key}.version")).unwrap();
    let words = format!("--watch=300ms --rate 20M --to {} --sign {key}", place());
    let sender = Sender::start(&words, &[&folder]);
    let into = directory.path().join("into");
    run(&arguments(&format!("recv {} --watch=1 -o", sender.ticket), &[&into])).expect(0);
    let told = sender.into_running().stop().stderr;
    assert_eq!(told.matches("the highest version cannot be kept in").count(), 1, "{told}");
}

/// The clock of the first publisher was an hour ahead.
#[test]
fn versions_go_on_above_the_highest_of_the_key_and_older_ones_are_ignored_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let (key, folder) = plant(directory.path());
    let (kept, into) = (format!("{key}.version"), directory.path().join("into"));
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let ahead = (now + Duration::from_secs(3_600)).as_millis();
    fs::write(&kept, format!("{ahead}\n")).unwrap();
    let words = format!("--watch=300ms --rate 20M --to {} --sign {key}", place());
    let sender = Sender::start(&words, &[&folder]);
    let watch = format!("recv {} --watch=1 -o", sender.ticket);
    let told = run(&arguments(&watch, &[&into])).expect(0).stderr;
    assert!(told.contains(&format!("version {}: ", ahead + 1)), "{told}");
    let told = sender.into_running().stop().stderr;
    assert!(told.contains("59 min") && told.contains("ahead of this host's clock"), "{told}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), format!("{:020}\n", ahead + 1));

    // What the user chooses is not raised, and said.
    let words = format!("--to {} --sign {key} --content-version 7", place());
    let told = Sender::start(&words, &[&folder]).into_running().stop().stderr;
    assert!(told.contains(&format!("--content-version {}", ahead + 2)), "{told}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), format!("{:020}\n", ahead + 1));

    // Without the file, the next versions are older.
    fs::remove_file(&kept).unwrap();
    let sender = Sender::start(&words.replace("--content-version 7", "--watch"), &[&folder]);
    let watch = format!("recv {} --watch --timeout 3 -o", sender.ticket);
    let told = run(&arguments(&watch, &[&into])).stderr;
    let ignored = format!("is ignored: this directory has had version {} of", ahead + 1);
    assert!(told.contains(&ignored) && told.contains("59 min"), "{told}");
    assert!(told.contains("KEYFILE.version"), "{told}");
    sender.finish();
}
