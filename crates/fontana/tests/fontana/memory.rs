//! Sessions from memory and into memory, over loopback multicast.

use fontana::{
    Addressing, ErrorKind, FcastFormat, Format, Memory, Ordering, Outcome, PreparedSender, Rate,
    Receiver, ReceiverBuilder, Sender, SenderBuilder, SimulatedLoss, StreamSender, wire::Ticket,
};
use fontana_testing::noise;
use std::fs::File;
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

/// A group and port that no other test of this process uses.
fn addressing(test: u8) -> Addressing {
    let group = Ipv4Addr::new(239, 255, 96, test);
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

fn prepare(builder: SenderBuilder, test: u8) -> PreparedSender {
    prepare_at(20_000_000, builder, test)
}

fn prepare_at(rate: u64, builder: SenderBuilder, test: u8) -> PreparedSender {
    let builder = builder.addressing(addressing(test)).symbol_size(Some(1024));
    builder.rate(Rate::bytes_per_second(rate)).prepare().unwrap()
}

fn options(ticket: &Ticket, test: u8) -> ReceiverBuilder {
    let options = Receiver::from_ticket(ticket).addressing(addressing(test));
    options.timeout(Some(Duration::from_secs(60)))
}

/// Memory that was used before, and what it was told.
#[derive(Debug)]
struct Told {
    bytes: RwLock<Vec<u8>>,
    verified: Mutex<Vec<Range<u64>>>,
}

impl Told {
    fn of(length: usize) -> Arc<Self> {
        Arc::new(Self { bytes: RwLock::new(vec![7; length]), verified: Mutex::default() })
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.read().unwrap().clone()
    }
}

impl Memory for Told {
    fn length(&self) -> u64 {
        self.bytes.length()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) {
        self.bytes.read_at(offset, out);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let is_free = |own: &Range<u64>| own.end <= offset || end <= own.start;
        assert!(self.verified.lock().unwrap().iter().all(is_free), "verified bytes stay");
        self.bytes.write_at(offset, bytes);
    }

    fn on_verified(&self, range: Range<u64>) {
        self.verified.lock().unwrap().push(range);
    }
}

#[test]
fn parts_of_bytes_arrive_in_their_order_despite_losses() {
    let content = noise(3_000_000, 1);
    let parts = [2_000_000..2_500_000, 0..100_000, 1_000_000..2_000_000];
    let builder = Sender::from_bytes("weights", content.clone())
        .parts(parts.clone())
        .ordering(Ordering::Sequential { repair_permille: 300 });
    // What follows the parts takes a second: a part is recovered in less on a busy host.
    let session = prepare_at(2_000_000, builder, 1);
    let staging = tempfile::tempdir().unwrap();
    let memory = Told::of(content.len() + 5);
    let loss = SimulatedLoss { probability: 0.1, seed: 5 };
    let receiver = options(&session.description().ticket, 1).simulated_loss(Some(loss));
    let receiver = receiver.into_memory(Arc::clone(&memory), staging.path()).start().unwrap();
    let _sender = session.start().unwrap();
    let report = receiver.join().unwrap();
    assert_eq!(report.outcome, Outcome::Complete, "{report:?}");
    assert_eq!((report.object_count, report.bytes), (4, content.len() as u64));
    let bytes = memory.bytes();
    assert!(bytes[..content.len()] == content, "the content");
    assert_eq!(bytes[content.len()..], [7; 5], "what is behind it stays");
    let verified = memory.verified.lock().unwrap();
    let rest = [100_000..1_000_000, 2_500_000..3_000_000];
    let sorted = |ranges: &[Range<u64>]| {
        let mut ranges = ranges.to_vec();
        ranges.sort_by_key(|range| range.start);
        ranges
    };
    assert_eq!(sorted(&verified), sorted(&[&parts[..], &rest].concat()));
    // Several threads recover blocks, so that one may overtake that before it. A host that is too
    // busy loses a part until its next turn.
    if report.progress.kernel_drops + report.progress.queue_drops == 0 {
        let early = &verified[..4];
        assert!(
            parts.iter().all(|part| early.contains(part)),
            "the parts come first: {verified:?}"
        );
    }
    assert_eq!(std::fs::read_dir(staging.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn holes_of_a_file_are_zeros_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sparse");
    let file = File::create(&path).unwrap();
    file.set_len(2_000_000).unwrap();
    file.write_all_at(&noise(100_000, 2), 1_000_000).unwrap();
    let sender = prepare(Sender::builder([&path]), 2).start().unwrap();
    let staging = directory.path().join("staging");
    let receive = |memory: &Arc<Told>| {
        let options = options(&sender.description().ticket, 2);
        options.into_memory(Arc::clone(memory), &staging).start().unwrap().join().unwrap()
    };
    let memory = Told::of(2_000_000);
    assert_eq!(receive(&memory).outcome, Outcome::Complete);
    assert!(memory.bytes() == std::fs::read(&path).unwrap());
    let verified: u64 = memory.verified.lock().unwrap().iter().map(|own| own.end - own.start).sum();
    assert_eq!(verified, 2_000_000);
    // One byte less is refused, before anything is written.
    let short = Told::of(1_999_999);
    let report = receive(&short);
    assert_eq!(report.outcome, Outcome::Refused);
    assert_eq!(report.failures[0].kind(), ErrorKind::TooSmall);
    assert!(short.bytes().iter().all(|&byte| byte == 7));
}

#[test]
fn a_stream_arrives_in_memory_from_its_beginning() {
    let bytes = noise(300_000, 3);
    let session = StreamSender::builder("dump")
        .addressing(addressing(3))
        .rate(Rate::bytes_per_second(20_000_000))
        .announce(Duration::from_millis(400))
        .prepare()
        .unwrap();
    let staging = tempfile::tempdir().unwrap();
    let (whole, short) = (Told::of(300_000), Told::of(299_999));
    let receive = |memory: &Arc<Told>| {
        let options = options(session.ticket(), 3);
        options.into_memory(Arc::clone(memory), staging.path()).start().unwrap()
    };
    let receivers = [receive(&whole), receive(&short)];
    let sending = session.start(Cursor::new(bytes.clone())).unwrap();
    let [complete, refused] = receivers.map(|receiver| receiver.join().unwrap());
    assert_eq!(complete.outcome, Outcome::Complete, "{complete:?}");
    assert!(whole.bytes() == bytes);
    assert_eq!(refused.failures[0].kind(), ErrorKind::TooSmall, "{refused:?}");
    sending.join().unwrap();
}

#[test]
fn parts_need_a_manifest() {
    let fcast = Format::Fcast(FcastFormat::default());
    let builder = Sender::from_bytes("bytes", vec![1; 100]).parts(Some(0..10)).format(fcast);
    assert_eq!(builder.prepare().err().unwrap().kind(), ErrorKind::Range);
}
