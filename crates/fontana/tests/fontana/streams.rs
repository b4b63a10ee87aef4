//! Real streams over loopback multicast: real sockets, programs' readers and writers.

use fontana::{
    Addressing, ErrorKind, FontanaReception, Outcome, PreparedStream, Rate, ReceiveFormat,
    Receiver, ReceiverBuilder, ReportCollection, SendEvent, SimulatedLoss, StreamRedundancy,
    StreamSender, StreamSenderBuilder, Verified, wire::Ticket,
};
use std::io::{self, Cursor, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Source symbols of a fragment here, of 1 024 bytes each.
const K: u32 = 200;
const FRAGMENT: usize = 200 * 1024;

/// A group and port that no other test of this process uses.
fn addressing(test: u8) -> Addressing {
    let group = Ipv4Addr::new(239, 255, 93, test);
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    };
    (0..bytes).map(step).collect()
}

/// A consumer that stores its input.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn prepare(addressing: &Addressing) -> PreparedStream {
    StreamSender::builder("dump")
        .addressing(addressing.clone())
        .rate(Rate::bytes_per_second(20_000_000))
        .block_symbols(Some(K))
        .symbol_size(Some(1024))
        .announce(Duration::from_millis(400))
        .prepare()
        .unwrap()
}

fn options(ticket: &Ticket, addressing: &Addressing) -> ReceiverBuilder {
    Receiver::from_ticket(ticket)
        .addressing(addressing.clone())
        .timeout(Some(Duration::from_secs(40)))
}

#[test]
fn streams_of_every_length_reach_programs_and_directories() {
    let directory = tempfile::tempdir().unwrap();
    for (test, length) in (1..).zip([0, 1, FRAGMENT, FRAGMENT + 1, 12_000_000]) {
        let (bytes, addressing) = (noise(length), addressing(test));
        let session = prepare(&addressing);
        let ticket = session.ticket().clone();
        let kept = Kept::default();
        let staging = directory.path().join("staging");
        let options = || options(&ticket, &addressing);
        let piped = options()
            .simulated_loss(Some(SimulatedLoss { probability: 0.05, seed: 3 }))
            .into_pipe(kept.clone(), &staging)
            .start()
            .unwrap();
        let into = directory.path().join(format!("into {length}"));
        let filed = options().into_dir(&into).start().unwrap();
        let sending = session.start(Cursor::new(bytes.clone())).unwrap();
        for receiver in [piped, filed] {
            let summary = receiver.join().unwrap();
            assert_eq!(summary.outcome, Outcome::Complete, "{summary:?}");
            assert_eq!(summary.verified, Some(Verified::Signed));
            assert_eq!(summary.bytes, length as u64);
            assert_eq!(summary.delivery.unwrap().bytes, length as u64);
        }
        assert!(*kept.0.lock().unwrap() == bytes, "{length}");
        assert!(std::fs::read(into.join("dump")).unwrap() == bytes, "{length}");
        for left in [&staging, &into] {
            let count = std::fs::read_dir(left).unwrap().count();
            assert_eq!(count, usize::from(left == &into), "nothing else is left");
        }
        let summary = sending.join().unwrap();
        assert_eq!(summary.outcome, Outcome::Complete);
    }
}

/// A producer of a byte every 150 ms, which then fails or ends.
struct Slow {
    left: u8,
    end: Option<io::ErrorKind>,
}

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return self.end.map_or(Ok(0), |kind| Err(kind.into()));
        }
        std::thread::sleep(Duration::from_millis(150));
        self.left -= 1;
        out[0] = self.left;
        Ok(1)
    }
}

#[test]
fn a_producer_that_is_slow_or_fails_is_sent_as_far_as_it_came() {
    for (test, end) in [(11, None), (12, Some(io::ErrorKind::InvalidData))] {
        let directory = tempfile::tempdir().unwrap();
        let addressing = addressing(test);
        let session = prepare(&addressing);
        let kept = Kept::default();
        let receiving = options(session.ticket(), &addressing)
            .into_pipe(kept.clone(), directory.path())
            .start()
            .unwrap();
        let sending = session.start(Slow { left: 12, end }).unwrap();
        let (sent, received) = (sending.join().unwrap(), receiving.join().unwrap());
        assert_eq!(*kept.0.lock().unwrap(), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        match end {
            None => {
                assert_eq!(
                    (sent.outcome, received.outcome),
                    (Outcome::Complete, Outcome::Complete)
                );
            }
            Some(_) => {
                assert_eq!((sent.outcome, received.outcome), (Outcome::Io, Outcome::Incomplete));
                let message = received.failures[0].to_string();
                assert!(message.contains("the sender broke the stream off"), "{message}");
                assert!(message.contains("the output has 12 bytes"), "{message}");
            }
        }
    }
}

/// A consumer that takes this many bytes, then blocks or closes its end.
struct Limited {
    left: usize,
    closes: bool,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 && self.closes {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.left == 0 {
            // Blocks until the test ends.
            loop {
                std::thread::park();
            }
        }
        let count = bytes.len().min(self.left);
        self.left -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_consumer_that_closes_or_stalls_ends_its_own_receiver_only() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, addressing) = (noise(6_000_000), addressing(21));
    let session = prepare(&addressing);
    let ticket = session.ticket().clone();
    let options = || options(&ticket, &addressing);
    let limited = |closes| Limited { left: 300_000, closes };
    let kept = Kept::default();
    let good = options().into_pipe(kept.clone(), directory.path()).start().unwrap();
    let closing = options().into_pipe(limited(true), directory.path()).start().unwrap();
    let mut small = FontanaReception::from_ticket(&ticket);
    small.stream_window = 10 * FRAGMENT as u64;
    let small = options().format(ReceiveFormat::Fontana(small));
    let stalled = small.into_pipe(limited(false), directory.path()).start().unwrap();
    let sending = session.start(Cursor::new(bytes.clone())).unwrap();

    let summary = closing.join().unwrap();
    assert_eq!(summary.outcome, Outcome::Interrupted, "{summary:?}");
    assert!(summary.delivery.unwrap().closed_by_consumer && summary.failures.is_empty());
    let summary = stalled.join().unwrap();
    assert_eq!(summary.outcome, Outcome::Incomplete, "{summary:?}");
    let message = summary.failures[0].to_string();
    assert!(message.contains("the consumer is slower than the stream"), "{message}");
    assert!(message.contains("the output has 300000 bytes"), "{message}");
    assert_eq!(summary.failures[0].kind(), ErrorKind::StreamBehind);
    let summary = good.join().unwrap();
    assert_eq!(summary.outcome, Outcome::Complete, "{summary:?}");
    assert!(*kept.0.lock().unwrap() == bytes);
    assert_eq!(sending.join().unwrap().outcome, Outcome::Complete);
}

#[test]
fn receivers_are_told_that_a_sender_was_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let addressing = addressing(31);
    let session = prepare(&addressing);
    let receiving = options(session.ticket(), &addressing)
        .into_pipe(io::sink(), directory.path())
        .start()
        .unwrap();
    let sending = session.start(io::repeat(1)).unwrap();
    std::thread::sleep(Duration::from_millis(900));
    sending.stop();
    assert_eq!(sending.join().unwrap().outcome, Outcome::Interrupted);
    let summary = receiving.join().unwrap();
    assert_eq!(summary.outcome, Outcome::Incomplete, "{summary:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Counts what is read of it. It has no end.
struct Counted(Arc<AtomicUsize>);

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.fetch_add(out.len(), Ordering::Relaxed);
        Ok(out.len())
    }
}

#[test]
fn a_stream_that_waits_for_receivers_reads_no_more_than_its_buffers_hold() {
    let addressing = addressing(41);
    let mut reports = ReportCollection::default();
    reports.trust_unauthenticated = true;
    reports.deadline = Some(Duration::from_millis(1500));
    let session = StreamSender::builder("dump")
        .addressing(addressing)
        .block_symbols(Some(K))
        .symbol_size(Some(1024))
        .reports(Some(reports))
        .wait_for_receivers(1)
        .prepare()
        .unwrap();
    let read = Arc::new(AtomicUsize::new(0));
    let sending = session.start(Counted(Arc::clone(&read))).unwrap();
    let awaited: Vec<_> = sending
        .events()
        .filter_map(|event| match event {
            SendEvent::Awaited(awaited) => Some((awaited.receivers, awaited.known)),
            _ => None,
        })
        .collect();
    assert_eq!(awaited, [(1, 0)]);
    let report = sending.join().unwrap();
    assert_eq!(report.outcome, Outcome::ReceiversIncomplete);
    assert_eq!(report.failures[0].kind(), ErrorKind::ReceiversAbsent);
    assert_eq!(report.stats.source_symbols, 0);
    // One fragment that is cut, one that waits, and six chunks around their queue.
    let most = 2 * FRAGMENT + 6 * (64 << 10);
    let read = read.load(Ordering::Relaxed);
    assert!((FRAGMENT..=most).contains(&read), "{read} bytes of at most {most}");
}

#[test]
fn a_stream_needs_reports_to_wait_for_receivers_or_to_follow_them() {
    let refused = |builder: StreamSenderBuilder| {
        let error = builder.addressing(addressing(42)).prepare().map(|_| ()).unwrap_err();
        error.to_string()
    };
    let builder = || StreamSender::builder("dump");
    let message = refused(builder().wait_for_receivers(1));
    assert!(message.contains("before receivers can be counted"), "{message}");
    let reported = StreamRedundancy::Reported { permille: 100 };
    let message = refused(builder().redundancy(reported));
    assert!(message.contains("with which receivers request"), "{message}");
    // Any host could send them.
    let reporting = || builder().reports(Some(ReportCollection::default()));
    for builder in [reporting().wait_for_receivers(1), reporting().redundancy(reported)] {
        let message = refused(builder);
        assert!(message.contains("a group key"), "{message}");
    }
}
