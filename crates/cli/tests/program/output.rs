//! Standard output that is full, or that is not read: results are part of success, and events stop
//! nothing.

use crate::support::{Running, Sender, arguments, fontana, noise, place, run};
use rustix::fs::{OFlags, fcntl_setfl};
use std::io::{PipeReader, PipeWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Writes to a disk that is full.
fn to_full(command: &mut Command) -> &mut Command {
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
}

/// A pipe that takes nothing more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

/// The exit code of a program that must end within some seconds.
fn ends(child: &mut Child) -> Option<i32> {
    let until = Instant::now() + Duration::from_secs(40);
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    None
}

fn tree(directory: &Path) -> std::path::PathBuf {
    let tree = directory.join("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..100 {
        std::fs::write(tree.join(format!("file-{number}")), noise(1000, number)).unwrap();
    }
    tree
}

#[test]
fn results_that_no_disk_takes_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let sender = Sender::start(&format!("--to {} --rate 20M", place()), &[&tree]);
    // A reception that was interrupted, for the list of `resume`.
    let left = directory.path().join("left");
    std::fs::create_dir_all(left.join(".fontana-0123")).unwrap();
    let [key, second] = ["key", "second"].map(|name| directory.path().join(name));
    for (words, paths) in [
        ("publish --web http://a.example/", &[&*tree][..]),
        ("publish --json --web http://a.example/", &[&*tree]),
        ("send --dry-run", &[&*tree]),
        ("send --dry-run --json", &[&*tree]),
        (&*format!("recv {} -i lo --list", sender.ticket), &[]),
        (&*format!("recv {} -i lo --list --json", sender.ticket), &[]),
        ("resume", &[&*left]),
        ("resume --json", &[&*left]),
        ("keygen", &[&*key]),
        ("completions bash", &[]),
        ("man", &[]),
    ] {
        let ended = fontana_testing::Run::of(to_full(fontana().args(arguments(words, paths))));
        assert_eq!(ended.code, Some(5), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains("cannot write to standard output"), "{}", ended.stderr);
    }
    sender.finish();
    run(&arguments("keygen", &[&second])).expect(0);
}

#[test]
fn a_full_disk_for_events_stops_no_reception_and_is_an_error_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let sender = Sender::start(&format!("--to {} --rate 20M", place()), &[&tree]);
    let into = directory.path().join("into");
    let words = format!("recv {} -i lo --json --timeout 60 -o", sender.ticket);
    let ended =
        fontana_testing::Run::of(to_full(fontana().args(arguments(&words, &[&into])))).expect(5);
    assert_eq!(ended.stderr.matches("cannot write to standard output").count(), 1);
    assert_eq!(std::fs::read_dir(into.join("tree")).unwrap().count(), 100);
    sender.finish();
}

#[test]
fn a_reader_that_takes_nothing_stops_neither_data_nor_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let [ticket, into] = ["ticket", "into"].map(|name| directory.path().join(name));
    let options = format!("send -i lo --to {} --rate 20M --json --push 3000", place());
    let words = format!("{options} --ticket-file {}", ticket.display());
    let (events, writer) = full_pipe();
    let mut sender = fontana()
        .args(arguments(&words, &[&tree]))
        .stdout(writer.try_clone().unwrap())
        .stderr(Stdio::from(writer))
        .spawn()
        .unwrap();
    while !ticket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let words = format!("recv {} -i lo -o", std::fs::read_to_string(&ticket).unwrap().trim());
    run(&arguments(&words, &[&into])).expect(0);
    assert_eq!(ends(&mut sender), Some(5), "its summary was not written");
    drop(events);
}

#[test]
fn a_signal_ends_a_sender_whose_events_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let ticket = directory.path().join("ticket");
    let words = format!("send -i lo --to {} --json --ticket-file {}", place(), ticket.display());
    let (events, writer) = full_pipe();
    let mut sender = fontana().args(arguments(&words, &[&tree])).stdout(writer).spawn().unwrap();
    while !ticket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let process = rustix::process::Pid::from_child(&sender);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(ends(&mut sender), Some(5));
    drop(events);
}

#[test]
fn what_is_read_late_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let words = format!("send -i lo --to {} --push 0 --json", place());
    let sender = Running::start(&arguments(&words, &[&tree]));
    std::thread::sleep(Duration::from_secs(1));
    let ended = sender.wait().expect(0);
    assert_eq!(ended.event("summary")["code"], 0);
}
