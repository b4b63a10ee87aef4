//! Directory trees over loopback multicast: the received tree equals the sent one.

use fontana::wire::{Entry, Manifest, Segment, Ticket};
use fontana::{
    Addressing, Filter, FontanaReception, Outcome, Rate, ReceiveEvent, ReceiveFormat,
    ReceiveReport, Receiver, ReceiverBuilder, Sender, SenderBuilder, SimulatedLoss,
};
use fontana_testing::noise;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod folder;
mod parts;
mod skipping;
mod watching;

/// A lock: the disk load of one test must not cause losses in another.
static TURN: Mutex<()> = Mutex::new(());

/// A group and port that no other test of this process uses.
fn addressing(test: u8) -> Addressing {
    let group = Ipv4Addr::new(239, 255, 92, test);
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

struct Sending {
    ticket: Ticket,
    manifest: Manifest,
    sender: Sender,
}

impl Sending {
    fn start(options: SenderBuilder) -> Self {
        let sender = options.start().unwrap();
        let description = sender.description();
        let (ticket, manifest) = (description.ticket.clone(), description.manifest.clone());
        Self { ticket, manifest, sender }
    }

    fn end(self) {
        self.sender.stop();
        assert_eq!(self.sender.join().unwrap().outcome, Outcome::Interrupted);
    }
}

fn send_options(paths: Vec<PathBuf>, addressing: &Addressing) -> SenderBuilder {
    Sender::builder(paths).addressing(addressing.clone()).rate(Rate::bytes_per_second(8_000_000))
}

fn receive_options(ticket: &Ticket, addressing: &Addressing, into: &Path) -> ReceiverBuilder {
    Receiver::from_ticket(ticket)
        .into_dir(into)
        .addressing(addressing.clone())
        // Longer than any takes, also on a busy host.
        .timeout(Some(Duration::from_secs(240)))
}

/// Receives, and passes every event to `observe`, which returns whether to stop.
fn receive_until(
    options: ReceiverBuilder,
    mut observe: impl FnMut(ReceiveEvent) -> bool,
) -> ReceiveReport {
    let receiver = options.start().unwrap();
    for event in receiver.events() {
        if observe(event) {
            receiver.stop();
        }
    }
    receiver.join().unwrap()
}

fn receive(options: ReceiverBuilder) -> ReceiveReport {
    receive_what_is_missing(options).0
}

/// The report, and the number of source symbols that had to be received. At least this many were
/// received; how many more arrive before the existing files are compared depends on the machine.
fn receive_what_is_missing(options: ReceiverBuilder) -> (ReceiveReport, u64) {
    let mut kept = 0;
    let summary = receive_until(options, |event| {
        if let ReceiveEvent::Resumed { symbols, .. } = event {
            kept = symbols;
        }
        false
    });
    let missing = summary.progress.source_symbols - kept;
    (summary, missing)
}

/// The properties of an entry that are compared.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    File { mode: u32, modified: (i64, i64), bytes: Vec<u8> },
    Directory { mode: u32, modified: (i64, i64) },
    Link(PathBuf),
}

/// Everything below a directory, and the directory itself.
fn look(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let (mode, modified) =
            (metadata.mode() & 0o7777, (metadata.mtime(), metadata.mtime_nsec()));
        let one = if metadata.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Seen::Directory { mode, modified }
        } else if metadata.is_symlink() {
            Seen::Link(fs::read_link(&path).unwrap())
        } else {
            Seen::File { mode, modified, bytes: fs::read(&path).unwrap() }
        };
        seen.insert(path.strip_prefix(root).unwrap().to_owned(), one);
    }
    seen
}

fn set_time(path: &Path, seconds: u64, nanoseconds: u32) {
    let time: SystemTime = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A tree of `count` small files and an entry of every other kind.
fn plant(root: &Path, count: usize) {
    fs::create_dir(root).unwrap();
    for number in 0..count {
        let directory = root.join(format!("d{}/e{}", number % 7, number % 3));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(format!("file {number}"));
        fs::write(&path, noise(number * 37 % 5_000, number as u64)).unwrap();
        set_mode(&path, [0o644, 0o600, 0o755, 0o444][number % 4]);
        set_time(&path, 1_000_000_000 + number as u64, number as u32);
    }
    let names: [&[u8]; 6] = [
        b"two\nlines",
        b"\x1b[31mred",
        "\u{fc}ber \u{65e5}\u{672c}".as_bytes(),
        b"\xff\xfe not text",
        &[b'x'; 255],
        b"-rf",
    ];
    for (number, name) in names.into_iter().enumerate() {
        fs::write(root.join(OsStr::from_bytes(name)), noise(100, number as u64)).unwrap();
    }
    fs::write(root.join("empty"), "").unwrap();
    fs::create_dir_all(root.join("nothing/in/here")).unwrap();
    symlink("d0/e0", root.join("inside")).unwrap();
    symlink("../../../etc/passwd", root.join("outside")).unwrap();
    symlink("nowhere", root.join("nothing/broken")).unwrap();
    // The deepest first: a child's name changes its parent's time.
    for (number, directory) in
        ["nothing/in/here", "nothing/in", "nothing", "d0/e0", ""].into_iter().enumerate()
    {
        set_time(&root.join(directory), 900_000_000 + number as u64, 999_999_999);
    }
    set_mode(&root.join("nothing/in"), 0o500);
    set_mode(&root.join("d0"), 0o711);
}

#[test]
fn two_thousand_small_files_cost_no_more_than_one_of_their_size() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant(&root, 2000);
    let addressing = addressing(1);
    let options = send_options(vec![root.clone()], &addressing)
        // At higher rates a loaded machine would limit the test by the creation of files.
        .rate(Rate::bytes_per_second(3_000_000));
    let sending = Sending::start(options);
    assert_eq!(sending.manifest.objects().len(), 1, "all in one bundle");
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into)
        .simulated_loss(Some(SimulatedLoss { probability: 0.1, seed: 3 }));
    let summary = receive(options);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    // Until reception of the bundle and of its description is complete. How many packets arrive
    // until the receiver leaves the group depends on the load of this machine.
    let symbols = summary.progress.source_symbols as f64;
    let control = summary.progress.stats.control_packets as f64 / symbols;
    let inefficiency = summary.objects[0].reception_inefficiency + control;
    println!("inefficiency {inefficiency:.4}, of which control {control:.4}: {symbols} symbols");
    assert!(inefficiency <= 1.05, "{inefficiency}");
    let (sent, received) = (look(&root), look(&into.join("tree")));
    assert_eq!(sent.len(), received.len());
    for (name, seen) in &sent {
        assert!(received.get(name) == Some(seen), "{name:?} differs");
    }
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1, "nothing else is left");
    sending.end();
}

#[test]
fn small_and_large_files_of_several_trees_arrive_together() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    plant(&one, 30);
    fs::create_dir(&two).unwrap();
    fs::write(two.join("large"), noise(3_000_000, 9)).unwrap();
    fs::write(two.join("left.tmp"), "not sent").unwrap();
    let single = directory.path().join("single");
    fs::write(&single, "s").unwrap();
    let addressing = addressing(2);
    let options = send_options(vec![one.clone(), two.clone(), single.clone()], &addressing)
        .filter(Filter { exclude: vec!["*.tmp".into()], ..Filter::default() })
        // A block of 1 344 000 bytes: three million bytes are a large file.
        .block_symbols(1_000);
    let sending = Sending::start(options);
    assert_eq!(sending.manifest.objects().len(), 2);
    assert_eq!(sending.manifest.label(), "one and 2 more");
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into)
        .simulated_loss(Some(SimulatedLoss { probability: 0.3, seed: 5 }));
    let summary = receive(options);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert!(look(&one) == look(&into.join("one")));
    fs::remove_file(two.join("left.tmp")).unwrap();
    assert!(fs::read(two.join("large")).unwrap() == fs::read(into.join("two/large")).unwrap());
    assert_eq!(fs::read_dir(into.join("two")).unwrap().count(), 1);
    assert_eq!(fs::read(into.join("single")).unwrap(), b"s");
    sending.end();
}

#[test]
fn holes_are_not_sent_and_stay_holes() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("disk.raw");
    let (length, data) = (1_u64 << 30, [(0, 70_000), (500 << 20, 300_000), ((1 << 30) - 10, 10)]);
    let open = fs::File::create(&file).unwrap();
    open.set_len(length).unwrap();
    for (number, (at, count)) in data.into_iter().enumerate() {
        open.write_all_at(&noise(count, number as u64), at).unwrap();
    }
    drop(open);
    let zeros = directory.path().join("zeros");
    fs::File::create(&zeros).unwrap().set_len(1 << 30).unwrap();
    let addressing = addressing(3);
    let sending = Sending::start(send_options(vec![file.clone(), zeros], &addressing));
    let sent: u64 = sending.manifest.transfer_length();
    assert!(sent < 2 << 20, "{sent}");
    let holes = |entry: &Entry| match entry {
        Entry::File(file) => {
            file.segments.iter().filter(|s| matches!(s, Segment::Hole { .. })).count()
        }
        _ => 0,
    };
    assert_eq!(sending.manifest.entries().iter().map(holes).sum::<usize>(), 3);
    let into = directory.path().join("into");
    // The limit counts holes, although they are not sent.
    let most = |bytes| receive_options(&sending.ticket, &addressing, &into).max_bytes(bytes);
    let refused = receive(most((2 << 30) - 1).timeout(Some(Duration::from_secs(3))));
    assert_ne!(refused.outcome, Outcome::Complete);
    let options = most(2 << 30).simulated_loss(Some(SimulatedLoss { probability: 0.1, seed: 4 }));
    let summary = receive(options);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    let received = fs::File::open(into.join("disk.raw")).unwrap();
    assert_eq!(received.metadata().unwrap().len(), length);
    for (number, (at, count)) in data.into_iter().enumerate() {
        let mut bytes = vec![0; count];
        received.read_exact_at(&mut bytes, at).unwrap();
        assert!(bytes == noise(count, number as u64), "data at {at}");
    }
    let blocks = |name: &str| fs::metadata(into.join(name)).unwrap().blocks() * 512;
    println!("{} and {} bytes on disk", blocks("disk.raw"), blocks("zeros"));
    assert!(blocks("disk.raw") < 2 << 20);
    assert_eq!((blocks("zeros"), fs::metadata(into.join("zeros")).unwrap().len()), (0, 1 << 30));
    sending.end();
}

#[test]
fn a_link_in_the_target_that_leads_outside_is_refused_before_anything_is_received() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant(&root, 20);
    let outside = directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let addressing = addressing(4);
    let sending = Sending::start(send_options(vec![root], &addressing));
    for (number, place) in ["tree", "tree/d0", "tree/nothing/in"].into_iter().enumerate() {
        let into = directory.path().join(format!("into {number}"));
        fs::create_dir_all(into.join(place).parent().unwrap()).unwrap();
        symlink(&outside, into.join(place)).unwrap();
        let options = receive_options(&sending.ticket, &addressing, &into).overwrite(number == 1);
        let summary = receive(options);
        assert_eq!(summary.outcome, Outcome::Refused, "{place}");
        let error = summary.failures[0].to_string();
        assert!(error.contains(place) && error.contains("no directory"), "{error}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing outside");
        let hidden = fs::read_dir(&into).unwrap().filter(|entry| {
            entry.as_ref().unwrap().file_name().as_bytes().starts_with(b".fontana")
        });
        assert_eq!(hidden.count(), 0, "nothing was begun");
    }
    sending.end();
}

#[test]
fn a_tree_with_other_contents_is_refused_and_with_overwriting_replaced() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant(&root, 40);
    let addressing = addressing(5);
    let sending = Sending::start(send_options(vec![root.clone()], &addressing));
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    assert_eq!(receive(options.clone()).outcome, Outcome::Complete);
    // All of it is there: nothing is received, and nothing is changed.
    set_time(&into.join("tree/d1/e1/file 1"), 5, 5);
    let before = look(&into.join("tree"));
    let there = receive(options.clone());
    assert_eq!((there.outcome, there.progress.stats.fresh), (Outcome::Complete, 0));
    assert!(look(&into.join("tree")) == before && fs::read_dir(&into).unwrap().count() == 1);
    let changed = fs::read(into.join("tree/d1/e1/file 1")).unwrap();
    let changed: Vec<u8> = changed.iter().map(|byte| byte ^ 1).collect();
    fs::write(into.join("tree/d1/e1/file 1"), changed).unwrap();
    assert_eq!(receive(options.clone()).outcome, Outcome::Refused);
    fs::write(into.join("tree/mine"), "mine").unwrap();
    let summary = receive(options.overwrite(true));
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(fs::read(into.join("tree/mine")).unwrap(), b"mine", "what is not sent stays");
    fs::remove_file(into.join("tree/mine")).unwrap();
    set_time(&into.join("tree"), 900_000_004, 999_999_999);
    assert!(look(&root) == look(&into.join("tree")));
    sending.end();
}

/// A small file system of its own, unmounted when dropped.
struct Mount(PathBuf);

impl Mount {
    fn new(path: &Path, inodes: u32) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let mount = Self(path.to_owned());
        if !mount.run("mount", &["-t", "tmpfs", "-o", &format!("nr_inodes={inodes}"), "tmpfs"]) {
            let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!in_ci, "mounting a tmpfs needs root, and CI skips nothing");
            eprintln!("SKIPPED: mounting a tmpfs needs root");
            return None;
        }
        Some(mount)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = std::process::Command::new(program);
        command.args(arguments).arg(&self.0).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.run("umount", &["-l"]);
    }
}

/// A disk that has no room for another directory stops a commit after some of its names.
#[test]
fn a_commit_that_stopped_half_way_is_finished_without_receiving_anything_again() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("into");
    // 100 files, and a few more for staging itself: not for all of the 12 directories.
    let Some(mount) = Mount::new(&into, 112) else { return };
    let root = directory.path().join("tree");
    fs::create_dir(&root).unwrap();
    for number in 0..100 {
        let place = root.join(format!("d{}", number % 11));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(format!("{number}")), noise(3_000, number as u64)).unwrap();
    }
    let addressing = addressing(6);
    let sending = Sending::start(send_options(vec![root.clone()], &addressing));
    let options = receive_options(&sending.ticket, &addressing, &into);
    let summary = receive(options.clone());
    assert_eq!(summary.outcome, Outcome::Io, "{:?}", summary.failures);
    let there = look(&into.join("tree")).len();
    println!("{there} names of 112 were there");
    assert!((3..112).contains(&there), "{there}");
    assert!(mount.run("mount", &["-o", "remount,nr_inodes=1000"]));
    let summary = receive(options);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert!(look(&root) == look(&into.join("tree")));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
    assert_eq!(summary.progress.stats.fresh, 0, "nothing was received again");
    sending.end();
}
