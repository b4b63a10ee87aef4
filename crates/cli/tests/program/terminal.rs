//! The program on a terminal: questions and progress.

use crate::support::{Sender, arguments, fontana, noise, place};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;

/// The program with a terminal for all that it reads and writes.
struct Terminal {
    child: Child,
    ours: File,
    shown: String,
}

impl Terminal {
    fn start(words: &str, paths: &[&Path]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = || {
            let mut options = File::options();
            options.read(true).write(true).open(name.to_str().unwrap()).unwrap()
        };
        let mut command = fontana();
        command.args(arguments(words, paths)).env("NO_COLOR", "1");
        let child = command.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
        Self { child, ours: ours.into(), shown: String::new() }
    }

    /// Reads until this text was shown, or to the end.
    fn read_until(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.shown.contains(text) {
            // Reading from a terminal whose other end is closed is an error.
            let Ok(size) = self.ours.read(&mut buffer) else { break };
            self.shown.push_str(&String::from_utf8_lossy(&buffer[..size]));
        }
        assert!(self.shown.contains(text), "{text:?} in {}", self.shown);
    }

    fn type_line(&mut self, line: &str) {
        self.ours.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn expect(&mut self, code: i32) {
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{}", self.shown);
    }
}

#[test]
fn without_a_ticket_it_lists_what_is_there_and_asks() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| {
        let path = directory.path().join(name);
        std::fs::write(&path, noise(20_000, 1)).unwrap();
        path
    });
    let place = place();
    let first = Sender::start(&format!("--to {place} --rate 10M"), &[&one]);
    let into = directory.path().join("into");
    let mut terminal = Terminal::start(&format!("recv -i lo --group {place} -o"), &[&into]);
    terminal.read_until("1  one  1 file, 20.0 kB  from 127.0.0.1");
    terminal.read_until("which one?");
    let second = Sender::start(&format!("--to {place} --rate 10M"), &[&other]);
    terminal.read_until("2  other  1 file");
    terminal.type_line("3");
    terminal.read_until("a number from 1 to 2, or q");
    terminal.type_line("2");
    terminal.read_until("received 1 file, 20.0 kB");
    terminal.expect(0);
    assert!(into.join("other").exists() && !into.join("one").exists());

    let mut terminal = Terminal::start(&format!("recv -i lo --group {place} -o"), &[&into]);
    terminal.read_until("which one?");
    terminal.type_line("q");
    terminal.expect(130);
    first.finish();
    second.finish();
}

#[test]
fn a_sender_on_a_terminal_shows_its_rate() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, noise(20_000, 1)).unwrap();
    let words = format!("send -i lo --to {} --duration 1", place());
    let mut terminal = Terminal::start(&words, &[&path]);
    for text in ["sending 1 file", "fontana recv 'fontana://", "bit/s", "on the wire in"] {
        terminal.read_until(text);
    }
    terminal.expect(0);
}
