//! Receptions that end before everything is complete: what is complete is there.

use crate::support::{Run, Sender, arguments, noise, run};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FILES: u64 = 40;
/// More than the least run of a manifest. Ten of them are a block.
const LENGTH: usize = 70_000;
const OF_LARGE: usize = 1_000_000;

/// A directory with a large file, which is an object, and small ones, which share one.
fn tree(directory: &Path) -> std::path::PathBuf {
    let tree = directory.join("d");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..FILES {
        std::fs::write(tree.join(format!("{number:02}")), noise(LENGTH, number)).unwrap();
    }
    std::fs::write(tree.join("large"), noise(OF_LARGE, 99)).unwrap();
    std::fs::write(tree.join("none"), "").unwrap();
    tree
}

/// The files that have their names, with the right bytes.
fn named(into: &Path) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(into.join("d")) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in found {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = match name.parse::<u64>() {
            Ok(number) => noise(LENGTH, number),
            Err(_) if name == "large" => noise(OF_LARGE, 99),
            Err(_) => Vec::new(),
        };
        assert!(std::fs::read(&path).unwrap() == expected, "{name}");
        names.push(name);
    }
    names.sort();
    names
}

/// The first packets of a sender of a tree: all source symbols are among them.
struct Recording {
    packets: Vec<Vec<u8>>,
    port: u16,
    ticket: String,
}

impl Recording {
    fn of(tree: &Path) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let words = format!("--to 127.0.0.1:{port} --rate 40M --symbol-size 1400");
        let sender = Sender::start(&format!("{words} --open --block-symbols 500"), &[tree]);
        let mut buffer = [0; 2048];
        let mut receive = || {
            let length = socket.recv(&mut buffer).unwrap();
            buffer[..length].to_vec()
        };
        let packets = (0..4_000).map(|_| receive()).collect();
        let ticket = sender.ticket.clone();
        sender.finish();
        Self { packets, port, ticket }
    }

    /// Receives what is sent again and again. Of the object of the small files only the first
    /// `most` source symbols of each block are sent.
    fn receive(&self, words: &str, into: &Path, most: u32) -> Run {
        let is_sent = |packet: &&Vec<u8>| {
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
            word(12) != 2 || word(16) & 0xFF_FFFF < most
        };
        let packets: Vec<_> = self.packets.iter().filter(is_sent).collect();
        let (is_over, socket) = (AtomicBool::new(false), UdpSocket::bind("127.0.0.1:0").unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for burst in packets.chunks(20).cycle() {
                    // Refused before and after the reception.
                    burst.iter().for_each(|packet| {
                        let _ = socket.send_to(packet, ("127.0.0.1", self.port));
                    });
                    std::thread::sleep(Duration::from_millis(3));
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let words = format!("recv {} -i lo {words} -o", self.ticket);
            let received = run(&arguments(&words, &[into]));
            is_over.store(true, Ordering::Relaxed);
            received
        })
    }
}

fn lacking(run: &Run) -> Vec<String> {
    let events = run.events().into_iter().filter(|event| event["event"] == "lacking");
    events.map(|event| event["only"].as_str().unwrap().to_owned()).collect()
}

/// The first five of ten small files in each block, and those after them.
fn halves() -> [Vec<String>; 2] {
    [0..5, 5..10].map(|half| {
        let is_in = |number: &u64| half.contains(&(number % 10));
        (0..FILES).filter(is_in).map(|number| format!("{number:02}")).collect()
    })
}

#[test]
fn what_is_complete_is_given_and_the_same_command_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let recording = Recording::of(&tree(directory.path()));
    let into = directory.path().join("into");
    let [first, second] = halves();
    // Each block has 500 symbols of 1400 bytes.
    let received = recording.receive("--json --timeout 3", &into, 250).expect(3);
    assert_eq!(named(&into), [&first[..], &["large".into(), "none".into()]].concat());
    let paths: Vec<_> = second.iter().map(|name| format!("/d/{name}")).collect();
    assert_eq!(lacking(&received), paths);

    // One more in each block; what was given stays.
    let time = |name: &str| std::fs::metadata(into.join("d").join(name)).unwrap();
    let inode = |name: &str| std::os::unix::fs::MetadataExt::ino(&time(name));
    let before = inode("00");
    let received = recording.receive("--timeout 2", &into, 300).expect(3);
    let said = "26 of 42 files have their names; bytes are missing of: --only '/d/06' --only";
    assert!(received.stderr.contains(said), "{}", received.stderr);
    assert_eq!((named(&into).len(), inode("00")), (26, before));

    let received = recording.receive("--json --timeout 30", &into, u32::MAX).expect(0);
    assert!(lacking(&received).is_empty());
    assert_eq!(named(&into).len(), 42);
    let left = std::fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["d"], "nothing of our own");
}

#[test]
fn what_the_user_has_written_meanwhile_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let recording = Recording::of(&tree(directory.path()));
    let into = directory.path().join("into");
    recording.receive("--timeout 3", &into, 250).expect(3);
    let [changed, removed] = ["00", "01"].map(|name| into.join("d").join(name));
    std::fs::write(&changed, "mine").unwrap();
    std::fs::remove_file(&removed).unwrap();
    let received = recording.receive("--timeout 30", &into, u32::MAX).expect(6);
    assert!(received.stderr.contains("d/00\" exists already"), "{}", received.stderr);
    assert_eq!(std::fs::read(&changed).unwrap(), b"mine");
    std::fs::remove_file(&changed).unwrap();
    assert_eq!(named(&into).len(), 41);
}

#[test]
fn all_or_nothing_gives_no_name_before_everything_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let recording = Recording::of(&tree(directory.path()));
    let into = directory.path().join("into");
    let received = recording.receive("--all-or-nothing --timeout 3", &into, 250).expect(3);
    assert_eq!(named(&into), [""; 0]);
    assert!(received.stderr.contains("0 of 42 files have"), "{}", received.stderr);
    let words = "--all-or-nothing --json --timeout 2";
    assert_eq!(lacking(&recording.receive(words, &into, 250).expect(3)).len(), 20);
    assert_eq!(named(&into), [""; 0], "nor does the next run");
    recording.receive("--all-or-nothing --timeout 30", &into, u32::MAX).expect(0);
    assert_eq!(named(&into).len(), 42);
}
