//! Standard input and output: content that is sent and received without a file.

use crate::support::{Running, Sender, arguments, noise, place, run};
use std::fs::File;
use std::io::Read;

#[test]
fn standard_input_is_spooled_and_comes_out_of_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = noise(3_000_000, 1);
    let input = directory.path().join("input");
    std::fs::write(&input, &bytes).unwrap();
    let spool = directory.path().to_str().unwrap();
    let words = format!("--to {} --rate 80M --spool={spool} --name dump -", place());
    let sender = Sender::start_with(File::open(&input).unwrap().into(), &words, &[]);

    let staging = directory.path().join("staging");
    let words = format!("recv {} --to - --json --staging", sender.ticket);
    let mut receiver = Running::start(&arguments(&words, &[&staging]));
    let mut received = Vec::new();
    receiver.stdout().read_to_end(&mut received).unwrap();
    let run = receiver.wait().expect(0);
    assert!(received == bytes, "standard output carries the bytes and nothing else");
    assert!(run.stderr.lines().any(|line| line.contains("\"event\":\"summary\"")));
    assert_eq!(std::fs::read_dir(&staging).unwrap().count(), 0, "nothing is left in staging");

    let into = directory.path().join("into");
    let words = format!("recv {} -o", sender.ticket);
    crate::support::run(&arguments(&words, &[&into])).expect(0);
    assert!(std::fs::read(into.join("dump")).unwrap() == bytes);
    sender.finish();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3, "the spool has no name");
}

#[test]
fn two_files_do_not_go_into_one_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["a", "b"].map(|name| directory.path().join(name));
    files
        .iter()
        .for_each(|file| std::fs::write(file, file.as_os_str().as_encoded_bytes()).unwrap());
    let sender = Sender::start(&format!("--to {}", place()), &[&files[0], &files[1]]);
    let run = run(&arguments(&format!("recv {} --to -", sender.ticket), &[])).expect(2);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("the session has 2 files"), "{}", run.stderr);
    assert!(run.stderr.contains("receive into a directory"), "{}", run.stderr);
    sender.finish();
}

#[test]
fn a_consumer_that_has_had_enough_ends_the_receiver_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, noise(3_000_000, 2)).unwrap();
    let sender = Sender::start(&format!("--to {} --rate 80M", place()), &[&file]);
    let words = format!("recv {} --to -", sender.ticket);
    let run = Running::start(&arguments(&words, &[])).hang_up();
    assert_eq!(run.code, Some(130));
    assert!(!run.stderr.contains("error"), "{}", run.stderr);
    sender.finish();
}

#[test]
fn what_makes_no_sense_with_standard_input_is_said() {
    for (words, expected) in
        [("send - -", "beside other files"), ("send f --spool", "without anything to spool")]
    {
        let run = run(&arguments(words, &[])).expect(2);
        assert!(run.stderr.contains(expected), "{words}: {}", run.stderr);
    }
}

/// Starts a stream that is announced for a moment. Returns the ticket.
fn stream(words: &str, input: &std::path::Path) -> Sender {
    let words = format!("--to {} --wait 1500ms {words} -", place());
    Sender::start_with(File::open(input).unwrap().into(), &words, &[])
}

#[test]
fn a_stream_goes_from_a_program_into_programs_and_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = noise(5_000_000, 5);
    let input = directory.path().join("input");
    std::fs::write(&input, &bytes).unwrap();
    let sender = stream("--rate 80M --name dump", &input);
    let into = directory.path().join("into");
    let words = format!("recv {} --json -o", sender.ticket);
    let filed = Running::start(&arguments(&words, &[&into]));
    let words = format!("recv {} --json --to -", sender.ticket);
    let mut piped = Running::start(&arguments(&words, &[]));
    let mut received = Vec::new();
    piped.stdout().read_to_end(&mut received).unwrap();
    let piped = piped.wait().expect(0);
    assert!(received == bytes);
    assert!(piped.stderr.contains("\"verified\":\"signed\""), "{}", piped.stderr);
    let filed = filed.wait().expect(0);
    assert_eq!(filed.event("stream_accepted")["name"], "dump");
    assert_eq!(filed.event("summary")["bytes"], 5_000_000);
    assert!(std::fs::read(into.join("dump")).unwrap() == bytes);
    sender.into_running().wait().expect(0);
}

#[test]
fn a_receiver_that_comes_too_late_for_a_stream_is_told_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input");
    std::fs::write(&input, noise(3_000_000, 6)).unwrap();
    let words = format!("--to {} --rate 10M --block-symbols 100 -", place());
    let sender = Sender::start_with(File::open(&input).unwrap().into(), &words, &[]);
    std::thread::sleep(std::time::Duration::from_millis(1800));
    let run = run(&arguments(&format!("recv {} --to -", sender.ticket), &[])).expect(3);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("had begun before this receiver came"), "{}", run.stderr);
    assert!(run.stderr.contains("--wait"), "{}", run.stderr);
    sender.finish();
}

#[test]
fn a_stream_refuses_what_needs_its_end_and_a_name_that_is_a_path() {
    for (words, code, expected) in [
        ("send - --push 10", 2, "--push with a stream"),
        ("send - --manifest m", 2, "--spool"),
        ("send - --name a/b", 6, "no path"),
        ("send - --wait 3receivers", 2, "cannot be counted"),
        ("send f --wait 3", 2, "--wait with files"),
    ] {
        let run = run(&arguments(words, &[])).expect(code);
        assert!(run.stderr.contains(expected), "{words}: {}", run.stderr);
    }
}
