//! A system without free threads: the program reports it and ends, whichever thread failed.

use crate::support::{Run, Sender, arguments, assert_says, noise, place, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Address space of a thread's stack. A limit on the whole address space is then a limit on the
/// number of threads. It applies to root and needs no privilege.
const STACK_BYTES: u64 = 1 << 30;
/// Address space for everything else, which takes less than that and more than nothing: a smaller
/// limit is refused.
const OTHER_BYTES: u64 = 640 << 20;
/// More threads than any command starts: five times four workers, and a few others.
const MANY_THREADS: u64 = 32;

/// Runs the program with a limit on threads. If it hangs, the exit code is 124.
fn run_with_threads(program: &Path, threads: u64, arguments: &[String], stdin: &[u8]) -> Run {
    let kibibytes = (threads * STACK_BYTES + OTHER_BYTES) >> 10;
    let limited = format!("ulimit -v {kibibytes}; exec timeout -s KILL 60 \"$0\" \"$@\"");
    let input = tempfile::NamedTempFile::new().unwrap();
    fs::write(&input, stdin).unwrap();
    let output = Command::new("sh")
        .args(["-c", &limited])
        .arg(program)
        .args(arguments)
        .env("RUST_MIN_STACK", STACK_BYTES.to_string())
        // Arenas of threads would each take address space for one.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(fs::File::open(input.path()).map_or_else(|_| Stdio::null(), Stdio::from))
        .output()
        .unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn fails_until_there_are_threads(command: impl Fn(u64) -> Vec<String>, stdin: &[u8]) -> u64 {
    program_fails_until_there_are_threads(env!("CARGO_BIN_EXE_fontana").as_ref(), command, stdin)
}

/// Runs a command with no thread but the first, then with one more each time, until it succeeds.
/// Every earlier run has to end with the error. Returns the number of threads of the successful
/// run.
fn program_fails_until_there_are_threads(
    program: &Path,
    command: impl Fn(u64) -> Vec<String>,
    stdin: &[u8],
) -> u64 {
    for threads in 0..MANY_THREADS {
        let ended = run_with_threads(program, threads, &command(threads), stdin);
        let said = &ended.stderr;
        assert!(!said.contains("panicked"), "{threads} threads: {said}");
        if ended.code == Some(0) {
            println!("{threads} threads are enough");
            return threads;
        }
        assert_eq!(ended.code, Some(5), "{threads} threads: {said}\n{}", ended.stdout);
        assert!(said.contains("error: cannot start "), "{threads} threads: {said}");
    }
    panic!("{MANY_THREADS} threads are not enough");
}

/// A file of several blocks, so that every worker has something to do.
fn file(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("file");
    fs::write(&path, noise(3_000_000, 1)).unwrap();
    path
}

#[test]
fn a_sender_without_threads_ends_with_5() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path());
    let words = format!("send -i lo --to {} --push 0 --memory 32M --block-symbols 300", place());
    let enough = fails_until_there_are_threads(|_| arguments(&words, &[&path]), b"");
    // Signals, and at least one worker.
    assert!(enough >= 2, "{enough}");
}

#[test]
fn a_sender_of_a_stream_without_threads_ends_with_5() {
    let words = format!("send - -i lo --to {} --memory 32M --one-way", place());
    let enough = fails_until_there_are_threads(|_| arguments(&words, &[]), b"a stream");
    // Signals, and cutting: the reading thread may have ended before that one is started.
    assert!(enough >= 2, "{enough}");
}

#[test]
fn a_sender_of_a_directory_without_threads_ends_with_5() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    run(&["keygen", key.to_str().unwrap()]).expect(0);
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    file(&folder);
    let watch = "--watch=100ms --for 2 --memory 32M --block-symbols 300";
    let words = format!("send -i lo --to {} {watch} --sign {}", place(), key.display());
    let enough = fails_until_there_are_threads(|_| arguments(&words, &[&folder]), b"");
    // Signals, changes, versions, and at least one worker.
    assert!(enough >= 4, "{enough}");
}

#[test]
fn a_receiver_without_threads_ends_with_5() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path());
    let sender = Sender::start(&format!("--to {} --block-symbols 300", place()), &[&path]);
    let into = |threads: u64| directory.path().join(format!("with {threads} threads"));
    let receive = |options: &'static str| {
        let words = format!("recv {} --memory 32M --timeout 30 {options}", sender.ticket);
        move |threads| {
            let into = into(threads);
            fs::create_dir_all(&into).unwrap();
            // All blocks but the last agree with the existing file.
            let mut there = noise(3_000_000, 1);
            there[2_999_999] ^= 1;
            fs::write(into.join("file"), there).unwrap();
            arguments(&words, &[&into])
        }
    };
    // Signals, receiving, syncing, the disk, and at least one worker and solver.
    for way in ["--existing replace -o", "--to - --staging"] {
        let enough = fails_until_there_are_threads(receive(way), b"");
        assert!(enough >= 6, "{way}: {enough}");
    }
    sender.finish();
}

/// It is interrupted when it serves.
#[test]
fn a_server_without_threads_ends_with_5() {
    let directory = tempfile::tempdir().unwrap();
    let mut words = arguments("--preserve-status -s INT 5", &[]);
    words.push(env!("CARGO_BIN_EXE_fontana").to_owned());
    words.extend(arguments("serve --listen 127.0.0.1:0", &[&file(directory.path())]));
    for threads in 0..MANY_THREADS {
        let Run { code, stderr, .. } = run_with_threads("timeout".as_ref(), threads, &words, b"");
        assert!(!stderr.contains("panicked"), "{threads} threads: {stderr}");
        if code == Some(130) {
            // Signals, the server, and those that connect, read and compute.
            assert!(threads >= 10, "{threads}");
            return;
        }
        assert_eq!(code, Some(5), "{threads} threads: {stderr}");
        assert!(stderr.contains("error: cannot start "), "{threads} threads: {stderr}");
    }
    panic!("{MANY_THREADS} threads are not enough");
}

#[test]
fn the_lab_without_threads_ends_with_5() {
    let lab = fontana_testing::program("fontana-lab");
    for words in ["run ms.series --quick", "swarm --seeds 2"] {
        let command = |_| arguments(words, &[]);
        let enough = program_fails_until_there_are_threads(&lab, command, b"");
        assert!(enough >= 1, "{words}: {enough}");
    }
}

#[test]
fn an_address_space_that_is_too_small_is_5_with_the_figure() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path());
    let sender = Sender::start(&format!("--to {} --block-symbols 300", place()), &[&path]);
    let receive = |kibibytes: u64| {
        let limited = format!("ulimit -v {kibibytes}; exec \"$0\" \"$@\"");
        let words =
            format!("recv {} --memory 64M --existing replace --timeout 30 -o", sender.ticket);
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_fontana")]);
        Run::of(command.args(arguments(&words, &[&directory.path().join("into")])))
    };
    let refused = receive(200_000).expect(5);
    assert_says(&refused, "address space is limited to", "ulimit -v ");
    let figure = refused.stderr.split("ulimit -v ").nth(1).unwrap();
    let figure: u64 = figure.split_whitespace().next().unwrap().parse().unwrap();
    receive(figure - 1).expect(5);
    for _ in 0..5 {
        receive(figure).expect(0);
    }
    sender.finish();
}
