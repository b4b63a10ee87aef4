//! The program on a terminal: questions and progress.

use crate::support::{Running, Sender, arguments, fontana, noise, place};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
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
        Self::with_columns(80, words, paths)
    }

    fn with_columns(columns: u16, words: &str, paths: &[&Path]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = || {
            let mut options = File::options();
            options.read(true).write(true).open(name.to_str().unwrap()).unwrap()
        };
        let mut command = fontana();
        // Without a kind of terminal, no progress is drawn.
        command.args(arguments(words, paths)).env("NO_COLOR", "1").env("TERM", "xterm");
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

    fn read_to_end(&mut self) {
        let mut bytes = Vec::new();
        // Reading from a terminal whose other end is closed is an error.
        let _ = self.ours.read_to_end(&mut bytes);
        self.shown.push_str(&String::from_utf8_lossy(&bytes));
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
    let first = Sender::start(&format!("--open --to {place} --rate 10M"), &[&one]);
    let into = directory.path().join("into");
    let mut terminal = Terminal::start(&format!("recv -i lo --group {place} -o"), &[&into]);
    terminal.read_until("1  one  1 file, 20.0 kB  from 127.0.0.1");
    terminal.read_until("which one?");
    let second = Sender::start(&format!("--open --to {place} --rate 10M"), &[&other]);
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
fn what_a_mirror_says_of_itself_is_shown_and_a_person_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (path, into) = (directory.path().join("file"), directory.path().join("into"));
    std::fs::write(&path, noise(20_000, 1)).unwrap();
    let web = arguments("serve --json --listen 127.0.0.1:0", &[&path]);
    let mut server = Running::start(&web);
    let serving: serde_json::Value = serde_json::from_str(&server.line()).unwrap();
    let words = format!("recv http://{}/ -o", serving["listen"].as_str().unwrap());
    for (answer, code) in [("no", 130), ("yes", 0)] {
        let mut terminal = Terminal::start(&words, &[&into]);
        terminal.read_until("file  1 file, 20.0 kB");
        terminal.read_until(serving["manifest"].as_str().unwrap());
        terminal.read_until("not signed");
        terminal.read_until("Receive it?");
        assert!(!into.join("file").exists());
        terminal.type_line(answer);
        terminal.read_to_end();
        terminal.expect(code);
        assert_eq!(into.join("file").exists(), code == 0);
    }
    server.stop();
}

#[test]
fn a_sender_on_a_terminal_shows_its_rate() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, noise(20_000, 1)).unwrap();
    let words = format!("send -i lo --to {} --for 1", place());
    let mut terminal = Terminal::start(&words, &[&path]);
    for text in ["sending 1 file", "fontana recv 'fontana://", "bit/s", "on the wire in"] {
        terminal.read_until(text);
    }
    terminal.expect(0);
}

/// The lines that progress has drawn. A control sequence ends a line.
fn drawn(shown: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = shown;
    while let Some((before, sequence)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        plain.push('\n');
        // A control sequence ends with a letter.
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |end| end + 1);
        rest = &sequence[end..];
    }
    plain.push_str(rest);
    let is_progress = |line: &&str| {
        let shows = line.contains("bit/s") || line.contains("100 %  reception complete");
        shows && !line.contains("sending")
    };
    plain.split(['\r', '\n']).filter(is_progress).map(str::to_owned).collect()
}

#[test]
fn progress_never_wraps() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, noise(2_000_000, 1)).unwrap();
    let words = format!("--to {} --rate 8M", place());
    let sender = Sender::start(&words, &[&path]);
    let receive = format!("recv -i lo {} -o", sender.ticket);
    let send = format!("send -i lo --to {} --rate 8M --push 0", place());
    for columns in [40, 60, 80] {
        let into = directory.path().join(format!("into {columns}"));
        let demo = (columns == 80).then_some(("demo --size 2M", vec![]));
        let cases = [(&*receive, vec![&*into]), (&*send, vec![&*path])].into_iter().chain(demo);
        for (words, paths) in cases {
            let mut terminal = Terminal::with_columns(columns, words, &paths);
            terminal.read_to_end();
            terminal.expect(0);
            let lines = drawn(&terminal.shown);
            assert!(!lines.is_empty(), "{words}: {}", terminal.shown);
            // A line that fits is padded with spaces to the width, and the next one follows.
            let characters: Vec<Vec<char>> =
                lines.iter().map(|line| line.chars().collect()).collect();
            for row in characters.iter().flat_map(|line| line.chunks(columns.into())) {
                let row: String = row.iter().collect();
                assert!(row.trim_end().chars().count() < columns.into(), "{words}: {row:?}");
                assert!(!row.contains("symbols wanted"), "{words}: {row:?}");
            }
        }
    }
    sender.finish();
}
