//! Panics of a session's threads, over loopback multicast: the session ends with an error, and the
//! next run resumes.
#![allow(clippy::unwrap_used, clippy::panic)]

use fontana::wire::Ticket;
use fontana::{
    Addressing, ErrorKind, Outcome, Rate, ReceiveEvent, Receiver, ReceiverBuilder, SendEvent,
    Sender, SimulatedLoss, StreamSender,
};
use fontana_testing::noise;
use std::io::{self, Cursor, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use tracing::span;

/// The thread that panics when it next logs an event.
static NEXT: Mutex<Option<&str>> = Mutex::new(None);

/// A subscriber that panics in the thread of [`NEXT`]: a defect of the code that logs.
struct Saboteur;

impl tracing::Subscriber for Saboteur {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        let thread = std::thread::current();
        let is_next = |next: &mut &str| thread.name() == Some(*next);
        let now = NEXT.lock().unwrap_or_else(PoisonError::into_inner).take_if(is_next);
        if let Some(name) = now {
            panic!("sabotage of {name}");
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Threads of sessions have the same names in all tests: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static START: Once = Once::new();
    START.call_once(|| tracing::subscriber::set_global_default(Saboteur).unwrap());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sabotage(thread: &'static str) {
    *NEXT.lock().unwrap() = Some(thread);
}

/// A group and port that no other test of this process uses.
fn addressing(test: u8) -> Addressing {
    let group = Ipv4Addr::new(239, 255, 94, test);
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

fn options(ticket: &Ticket, addressing: &Addressing) -> ReceiverBuilder {
    Receiver::from_ticket(ticket)
        .addressing(addressing.clone())
        .timeout(Some(Duration::from_secs(30)))
}

fn sending(path: &Path, addressing: &Addressing) -> Sender {
    let send = Sender::builder([path]).addressing(addressing.clone()).block_symbols(300);
    send.rate(Rate::bytes_per_second(20_000_000)).start().unwrap()
}

#[test]
fn a_reception_that_a_panic_has_ended_is_resumed() {
    let _turn = alone();
    for (test, thread) in [(1, "recover"), (2, "disk")] {
        let directory = tempfile::tempdir().unwrap();
        let (file, into) = (directory.path().join("file"), directory.path().join("into"));
        let content = noise(3_000_000, 5);
        std::fs::write(&file, &content).unwrap();
        let addressing = addressing(test);
        let sender = sending(&file, &addressing);
        let options = || {
            let loss = SimulatedLoss { probability: 0.2, seed: 3 };
            let ticket = &sender.description().ticket;
            options(ticket, &addressing).simulated_loss(Some(loss)).into_dir(&into)
        };
        sabotage(thread);
        let error = options().start().unwrap().join().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panic, "{error}");
        assert_eq!(error.outcome(), Outcome::InternalError);
        let expected = format!("thread {thread:?} panicked: sabotage of {thread}");
        assert_eq!(error.to_string(), expected);
        assert!(!into.join("file").exists());

        let receiver = options().start().unwrap();
        let mut resumed = 0;
        for event in receiver.events() {
            if let ReceiveEvent::Resumed { symbols, .. } = event {
                resumed = symbols;
            }
        }
        let report = receiver.join().unwrap();
        assert_eq!(report.outcome, Outcome::Complete, "{report:?}");
        assert!(resumed >= 100, "{resumed} symbols of the first run");
        assert!(std::fs::read(into.join("file")).unwrap() == content);
        assert_eq!(std::fs::read_dir(&into).unwrap().count(), 1, "nothing else is left");
        sender.stop();
        sender.join().unwrap();
    }
}

#[test]
fn a_panic_while_encoding_ends_a_sender() {
    let _turn = alone();
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    // The blocks are solved when most of the source symbols are prepared, in this order.
    for (file, length) in [(&first, 100_000), (&second, 6_000_000)] {
        std::fs::write(file, noise(length, 6)).unwrap();
    }
    let send = Sender::builder([&first, &second]).addressing(addressing(3)).workers(2);
    let send = send.block_symbols(500);
    let prepared = send.rate(Rate::bytes_per_second(20_000_000)).prepare().unwrap();
    // A worker that solves a block of it ahead logs that it cannot.
    std::fs::OpenOptions::new().write(true).open(&first).unwrap().set_len(1000).unwrap();
    sabotage("encode");
    let sender = prepared.start().unwrap();
    for event in sender.events() {
        if let SendEvent::Progress(progress) = event
            && progress.elapsed > Duration::from_secs(20)
        {
            sender.stop();
        }
    }
    let error = sender.join().unwrap_err();
    assert_eq!(error.to_string(), "thread \"encode\" panicked: sabotage of encode");
    assert_eq!(error.outcome(), Outcome::InternalError);
}

/// A reader and a writer with a defect, after this many bytes.
struct Defective(usize);

impl Defective {
    fn pass(&mut self, bytes: usize) -> usize {
        assert!(self.0 > 0, "a defect");
        let count = bytes.min(self.0);
        self.0 -= count;
        count
    }
}

impl Read for Defective {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.pass(out.len()))
    }
}

impl Write for Defective {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.pass(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stream_whose_reader_panics_does_not_end_as_if_it_were_complete() {
    let _turn = alone();
    let (addressing, directory) = (addressing(4), tempfile::tempdir().unwrap());
    let stream = StreamSender::builder("dump").addressing(addressing.clone()).prepare().unwrap();
    let options = options(stream.ticket(), &addressing).into_dir(directory.path());
    let receiver = options.start().unwrap();
    let sent = stream.start(Defective(500_000)).unwrap().join().unwrap();
    assert_eq!(sent.outcome, Outcome::InternalError);
    assert_eq!(sent.failures[0].to_string(), "thread \"read\" panicked: a defect");
    let received = receiver.join().unwrap();
    assert_eq!(received.outcome, Outcome::Incomplete, "{received:?}");
    assert_eq!(received.failures[0].kind(), ErrorKind::StreamBySender);
}

#[test]
fn a_writer_that_panics_ends_the_reception() {
    let _turn = alone();
    let (addressing, directory) = (addressing(5), tempfile::tempdir().unwrap());
    let stream = StreamSender::builder("dump").addressing(addressing.clone()).prepare().unwrap();
    let options = options(stream.ticket(), &addressing);
    let receiver = options.into_pipe(Defective(100_000), directory.path()).start().unwrap();
    let sender = stream.start(Cursor::new(noise(500_000, 7))).unwrap();
    let received = receiver.join().unwrap();
    assert_eq!(received.outcome, Outcome::InternalError, "{received:?}");
    assert_eq!(received.failures[0].to_string(), "thread \"deliver\" panicked: a defect");
    assert_eq!(sender.join().unwrap().outcome, Outcome::Complete);
}
