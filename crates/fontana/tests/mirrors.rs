//! Receivers of mirrors: web servers of this test, which misbehave in every way that one can.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "mirrors/server.rs"]
mod server;

use fontana::wire::Hash;
use fontana::{
    Ended, FontanaReception, MirrorFailure, MirrorReport, MirroredContent, Outcome, ReceiveEvent,
    ReceiveFormat, ReceiveReport, Receiver, ReceiverBuilder,
};
use server::{Behavior, Server};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A tree, and its manifest.
struct Published {
    directory: tempfile::TempDir,
    hash: Hash,
}

/// Three files of several blocks, small ones that share an object, and an empty one.
fn publish(block_bytes: u64) -> Published {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("a tree");
    std::fs::create_dir_all(root.join("deep/er")).unwrap();
    let files = [("big", 3_000_000), ("deep/er/\u{e9}?&#.bin", 700_001), ("deep/empty", 0)];
    let small = (0..20).map(|n| (format!("small {n}"), 1_000 + 333 * n));
    let files = files.map(|(name, size)| (name.to_owned(), size));
    for (number, (name, size)) in (0..).zip(files.into_iter().chain(small)) {
        std::fs::write(root.join(name), fontana_testing::noise(size, number)).unwrap();
    }
    let content = MirroredContent::describe(&[root], block_bytes).unwrap();
    let path = directory.path().join(content.file_name());
    std::fs::write(path, content.file_bytes()).unwrap();
    Published { hash: content.hash(), directory }
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
        sent.retain(|path, _| !name(path));
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
fn a_mirror_that_misbehaves_is_dropped_with_its_reason_and_the_other_completes() {
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
            matches!(failure, MirrorFailure::Redirect(_))
        }),
        ("redirects to ftp", Behavior { redirects: Some("ftp://a/"), ..default }, |failure| {
            matches!(failure, MirrorFailure::Redirect(_))
        }),
        ("an encoding", Behavior { encoding: Some("gzip"), ..default }, |failure| {
            matches!(failure, MirrorFailure::Encoding(_))
        }),
        ("404", Behavior { status: Some(404), ..default }, |failure| {
            matches!(failure, MirrorFailure::Status { status: 404, .. })
        }),
        ("416", Behavior { status: Some(416), ..default }, |failure| {
            matches!(failure, MirrorFailure::Range { .. })
        }),
        ("wrong bytes", Behavior { flips: true, ..default }, |failure| {
            matches!(failure, MirrorFailure::Wrong(2))
        }),
    ];
    for &(what, behavior, is_reason) in classes {
        let servers = [Server::start(directory, behavior), Server::start(directory, right)];
        let (report, events) = receive(&published, &[&servers[0], &servers[1]]);
        assert_eq!(report.outcome, Outcome::Complete, "{what}: {report:?}");
        let [wrong, other] = &report.mirrors[..] else { panic!("{what}: {report:?}") };
        assert!(wrong.dropped.as_ref().is_some_and(is_reason), "{what}: {wrong:?}");
        assert_eq!((other.wrong_blocks, &other.dropped), (0, &None), "{what}: {other:?}");
        assert!(wrong.bytes + other.bytes < 6_000_000, "{what}: {report:?}");
        let told = events.iter().any(|event| {
            matches!(event, ReceiveEvent::MirrorDropped { mirror, .. } if *mirror == servers[0].address())
        });
        assert!(told, "{what}");
    }
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
