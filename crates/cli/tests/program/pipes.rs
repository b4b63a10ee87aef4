//! Standard input and output: content that is sent and received without a file.

use crate::support::{Running, Sender, arguments, assert_says, noise, place, run};
use serde_json::Value;
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
    // Its standard output is a pipe, from which the test would read the stream.
    let words = format!("recv {} -o", sender.ticket);
    let mistaken = Running::start(&arguments(&words, &[&directory.path().join("other")]));
    let words = format!("recv {} --json --to -", sender.ticket);
    let mut piped = Running::start(&arguments(&words, &[]));
    let mut received = Vec::new();
    piped.stdout().read_to_end(&mut received).unwrap();
    let piped = piped.wait().expect(0);
    assert!(received == bytes);
    assert!(piped.stderr.contains("\"verified\":\"signed\""), "{}", piped.stderr);
    assert!(mistaken.wait().expect(0).stderr.contains("add --to -"));
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
    let words = format!("--to {} --rate 10M --block-symbols 100 --wait 0s -", place());
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
        ("send - --manifest m", 2, "--spool"),
        ("send - --name a/b", 6, "no path"),
        ("send - --wait 3receivers", 2, "or for receivers: --wait 3"),
        ("send f --wait 3", 2, "--wait with files"),
        ("send f --rate 9M..1M", 2, "the lowest rate comes first"),
        ("send f --receivers 3 --one-way", 2, "excludes reports"),
        ("send f --receivers 3 --push 0", 2, "sends everything once"),
        ("send f --flute --status-file s", 2, "know no roll calls"),
        ("send - --open --ask --wait 3", 2, "any host could begin the stream"),
        ("send - --receivers 2 --wait 3", 2, "--wait 2"),
        ("send - --open --wait 3 --for 10", 2, "waits for no receivers"),
        ("send - --ask --wait 3s --for 10", 2, "waits for no receivers"),
        ("send - --wait 0 --for 10", 2, "waits for no receivers"),
    ] {
        let run = run(&arguments(words, &[])).expect(code);
        assert!(run.stderr.contains(expected), "{words}: {}", run.stderr);
    }
}

/// The sender of a stream with these options and `--json`, and its first event.
fn reporting(words: &str, input: File) -> (Running, Value) {
    let words = format!("send -i lo --json --to {} {words} -", place());
    let mut running = Running::start_with(input.into(), &arguments(&words, &[]));
    let stream = serde_json::from_str(&running.line()).unwrap();
    (running, stream)
}

#[test]
fn a_stream_waits_for_two_receivers_and_repairs_what_they_lack() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = noise(20_000_000, 7);
    let input = directory.path().join("input");
    std::fs::write(&input, &bytes).unwrap();
    let key = directory.path().join("key");
    run(&arguments("keygen --group", &[&key])).expect(0);
    let key = key.display();
    let words = format!(
        "--rate 40M --block-symbols 500 --wait 2 --receivers 2 --for 100 \
         --group-key {key}"
    );
    let (sender, stream) = reporting(&words, File::open(&input).unwrap());
    assert_eq!((&stream["event"], &stream["wait_receivers"]), (&"stream".into(), &2.into()));
    let ticket = stream["ticket"].as_str().unwrap();
    let receivers = ["first", "second"].map(|name| {
        let words = format!(
            "recv {ticket} --json --label {name} --group-key {key} FONTANA_SIMULATE_LOSS=2 --to -"
        );
        Running::start(&arguments(&words, &[]))
    });
    for mut receiver in receivers {
        let mut received = Vec::new();
        receiver.stdout().read_to_end(&mut received).unwrap();
        receiver.wait().expect(0);
        assert!(received == bytes);
    }
    let run = sender.wait().expect(0);
    let known = |event: &Value| (event["event"] == "awaited").then(|| event["known"].as_u64());
    let known: Vec<_> = run.events().iter().filter_map(known).flatten().collect();
    assert_eq!((known.first(), known.last()), (Some(&0), Some(&2)), "{known:?}");
    let summary = run.event("summary");
    let [source, repair] = ["source_symbols", "repair_symbols"].map(|name| summary[name].as_u64());
    let share = repair.unwrap() as f64 / source.unwrap() as f64;
    // The fixed share is a quarter at this length.
    println!("{share:.3} of the source symbols were repaired");
    assert!((0.015..0.1).contains(&share), "{summary}");
    let last = run.events().into_iter().rfind(|event| event["event"] == "roll_call").unwrap();
    assert_eq!((&last["complete"], &last["failed"]), (&2.into(), &0.into()), "{last}");
}

/// Two commands without options that concern losses. Where too little arrives, neither side says
/// that the stream was received.
#[test]
fn a_stream_at_a_loss_of_thirty_per_cent_is_received_and_at_seventy_it_is_9() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = noise(3_000_000, 9);
    let input = directory.path().join("input");
    std::fs::write(&input, &bytes).unwrap();
    for (loss, sent, received) in [(30, 0, 0), (70, 9, 3)] {
        let (sender, stream) = reporting("--rate 20M", File::open(&input).unwrap());
        let words = format!("FONTANA_SIMULATE_LOSS={loss} --timeout 60 --to");
        let words = format!("recv {} --json {words}", stream["ticket"].as_str().unwrap());
        let into = directory.path().join("into");
        run(&arguments(&words, &[&into])).expect(received);
        assert_eq!(received == 0, std::fs::read(&into).is_ok_and(|it| it == bytes), "{loss} %");
        let run = sender.wait().expect(sent);
        assert_eq!(run.event("summary")["code"], sent, "{}", run.stdout);
        let _ = std::fs::remove_file(&into);
    }
}

#[test]
fn a_stream_whose_receivers_do_not_come_ends_at_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input");
    std::fs::write(&input, noise(1_000_000, 8)).unwrap();
    let words = "--ask --wait 3 --for 1 --trust-reports";
    let (sender, stream) = reporting(words, File::open(&input).unwrap());
    // It is told that the stream is broken, and does not count, as it says nothing.
    let words = format!("recv {} --one-way --to -", stream["ticket"].as_str().unwrap());
    let receiver = Running::start(&arguments(&words, &[]));
    let run = sender.wait().expect(9);
    assert_says(&run, "waited for 3 receivers, and 0 have reported", "--for");
    let summary = run.event("summary");
    assert_eq!(summary["verdict"], "receivers_incomplete");
    assert_eq!(summary["source_symbols"], 0);
    let awaited = run.event("awaited");
    assert_eq!((&awaited["receivers"], &awaited["known"]), (&3.into(), &0.into()));
    let run = receiver.wait().expect(3);
    assert!(run.stderr.contains("the sender broke the stream off"), "{}", run.stderr);
}
