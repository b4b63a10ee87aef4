//! Receivers of mirrors: web servers of this test, which misbehave in every way that one can.

mod fresh;
mod server;

use fontana::wire::{FreshIndex, Hash, ShelfNumber};
use fontana::{
    Ended, FontanaReception, MirrorFailure, MirrorKind, MirrorReport, MirroredContent, Outcome,
    ReceiveEvent, ReceiveFormat, ReceiveReport, Receiver, ReceiverBuilder, WebServer,
};
use fresh::{Frames, FreshServer};
use server::{Behavior, Server};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A tree, and its manifest.
struct Published {
    directory: tempfile::TempDir,
    hash: Hash,
    content: MirroredContent,
}

/// Three files of several blocks, small ones that share an object, and an empty one.
fn publish(block_bytes: u64) -> Published {
    let files = [("big", 3_000_000), ("deep/er/\u{e9}?&#.bin", 700_001), ("deep/empty", 0)];
    let small = (0..20).map(|n| (format!("small {n}"), 1_000 + 333 * n));
    let files = files.map(|(name, size)| (name.to_owned(), size));
    publish_files(files.into_iter().chain(small), block_bytes)
}

/// Files with these names and lengths.
fn publish_files(files: impl IntoIterator<Item = (String, usize)>, block_bytes: u64) -> Published {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("a tree");
    std::fs::create_dir_all(root.join("deep/er")).unwrap();
    for (number, (name, size)) in (0..).zip(files) {
        std::fs::write(root.join(name), fontana_testing::noise(size, number)).unwrap();
    }
    let content = MirroredContent::describe(&[root], block_bytes, 1).unwrap();
    let path = directory.path().join(content.file_name());
    std::fs::write(path, content.file_bytes()).unwrap();
    Published { hash: content.hash(), directory, content }
}

fn receiver(published: &Published, mirrors: &[&Server], into: &Path) -> ReceiverBuilder {
    let mut format = FontanaReception::default();
    format.manifest = Some(published.hash);
    Receiver::builder()
        .format(ReceiveFormat::Fontana(format))
        .from_group(false)
        .mirrors(mirrors.iter().map(|server| server.address()).collect())
        .into_dir(into)
        .timeout(Some(Duration::from_secs(120)))
}

fn receive(published: &Published, mirrors: &[&Server]) -> (ReceiveReport, Vec<ReceiveEvent>) {
    let into = tempfile::tempdir().unwrap();
    let receiver = receiver(published, mirrors, into.path()).start().unwrap();
    let events = receiver.events().collect();
    let report = receiver.join().unwrap();
    if report.outcome == Outcome::Complete {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().ends_with("fontana");
        let mut sent = tree(published.directory.path());
        sent.retain(|path, _| !name(path) && path.starts_with("a tree"));
        assert!(tree(into.path()) == sent, "the files differ");
    }
    (report, events)
}

/// The files below a directory.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// What came from each mirror, in their order.
fn complete(published: &Published, mirrors: &[&Server]) -> Vec<MirrorReport> {
    let (report, _) = receive(published, mirrors);
    assert_eq!(report.outcome, Outcome::Complete, "{report:?}");
    report.mirrors
}

#[test]
fn several_mirrors_bring_a_tree_and_share_the_work() {
    let published = publish(100_000);
    let slow = Behavior { rate: Some(2_000_000), ..Behavior::default() };
    let servers: Vec<_> = (0..3).map(|_| Server::start(published.directory.path(), slow)).collect();
    let reports = complete(&published, &servers.iter().collect::<Vec<_>>());
    for report in &reports {
        assert!(report.bytes > 200_000, "{reports:?}");
        assert_eq!((report.wrong_blocks, &report.dropped), (0, &None));
    }
    let all: u64 = reports.iter().map(|report| report.bytes).sum();
    assert!(all < 3_800_000 + 600_000, "{reports:?}");
}

#[test]
fn servers_without_ranges_are_read_from_the_beginning() {
    let published = publish(100_000);
    let whole = Behavior { ranges: false, ..Behavior::default() };
    let server = Server::start(published.directory.path(), whole);
    complete(&published, &[&server]);
}

/// Each of these servers stands beside a right one.
#[test]
fn a_mirror_that_misbehaves_is_named_with_its_reason_and_the_other_completes() {
    let published = publish(100_000);
    let directory = published.directory.path();
    let right = Behavior { rate: Some(6_000_000), ..Behavior::default() };
    let default = Behavior::default();
    type IsReason = fn(&MirrorFailure) -> bool;
    let classes: &[(&str, Behavior, IsReason)] = &[
        ("another length", Behavior { length_more: 1, ..default }, |failure| {
            matches!(failure, MirrorFailure::Range { .. })
        }),
        ("another range", Behavior { start_more: 1, ..default }, |failure| {
            matches!(failure, MirrorFailure::Range { .. })
        }),
        ("redirects to itself", Behavior { redirects: Some("again"), ..default }, |failure| {
            matches!(failure, MirrorFailure::Redirect { .. })
        }),
        ("redirects to ftp", Behavior { redirects: Some("ftp://a/"), ..default }, |failure| {
            matches!(failure, MirrorFailure::Redirect { .. })
        }),
        ("404", Behavior { status: Some(404), ..default }, |failure| {
            matches!(failure, MirrorFailure::Status { status: 404, .. })
        }),
        ("416", Behavior { status: Some(416), ..default }, |failure| {
            matches!(failure, MirrorFailure::Status { status: 416, .. })
        }),
        ("a page", Behavior { page: true, ..default }, |failure| {
            failure.to_string().contains(": 26 bytes of text/html instead of ")
        }),
    ];
    for &(what, behavior, is_reason) in classes {
        let servers = [Server::start(directory, behavior), Server::start(directory, right)];
        let (report, events) = receive(&published, &[&servers[0], &servers[1]]);
        assert_eq!(report.outcome, Outcome::Complete, "{what}: {report:?}");
        let [wrong, other] = &report.mirrors[..] else { panic!("{what}: {report:?}") };
        assert!(wrong.failing.as_ref().is_some_and(is_reason), "{what}: {wrong:?}");
        assert_eq!(wrong.dropped, None, "{what}");
        assert_eq!((other.wrong_blocks, &other.dropped), (0, &None), "{what}: {other:?}");
        assert!(wrong.bytes + other.bytes < 6_000_000, "{what}: {report:?}");
        let told = events.iter().any(|event| {
            matches!(event, ReceiveEvent::MirrorFailed { mirror, .. } if *mirror == servers[0].address())
        });
        assert!(told, "{what}");
    }
    // At this rate its blocks are found to be wrong before it has sent many; on a busy host, later.
    let flips = Behavior { flips: Some(10_000), rate: right.rate, ..default };
    let servers = [Server::start(directory, flips), Server::start(directory, right)];
    let (report, _) = receive(&published, &[&servers[0], &servers[1]]);
    assert_eq!(report.outcome, Outcome::Complete, "{report:?}");
    let [wrong, _] = &report.mirrors[..] else { panic!("{report:?}") };
    assert!((2..20).contains(&wrong.wrong_blocks), "{wrong:?}");
}

/// Labels are hints: the hash decides.
#[test]
fn wrong_labels_of_right_bytes_do_no_harm() {
    let published = publish(100_000);
    for behavior in [
        Behavior { encoding: Some("x-gzip"), ..Behavior::default() },
        Behavior { encoding: Some("x-gzip"), ranges: false, ..Behavior::default() },
        Behavior { from_zero: true, ..Behavior::default() },
    ] {
        let server = Server::start(published.directory.path(), behavior);
        let reports = complete(&published, &[&server]);
        assert_eq!((&reports[0].dropped, reports[0].wrong_blocks), (&None, 0), "{reports:?}");
    }
}

/// The number of a small file; 0 of others.
fn number(name: &str) -> usize {
    name.rsplit_once("small ").map_or(0, |(_, number)| number.parse().unwrap())
}

/// Symbols at the ends of small files have bytes of two files, and each of these mirrors has one of
/// them.
#[test]
fn mirrors_that_lack_different_files_complete_each_other() {
    let published = publish(100_000);
    let directory = published.directory.path();
    let of = |lacks: fn(&str) -> bool| {
        Server::start(directory, Behavior { lacks: Some(lacks), ..Behavior::default() })
    };
    let servers = [
        of(|name| name.ends_with("big") || number(name) % 2 == 1),
        of(|name| name.ends_with(".bin") || (number(name).is_multiple_of(2) && number(name) > 0)),
    ];
    let reports = complete(&published, &[&servers[0], &servers[1]]);
    for report in &reports {
        assert_eq!((&report.dropped, report.wrong_blocks), (&None, 0), "{reports:?}");
        let missing = report.failing.as_ref();
        let is_status = |why| matches!(why, &MirrorFailure::Status { status: 404, .. });
        assert!(missing.is_some_and(is_status), "{reports:?}");
    }
}

/// A mirror has another version of one file: of that file alone it is of no use.
#[test]
fn a_file_of_another_version_is_left_to_others_and_the_rest_is_not() {
    let published = publish(100_000);
    let rate = Some(2_000_000);
    let older = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let to = older.path().join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(published.directory.path().join(name), to).unwrap();
    };
    tree(published.directory.path()).keys().for_each(|name| copy(name.to_str().unwrap()));
    let other = fontana_testing::noise(700_001, 99);
    std::fs::write(older.path().join("a tree/deep/er/\u{e9}?&#.bin"), other).unwrap();
    let behavior = Behavior { rate, ..Behavior::default() };
    let stale = Server::start(older.path(), behavior);
    let right = Server::start(published.directory.path(), behavior);
    let reports = complete(&published, &[&stale, &right]);
    assert_eq!(reports[0].dropped, None, "{reports:?}");
    assert!(reports[0].bytes > 1_000_000, "{reports:?}");
    // Alone, it ends the reception once the rest is complete.
    let (report, _) = receive(&published, &[&stale]);
    assert_eq!((report.outcome, report.ended), (Outcome::Incomplete, Ended::NoMirrors));
    assert!(matches!(report.mirrors[0].dropped, Some(MirrorFailure::Wrong(_))), "{report:?}");
    assert!(report.mirrors[0].bytes > 3_000_000, "{report:?}");
}

#[test]
fn the_only_mirror_is_asked_again_while_it_is_busy() {
    let published = publish(100_000);
    let busy = Behavior { fails_first: 4, ..Behavior::default() };
    let server = Server::start(published.directory.path(), busy);
    let reports = complete(&published, &[&server]);
    assert_eq!((&reports[0].dropped, &reports[0].failing), (&None, &None));
}

/// The time that the user gives ends it, and the report says what was seen.
#[test]
fn the_only_mirror_is_asked_again_until_the_time_is_up() {
    let published = publish(100_000);
    for (behavior, what) in [
        (Behavior { page: true, ..Behavior::default() }, "26 bytes of text/html instead of "),
        (Behavior { lacks: Some(|_| true), ..Behavior::default() }, "HTTP status 404"),
        (Behavior { fails_first: 1_000, ..Behavior::default() }, "HTTP status 503"),
    ] {
        let server = Server::start(published.directory.path(), behavior);
        let into = tempfile::tempdir().unwrap();
        let receiver = receiver(&published, &[&server], into.path());
        let receiver = receiver.timeout(Some(Duration::from_secs(2))).start().unwrap();
        let report = receiver.join().unwrap();
        assert_eq!(report.ended, Ended::TimeUp, "{report:?}");
        let [mirror] = &report.mirrors[..] else { panic!("{report:?}") };
        let failing = mirror.failing.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(mirror.dropped.is_none() && failing.contains(what), "{what}: {report:?}");
    }
}

/// Of its 38 blocks four are damaged.
#[test]
fn a_mirror_with_a_few_damaged_blocks_is_named_and_used_until_the_end() {
    let published = publish(100_000);
    let directory = published.directory.path();
    let rate = Some(3_000_000);
    let damaged = Behavior { flips: Some(800_000), rate, ..Behavior::default() };
    let right = Behavior { rate, ..Behavior::default() };
    let servers = [Server::start(directory, damaged), Server::start(directory, right)];
    let (report, events) = receive(&published, &[&servers[0], &servers[1]]);
    assert_eq!(report.outcome, Outcome::Complete, "{report:?}");
    let [damaged, _] = &report.mirrors[..] else { panic!("{report:?}") };
    assert_eq!(damaged.dropped, None, "{report:?}");
    assert!((1..=4).contains(&damaged.wrong_blocks), "{report:?}");
    assert!(damaged.bytes > 1_000_000, "{report:?}");
    let named = events.iter().any(|event| {
        matches!(event, ReceiveEvent::MirrorWrong { mirror, .. } if *mirror == servers[0].address())
    });
    assert!(named, "{events:?}");
}

/// Writes the shelves with these numbers, each into a directory of its own.
fn shelves(published: &Published, numbers: &[u8], stretch_permille: u16) -> Vec<PathBuf> {
    let write = |&number: &u8| {
        let directory = published.directory.path().join(format!("shelf {number}"));
        let number = ShelfNumber::new(number).unwrap();
        let content = &published.content;
        let report = content.write_shelf(&directory, number, stretch_permille).unwrap();
        assert!(report.written > 1 && report.symbols > 0, "{report:?}");
        std::fs::write(directory.join(content.file_name()), content.file_bytes()).unwrap();
        directory
    };
    numbers.iter().map(write).collect()
}

/// Starts a server of each directory.
fn serve(directories: &[PathBuf], behavior: Behavior) -> Vec<Server> {
    directories.iter().map(|directory| Server::start(directory, behavior)).collect()
}

#[test]
fn a_shelf_that_is_written_again_is_compared_and_a_damaged_file_replaced() {
    let published = publish(100_000);
    let directory = &shelves(&published, &[1], 100)[0];
    let write = || {
        let number = ShelfNumber::new(1).unwrap();
        published.content.write_shelf(directory, number, 100).unwrap().written
    };
    assert_eq!(write(), 0);
    let symbols = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let symbols = symbols.filter(|path| path.extension().is_some_and(|ending| ending == "symbols"));
    let path = symbols.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let (right, mut damaged) = (std::fs::read(&path).unwrap(), std::fs::read(&path).unwrap());
    damaged[1_000] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    assert_eq!(write(), 1);
    assert!(std::fs::read(&path).unwrap() == right);
}

/// With blocks of 1 symbol up to 536.
#[test]
fn any_three_of_five_shelves_of_0_4_are_the_files() {
    let published = publish(750_000);
    for reports in all_three_of_five(&published) {
        for report in &reports {
            assert_eq!((report.wrong_blocks, &report.dropped), (0, &None), "{reports:?}");
            assert!(
                matches!(report.kind, MirrorKind::Shelf(_)) && report.bytes > 500_000,
                "{reports:?}"
            );
        }
    }
}

/// With blocks up to the longest one of RaptorQ.
#[test]
#[ignore = "writes a gigabyte: `.ci/long shelves`"]
fn any_three_of_five_shelves_are_the_files_whatever_the_length_of_the_blocks() {
    let lengths = [1, 2, 3, 4, 5, 10, 26, 101, 257, 1_000, 4_099, 10_000, 28_111, 56_403];
    let files = lengths.map(|k| (format!("k {k}"), 1_400 * k));
    let published = publish_files(files, 1_400 * 56_403);
    let objects = published.content.manifest().objects();
    let longest = objects.iter().map(|object| object.oti.transfer_length.div_ceil(1_400)).max();
    let blocks: usize = objects.iter().map(|object| object.block_hashes.len()).sum();
    assert_eq!((longest, blocks), (Some(56_403), objects.len()), "an object is one block");
    for reports in all_three_of_five(&published) {
        assert!(reports.iter().all(|report| report.wrong_blocks == 0), "{reports:?}");
    }
}

/// Receives from all subsets of three of five shelves with 0.4 symbols for each source symbol.
fn all_three_of_five(published: &Published) -> Vec<Vec<MirrorReport>> {
    let directories = shelves(published, &[1, 2, 3, 14, 15], 400);
    let servers = serve(&directories, Behavior::default());
    let pairs = (0..5).flat_map(|one| (one + 1..5).map(move |other| (one, other)));
    let reports = pairs.map(|(one, other)| {
        let three: Vec<_> = (0..5).filter(|n| *n != one && *n != other).collect();
        let three: Vec<_> = three.iter().map(|&n| &servers[n]).collect();
        complete(published, &three)
    });
    reports.collect()
}

#[test]
fn a_shelf_that_is_too_small_is_named_and_others_go_on_from_there() {
    let published = publish(100_000);
    let servers = serve(&shelves(&published, &[1, 2, 3], 400), Behavior::default());
    let into = tempfile::tempdir().unwrap();
    let receive = |mirrors: &[&Server]| {
        receiver(&published, mirrors, into.path()).start().unwrap().join().unwrap()
    };
    let first = receive(&[&servers[0]]);
    assert_eq!(first.outcome, Outcome::Incomplete, "{first:?}");
    assert!(matches!(first.mirrors[0].dropped, Some(MirrorFailure::Exhausted)), "{first:?}");
    let second = receive(&[&servers[0], &servers[1], &servers[2]]);
    assert_eq!(second.outcome, Outcome::Complete, "{second:?}");
    // The symbols of the first run are still there.
    let [again, ..] = &second.mirrors[..] else { panic!("{second:?}") };
    assert!(again.bytes < first.mirrors[0].bytes / 4, "{second:?}");
}

/// Both fill the same blocks, and neither sends what the other does.
#[test]
fn a_shelf_and_a_mirror_with_the_files_add_up() {
    let published = publish(100_000);
    let rate = Behavior { rate: Some(2_000_000), ..Behavior::default() };
    let shelf = &serve(&shelves(&published, &[7], 1_050), rate)[0];
    let files = Server::start(published.directory.path(), rate);
    let reports = complete(&published, &[shelf, &files]);
    let kinds: Vec<_> = reports.iter().map(|report| report.kind).collect();
    let number = ShelfNumber::new(7).unwrap();
    assert_eq!(kinds, [MirrorKind::Shelf(number), MirrorKind::Files]);
    assert!(reports.iter().all(|report| report.bytes > 500_000), "{reports:?}");
    let all: u64 = reports.iter().map(|report| report.bytes).sum();
    // On a busy host answers come late, and the other is asked for the same. If neither knew what
    // the other sends, it were twice the file.
    assert!(all < 3_800_000 * 17 / 10, "{reports:?}");
}

/// Its symbols are no files' bytes: other symbols of the blocks show which are wrong.
#[test]
fn a_damaged_shelf_does_not_stop_the_others() {
    let published = publish(100_000);
    let directories = shelves(&published, &[1, 2], 1_050);
    let damaged = Behavior { flips: Some(150_000), ..Behavior::default() };
    let servers = [
        Server::start(&directories[0], damaged),
        Server::start(&directories[1], Behavior::default()),
        Server::start(published.directory.path(), Behavior::default()),
    ];
    let [damaged, shelf, files] = &servers;
    complete(&published, &[damaged, files]);
    complete(&published, &[damaged, shelf]);
}

/// Servers that cost time, not bytes: the other one need not wait until they are dropped.
#[test]
fn a_mirror_that_is_silent_or_endless_does_not_delay_the_other() {
    let published = publish(100_000);
    let directory = published.directory.path();
    let right = Behavior { rate: Some(6_000_000), ..Behavior::default() };
    let default = Behavior::default();
    for (what, behavior) in [
        ("silent", Behavior { silent: true, ..default }),
        ("endless head", Behavior { endless_head: true, ..default }),
        ("endless body", Behavior { endless_body: true, ..default }),
        ("drips", Behavior { rate: Some(500), ..default }),
        ("503", Behavior { status: Some(503), ..default }),
        ("cuts each answer short", Behavior { cuts: true, ..default }),
    ] {
        let servers = [Server::start(directory, behavior), Server::start(directory, right)];
        let began = std::time::Instant::now();
        let (report, _) = receive(&published, &[&servers[0], &servers[1]]);
        assert_eq!(report.outcome, Outcome::Complete, "{what}: {report:?}");
        // A timeout of 10 s is not waited for; a busy machine takes its time.
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {:?}", began.elapsed());
        let bytes: u64 = report.mirrors.iter().map(|mirror| mirror.bytes).sum();
        assert!(bytes < 6_000_000, "{what}: {report:?}");
    }
}

#[test]
fn a_changed_etag_and_a_few_redirects_are_no_reason_to_drop_a_mirror() {
    let published = publish(100_000);
    let directory = published.directory.path();
    for behavior in [
        Behavior { etag_changes: true, ..Behavior::default() },
        Behavior { redirects_once: true, ..Behavior::default() },
    ] {
        let server = Server::start(directory, behavior);
        let reports = complete(&published, &[&server]);
        assert_eq!(reports[0].dropped, None, "{reports:?}");
    }
}

/// Where a redirect has led is asked directly, but not for ever.
#[test]
fn a_mirror_is_asked_again_when_the_server_that_it_redirected_to_fails() {
    let published = publish(100_000);
    let directory = published.directory.path();
    let elsewhere = Server::start(
        directory,
        Behavior { fails_later: true, rate: Some(1_000_000), ..Behavior::default() },
    );
    let to: &'static str = Box::leak(elsewhere.address().to_string().into_boxed_str());
    let server =
        Server::start(directory, Behavior { redirects_first: Some(to), ..Behavior::default() });
    let reports = complete(&published, &[&server]);
    assert_eq!(reports[0].dropped, None, "{reports:?}");
}

#[test]
fn without_a_mirror_that_has_the_manifest_nothing_is_received() {
    let published = publish(100_000);
    let other = publish(90_000);
    for (directory, behavior) in [
        (published.directory.path(), Behavior { status: Some(404), ..Behavior::default() }),
        (other.directory.path(), Behavior::default()),
    ] {
        let server = Server::start(directory, behavior);
        let (report, _) = receive(&published, &[&server]);
        assert_eq!((report.outcome, report.ended), (Outcome::NothingReceived, Ended::NoMirrors));
        assert!(report.mirrors[0].dropped.is_some());
    }
}

#[test]
fn what_mirrors_have_brought_is_resumed() {
    let published = publish(100_000);
    let slow = Behavior { rate: Some(1_500_000), ..Behavior::default() };
    let server = Server::start(published.directory.path(), slow);
    let into = tempfile::tempdir().unwrap();
    let first = receiver(&published, &[&server], into.path()).start().unwrap();
    for event in first.events() {
        if let ReceiveEvent::Progress(progress) = event
            && progress.stats.pulled > 700
        {
            first.stop();
        }
    }
    let report = first.join().unwrap();
    assert_eq!(report.outcome, Outcome::Interrupted);
    let before = report.mirrors[0].bytes;
    let second = receiver(&published, &[&server], into.path()).start().unwrap();
    let report = second.join().unwrap();
    assert_eq!(report.outcome, Outcome::Complete);
    let after = report.mirrors[0].bytes;
    assert!(after < 4_000_000 - before / 2, "{before} bytes, then {after}");
}

/// Each of these servers of fresh symbols stands beside a mirror with the files.
#[test]
fn a_server_of_fresh_symbols_that_misbehaves_does_not_keep_the_other_from_completing() {
    let published = publish(100_000);
    let right = Behavior { rate: Some(3_000_000), ..Behavior::default() };
    type IsReason = fn(Option<&MirrorFailure>) -> bool;
    let not_requested: IsReason = |why| matches!(why, Some(MirrorFailure::NotRequested));
    let classes: [(&str, Frames, IsReason); 4] = [
        ("source symbols", fresh::others, not_requested),
        ("one symbol again and again", fresh::repeated, |why| why.is_none()),
        ("too many", fresh::too_many, |why| matches!(why, Some(MirrorFailure::Range { .. }))),
        // Blocks of which it has sent all are charged to it.
        ("wrong symbols", fresh::wrong, |why| matches!(why, None | Some(MirrorFailure::Wrong(_)))),
    ];
    for (what, frames, is_reason) in classes {
        let (wrong, files) = (
            FreshServer::start(&published.content, frames),
            Server::start(published.directory.path(), right),
        );
        let into = tempfile::tempdir().unwrap();
        let mirrors = vec![wrong.address(), files.address()];
        let receiver = receiver(&published, &[], into.path()).mirrors(mirrors).start().unwrap();
        let report = receiver.join().unwrap();
        assert_eq!(report.outcome, Outcome::Complete, "{what}: {report:?}");
        let [wrong, _] = &report.mirrors[..] else { panic!("{what}: {report:?}") };
        let why = wrong.dropped.as_ref().or(wrong.failing.as_ref());
        assert!(is_reason(why), "{what}: {report:?}");
        assert_eq!(wrong.kind, MirrorKind::Fresh, "{what}");
    }
}

/// Two servers of the same content, and a shelf: they complete it together, and have no symbol in
/// common.
#[test]
fn servers_of_fresh_symbols_and_a_shelf_add_up() {
    let published = publish(100_000);
    let rate = Behavior { rate: Some(2_000_000), ..Behavior::default() };
    let shelf = &serve(&shelves(&published, &[9], 400), rate)[0];
    let listen = "127.0.0.1:0".parse().unwrap();
    let servers = [(); 2]
        .map(|()| WebServer::builder(published.content.clone()).listen(listen).start().unwrap());
    let web = |server: &WebServer| format!("http://{}/", server.address()).parse().unwrap();
    let mirrors = vec![web(&servers[0]), web(&servers[1]), shelf.address()];
    let into = tempfile::tempdir().unwrap();
    let receiver = receiver(&published, &[], into.path()).mirrors(mirrors).start().unwrap();
    let report = receiver.join().unwrap();
    assert_eq!(report.outcome, Outcome::Complete, "{report:?}");
    assert!(report.mirrors.iter().all(|mirror| mirror.dropped.is_none()), "{report:?}");
    let path = FreshIndex::symbols_path(published.hash, 1);
    let ids = servers
        .each_ref()
        .map(|server| fresh::ids(server.address(), &format!("{path}?blocks=0:1000"), 1400));
    assert!(ids.iter().all(|ids| ids.len() == 1_000));
    assert!(ids[0].is_disjoint(&ids[1]));
    // Those of the shelf begin at a multiple of 2^20.
    assert!(ids.iter().flatten().all(|id| id & 0xf_ffff >= 30));
    for server in servers {
        assert!(server.has_fresh_symbols());
        server.stop();
        assert_eq!(server.join().unwrap().outcome, Outcome::Interrupted);
    }
}
