//! Sessions of plain FLUTE whose files change: of Fontana to Fontana and to the peer, and of the
//! peer to Fontana, which is started again.

use super::fontana_side::{
    FontanaReceiver, FontanaSender, Losing, RATE_BYTES_PER_SECOND, addressing, air, noise, write,
};
use super::peer::{
    Background, Listening, Sending, TSI, carousel, complete, config, no_code, object, send, sender,
    sender_of, with_a_large_cache,
};
use flute::core::lct::Cenc;
use flute::sender::{Config, Profile};
use fontana::wire::{FluteVersion, Tsi};
use fontana::{
    Addressing, Code, FluteFormat, FluteReception, Format, Outcome, PublishEvent, Publisher, Rate,
    ReceiveEvent, ReceiveFormat, Receiver, Sender, SenderBuilder,
};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

fn flute(version: FluteVersion) -> Format {
    let mut flute = FluteFormat::default();
    flute.version = version;
    Format::Flute(flute)
}

fn watched(addressing: &Addressing) -> FontanaReceiver {
    FontanaReceiver::join(addressing, |options| {
        let mut flute = FluteReception::default();
        flute.watch = true;
        options.format(ReceiveFormat::Flute(flute))
    })
}

fn publisher(addressing: &Addressing, directory: &Path, version: FluteVersion) -> Publisher {
    let sender: SenderBuilder = Sender::builder([directory])
        .addressing(addressing.clone())
        .format(flute(version))
        .code(Code::None)
        .rate(Rate::bytes_per_second(RATE_BYTES_PER_SECOND))
        .tsi(Some(Tsi(TSI)));
    Publisher::builder(sender).settle(Duration::from_millis(100)).start().unwrap()
}

#[test]
fn a_folder_that_changes_is_a_session_of_updates() {
    let _air = air();
    let addressing = addressing();
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("news");
    std::fs::create_dir(&folder).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    put("stays", &noise(5_000, 1));
    put("changes", &noise(5_000, 2));
    put("empty", b"");
    let receiver = watched(&addressing);
    let target = receiver.target().to_owned();
    let publisher = publisher(&addressing, &folder, FluteVersion::V1);
    let mut received = Vec::new();
    let run = receiver.run_until(|event, receiver: &Receiver| {
        let ReceiveEvent::ObjectDone(report) = event else { return };
        received.push(report.names.concat());
        match received.len() {
            3 => {
                put("changes", &noise(6_000, 3));
                put("comes", &noise(7_000, 4));
                std::fs::remove_file(folder.join("empty")).unwrap();
            }
            5 => receiver.stop(),
            _ => {}
        }
    });
    publisher.stop();
    let versions = publisher.events().filter(|event| matches!(event, PublishEvent::Version(_)));
    assert!(versions.count() >= 2);
    publisher.join().unwrap();
    assert_eq!(run.summary.outcome, Outcome::Complete, "{:?}", run.summary);
    assert_eq!(received.iter().filter(|name| *name == "news/stays").count(), 1, "{received:?}");
    assert!(run.files["news/changes"] == noise(6_000, 3), "{received:?}");
    assert!(run.files["news/comes"] == noise(7_000, 4), "{received:?}");
    assert_eq!(run.updates, ["news/changes"]);
    drop(target);
}

#[test]
fn the_peer_reads_the_updates_of_a_folder() {
    for version in [FluteVersion::V1, FluteVersion::V2] {
        let _air = air();
        let addressing = addressing();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("news");
        std::fs::write(&path, noise(50_000, 1)).unwrap();
        let listening = Listening::join(&addressing);
        let publisher = publisher(&addressing, &path, version);
        let change = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            std::fs::write(&path, noise(40_000, 2)).unwrap();
        });
        let outcomes = listening.receive(2, with_a_large_cache(), Losing::permille(0));
        let versions: Vec<_> =
            outcomes.into_iter().map(|outcome| complete(vec![outcome])).collect();
        assert!(versions.iter().any(|files| files["news"] == noise(50_000, 1)));
        assert!(versions.iter().any(|files| files["news"] == noise(40_000, 2)));
        change.join().unwrap();
        drop(publisher);
    }
}

#[test]
fn a_peer_that_is_started_again_with_other_files_is_followed() {
    for profile in [Profile::RFC3926, Profile::RFC6726] {
        let _air = air();
        let addressing = addressing();
        let receiver = watched(&addressing);
        let config = Config { profile, ..config() };
        let files = |run: u64| {
            let name = ["a", "b", "c"][run as usize].to_owned();
            [(name, noise(60_000, run))].into()
        };
        let start = |run| {
            let sender = sender_of(&addressing, &files(run), &no_code(), &config, Cenc::Null);
            send(&addressing, sender, Losing::permille(0))
        };
        let mut sender = Some(start(0));
        let mut run = 0;
        let received = receiver.run_until(|event, receiver: &Receiver| {
            if matches!(event, ReceiveEvent::ObjectDone(_)) {
                run += 1;
                drop(sender.take());
                match run {
                    3 => receiver.stop(),
                    _ => sender = Some(start(run)),
                }
            }
        });
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        for run in 0..3 {
            files(run).iter().for_each(|(name, bytes)| assert!(received.files[name] == *bytes));
        }
    }
}

#[test]
fn a_watched_session_replaces_the_files_of_its_earlier_run() {
    let _air = air();
    let addressing = addressing();
    let directory = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    for (seed, outcome) in [(1, Outcome::Complete), (2, Outcome::Complete), (3, Outcome::Refused)] {
        let files = [("news".to_owned(), noise(50_000, seed))].into();
        let mut flute_reception = FluteReception::default();
        flute_reception.watch = true;
        let receiver = Receiver::builder()
            .into_dir(into.path())
            .addressing(addressing.clone())
            .format(ReceiveFormat::Flute(flute_reception))
            .timeout(Some(Duration::from_secs(30)))
            .start()
            .unwrap();
        let _sender =
            FontanaSender::start(&addressing, write(&files, directory.path()), |options| {
                options.code(Code::None).format(flute(FluteVersion::V1))
            });
        for event in receiver.events() {
            let is_over =
                matches!(event, ReceiveEvent::ObjectDone(_) | ReceiveEvent::ObjectFailed { .. });
            if is_over {
                receiver.stop();
            }
        }
        let report = receiver.join().unwrap();
        assert_eq!(report.outcome, outcome, "{seed}: {report:?}");
        let found = std::fs::read(into.path().join("news")).unwrap();
        match outcome {
            Outcome::Complete => assert!(found == files["news"], "{seed}"),
            _ => assert!(found == b"mine"),
        }
        if seed == 2 {
            std::fs::write(into.path().join("news"), "mine").unwrap();
        }
    }
}

/// Receivers may delete files whose table has expired.
#[test]
fn the_table_of_a_folder_is_renewed_before_it_expires() {
    let _air = air();
    let addressing = addressing();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("news");
    std::fs::write(&path, noise(5_000, 1)).unwrap();
    let mut format = FluteFormat::default();
    format.table_lifetime = Some(Duration::from_secs(2));
    let sender = Sender::builder([&path])
        .addressing(addressing.clone())
        .format(Format::Flute(format))
        .code(Code::None)
        .rate(Rate::bytes_per_second(RATE_BYTES_PER_SECOND));
    let receiver = watched(&addressing);
    let builder = Publisher::builder(sender).settle(Duration::from_millis(100));
    let publisher = builder.poll(Some(Duration::from_millis(50))).start().unwrap();
    let reception = std::thread::spawn(move || {
        receiver.run_until(|event, receiver: &Receiver| {
            if let ReceiveEvent::Progress(progress) = event
                && progress.elapsed > Duration::from_secs(4)
            {
                receiver.stop();
            }
        })
    });
    let versions = publisher.events().filter(|event| matches!(event, PublishEvent::Version(_)));
    assert_eq!(versions.take(3).count(), 3);
    let run = reception.join().unwrap();
    publisher.stop();
    assert!(run.updates.is_empty() && run.warnings.is_empty(), "{:?}", run.warnings);
    assert_eq!(run.files["news"], noise(5_000, 1));
}

#[test]
fn a_sender_that_is_started_again_is_read_by_the_peer() {
    for version in [FluteVersion::V1, FluteVersion::V2] {
        let _air = air();
        let addressing = addressing();
        let directory = tempfile::tempdir().unwrap();
        let paths = ["first", "second"].map(|name| directory.path().join(name));
        std::fs::write(&paths[0], noise(50_000, 1)).unwrap();
        std::fs::write(&paths[1], noise(40_000, 2)).unwrap();
        let listening = Listening::join(&addressing);
        let [first, second] = paths;
        let senders = Background::run(move |stop| {
            let sender = publisher(&addressing, &first, version);
            std::thread::sleep(Duration::from_secs(2));
            drop(sender);
            let _sender = publisher(&addressing, &second, version);
            while !stop.is_cancelled() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let files = complete(listening.receive(2, with_a_large_cache(), Losing::permille(0)));
        drop(senders);
        assert!(files["first"] == noise(50_000, 1) && files["second"] == noise(40_000, 2));
    }
}

#[test]
fn a_file_that_a_peer_updates_is_replaced() {
    for profile in [Profile::RFC3926, Profile::RFC6726] {
        let _air = air();
        let addressing = addressing();
        let receiver = watched(&addressing);
        let mut peer = sender(&addressing, &no_code(), &Config { profile, ..config() });
        let version = |seed| object("news", &noise(60_000, seed), carousel(Cenc::Null));
        let mut toi = peer.add_object(0, version(1)).unwrap();
        peer.publish(SystemTime::now()).unwrap();
        let (update, updates) = mpsc::channel();
        let mut sending = Sending::to(&addressing);
        let peer = Background::run(move |stop| {
            while !stop.is_cancelled() {
                if let Ok(seed) = updates.try_recv() {
                    peer.remove_object(toi);
                    toi = peer.add_object(0, version(seed)).unwrap();
                    peer.publish(SystemTime::now()).unwrap();
                }
                match peer.read(SystemTime::now()) {
                    Some(packet) => sending.send(&packet),
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let mut seed = 1;
        let received = receiver.run_until(|event, receiver: &Receiver| {
            if matches!(event, ReceiveEvent::ObjectDone(_)) {
                seed += 1;
                match seed {
                    // Two changes in less than a second and a half are refused.
                    2..=3 => {
                        std::thread::sleep(Duration::from_millis(800));
                        update.send(seed).unwrap();
                    }
                    _ => receiver.stop(),
                }
            }
        });
        drop(peer);
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_eq!(received.updates, ["file:///news", "file:///news"]);
        assert!(received.files["news"] == noise(60_000, 3));
    }
}
