//! `send --flute` to a strict receiver of FLUTE in Python, which shares no code with Fontana.

use crate::support::{Sender, noise, place};
use fontana_testing::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/strict_flute.py");
const TSI: &str = "77";
/// Bytes of a symbol.
const SYMBOL: usize = 500;

/// The script with Python; `None` if the host has none.
fn python() -> Option<Command> {
    if !Command::new("python3").arg("-c").arg("").status().is_ok_and(|status| status.success()) {
        skip("there is no python3");
        return None;
    }
    let mut python = Command::new("python3");
    python.arg(SCRIPT);
    Some(python)
}

/// What the strict receiver says of a session of these files, sent with these options.
fn receive(options: &str, files: &[PathBuf], version: &str, into: &Path) -> Option<Output> {
    let mut python = python()?;
    let place = place();
    let (group, port) = place.split_once(':').unwrap();
    let open = if options.contains("--flute") { "" } else { "--open" };
    let words = format!("{options} {open} --symbol-size {SYMBOL} --rate 20M --to {place}/{TSI}");
    let paths: Vec<_> = files.iter().map(PathBuf::as_path).collect();
    let sender = Sender::start(&words, &paths);
    python.args(["--group", group, "--port", port, "--tsi", TSI, "--flute-version", version]);
    let output = python.arg("--into").arg(into).output().unwrap();
    sender.finish();
    Some(output)
}

fn files(directory: &Path, sizes: &[usize]) -> Vec<PathBuf> {
    let write = |&size: &usize| {
        let path = directory.join(format!("file of {size} bytes"));
        std::fs::write(&path, noise(size, size as u64)).unwrap();
        path
    };
    sizes.iter().map(write).collect()
}

fn assert_received(output: &Output, files: &[PathBuf], into: &Path) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in files {
        let received = std::fs::read(into.join(file.file_name().unwrap())).unwrap();
        assert!(received == std::fs::read(file).unwrap(), "{file:?}");
    }
}

fn assert_refused(output: &Output, reason: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains(reason), "{error}");
}

#[test]
fn the_strict_receiver_refuses_what_the_rfcs_forbid() {
    let Some(mut python) = python() else { return };
    let output = python.arg("--self-test").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_strict_receiver_reads_files_of_every_size_and_of_many_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    let sizes = [0, 1, SYMBOL - 1, SYMBOL, SYMBOL + 1, 40 * SYMBOL + 7, 300_001];
    let mut files = files(directory.path(), &sizes);
    let text = directory.path().join("text");
    std::fs::write(&text, "all the world's a stage\n".repeat(50_000)).unwrap();
    files.push(text);
    for (options, version) in [
        ("--flute=2 --fec none", "2"),
        ("--flute=2 --fec none --block-symbols 7", "2"),
        ("--flute=2 --fec none --order sequential --block-symbols 7", "2"),
        ("--flute", "1"),
        ("--flute=2,gzip --fec none", "2"),
        ("--flute=gzip --block-symbols 7", "1"),
    ] {
        let Some(output) = receive(options, &files, version, into.path()) else { return };
        assert_received(&output, &files, into.path());
    }
}

#[test]
fn a_strict_receiver_refuses_another_version_and_a_padded_symbol() {
    let directory = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[SYMBOL + 1]);
    let refuse = |options: &str, version: &str, reason: &str| {
        if let Some(output) = receive(options, &files, version, into.path()) {
            assert_refused(&output, reason);
        }
    };
    refuse("--flute=2 --fec none", "1", "FLUTE version 2, not 1");
    refuse("--flute", "2", "FLUTE version 1, not 2");
    // A session of Fontana has a table, too, and padded symbols.
    refuse("--fec none --block-symbols 7", "2", "has 500 bytes, it must have 1");
}
