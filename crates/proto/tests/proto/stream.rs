//! Streams in virtual time: real endpoints, every job run at once, on bytes in memory.

use crate::support::answers::{COLLECTOR, collection, received};
use crate::support::world::{ReceiverDriver, T, TSI, hash, noise, receiver_config, source};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, PlanCache, Scratch};
use fontana_proto::report::{Authority, Expected, RateConfig, Reporter, ReporterConfig};
use fontana_proto::{
    BatchId, Destination, Endpoint, HeadExpiry, Instant, Output, Pacer, ReceiverConfig,
    ReceiverEvent, RepairBy, SendDone, SendJob, SenderEvent, StreamBreak, StreamRedundancy,
    StreamSender, StreamSenderConfig, StreamStart, Verified, repair_symbols,
};
use fontana_wire::{
    InstanceId, Packet, ReceiverId, ReceiverLabel, RelativePath, SecretKey, Toi, Tsi,
    UnverifiedHead,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Most source symbols of a fragment here.
const K: u32 = 100;
const FRAGMENT: usize = K as usize * T as usize;
/// Repair symbols that are made for requests, per thousand source symbols.
const REQUESTED: u32 = 300;

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed(&[seed; 32])
}

/// A stream and its producer, which has all bytes from the beginning.
struct Stream {
    sender: StreamSender,
    bytes: Vec<u8>,
    taken: usize,
    batches: BTreeMap<BatchId, Vec<Vec<u8>>>,
    plans: PlanCache,
    most_batches: usize,
    finished_at: Option<Instant>,
    /// When its receivers are waited for no longer.
    over_at: Option<Instant>,
    redundancy: StreamRedundancy,
}

/// 61 fragments a second.
const RATE: u64 = 400_000;

impl Stream {
    fn new(bytes: Vec<u8>, seed: u8, announce: Duration) -> Self {
        Self::of_key(bytes, seed, &key(seed), announce)
    }

    fn of_key(bytes: Vec<u8>, instance: u8, signer: &SecretKey, announce: Duration) -> Self {
        Self::with_config(bytes, Self::config(instance, signer, announce, RATE))
    }

    fn of_rate(bytes: Vec<u8>, rate_bytes_per_second: u64) -> Self {
        Self::with_config(bytes, Self::config(1, &key(1), Duration::ZERO, rate_bytes_per_second))
    }

    fn config(
        instance: u8,
        signer: &SecretKey,
        announce: Duration,
        rate_bytes_per_second: u64,
    ) -> StreamSenderConfig {
        StreamSenderConfig {
            expiry: None,
            seal: None,
            tsi: TSI,
            instance: InstanceId([instance; 16]),
            signer: signer.clone(),
            first_version: 1000,
            name: RelativePath::new("dump").unwrap(),
            symbol_size: T,
            control_symbol_size: 1300,
            max_symbols: K,
            redundancy: StreamRedundancy::Fixed { permille: 100 },
            requested_permille: REQUESTED,
            rate_bytes_per_second,
            packet_overhead: 28,
            peak_window: Pacer::PEAK_WINDOW,
            start: StreamStart::After(announce),
            seed: 5,
        }
    }

    fn with_config(bytes: Vec<u8>, config: StreamSenderConfig) -> Self {
        Self {
            redundancy: config.redundancy,
            sender: StreamSender::new(config).unwrap(),
            bytes,
            taken: 0,
            batches: BTreeMap::new(),
            plans: PlanCache::new(4),
            most_batches: 0,
            finished_at: None,
            over_at: None,
        }
    }

    /// Adds as many fragments as the sender accepts.
    fn feed(&mut self) {
        while self.sender.wants_fragment() && self.taken < self.bytes.len() {
            let end = self.bytes.len().min(self.taken + FRAGMENT);
            let part = self.bytes[self.taken..end].to_vec();
            self.taken = end;
            self.push(&part);
        }
        if self.taken == self.bytes.len() {
            self.sender.finish(true);
        }
    }

    /// The stream with repair that receivers request, of whom it waits for so many.
    fn repaired(bytes: Vec<u8>, receivers: u32) -> Self {
        let redundancy = StreamRedundancy::Reported { permille: 100 };
        let start = StreamStart::WhenFollowed;
        let config = Self::config(5, &key(1), Duration::ZERO, RATE / 3);
        let stream = Self::with_config(bytes, StreamSenderConfig { redundancy, start, ..config });
        stream.following(receivers)
    }

    /// The stream with receivers that report, and that it waits for.
    fn following(self, waits_for: u32) -> Self {
        let on_request = matches!(self.redundancy, StreamRedundancy::Reported { .. });
        let repair = RepairBy::Stream { waits_for, on_request };
        let config = collection(repair, Expected::Count(waits_for), 1);
        Self { sender: self.sender.with_collection(config, Instant::ZERO), ..self }
    }

    fn push(&mut self, part: &[u8]) {
        let number = self.sender.push_fragment(part.len() as u32, hash(part)).unwrap();
        let symbols: Vec<Vec<u8>> = part
            .chunks(T.into())
            .map(|chunk| {
                let mut symbol = chunk.to_vec();
                symbol.resize(T.into(), 0);
                symbol
            })
            .collect();
        let k = symbols.len() as u32;
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let plan = self.plans.source_plan(scheme, k).unwrap();
        let load = |esi: Esi, out: &mut [u8]| {
            out.copy_from_slice(&symbols[esi.0 as usize]);
            Ok::<(), ()>(())
        };
        let block = plan.execute(T.into(), load, Scratch::default()).unwrap();
        let repair = (k..k + self.redundancy.prepared(k, REQUESTED)).map(|esi| {
            let mut symbol = vec![0; T.into()];
            block.write_symbol(Esi(esi), &mut symbol);
            symbol
        });
        self.batches.insert(BatchId(2 * u64::from(number) + 1), repair.collect());
        self.batches.insert(BatchId(2 * u64::from(number)), symbols);
        self.most_batches = self.most_batches.max(self.batches.len());
    }

    fn poll(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        let mut header = Vec::new();
        while let Some(output) = self.sender.poll_output(now, &mut header) {
            match output {
                Output::Transmit { symbol, .. } => {
                    let mut datagram = std::mem::take(&mut header);
                    if let Some(symbol) = symbol {
                        datagram.extend(&self.batches[&symbol.batch][symbol.index as usize]);
                    }
                    datagrams.push(datagram);
                }
                Output::Job(SendJob::Release { batch }) => {
                    self.batches.remove(&batch).expect("released once");
                }
                Output::Job(SendJob::Sign(call)) => {
                    let call = call.emit(&SecretKey::from_seed(&[7; 32]));
                    self.sender.handle_done(now, SendDone::Signed(call));
                }
                Output::Event(SenderEvent::Finished) => self.finished_at = Some(now),
                Output::Event(
                    SenderEvent::Report(_) | SenderEvent::Awaited(_) | SenderEvent::RateChanged(_),
                ) => {}
                Output::Event(SenderEvent::Over) => self.over_at = Some(now),
                other => panic!("a stream's sender asked for {other:?}"),
            }
        }
        datagrams
    }
}

/// Runs until the sender has finished, or `limit`; calls `each` every millisecond. The datagrams
/// pass through `path`, which may lose or reorder them.
fn run(
    stream: &mut Stream,
    receivers: &mut [ReceiverDriver],
    mut path: impl FnMut(Instant, Vec<Vec<u8>>) -> Vec<Vec<u8>>,
    mut each: impl FnMut(Instant, &mut Stream, &mut [ReceiverDriver]),
) -> Instant {
    let mut now = Instant::ZERO;
    receivers.iter_mut().for_each(|receiver| receiver.timeout(now));
    while stream.finished_at.is_none() && now < Instant::ZERO + Duration::from_secs(120) {
        each(now, stream, receivers);
        for datagram in path(now, stream.poll(now)) {
            for receiver in receivers.iter_mut() {
                receiver.maybe_hear(now, source(1), &datagram);
            }
        }
        now = now + Duration::from_millis(1);
        receivers.iter_mut().for_each(|receiver| receiver.timeout(now));
    }
    assert!(stream.finished_at.is_some(), "the sender never ends");
    now
}

fn feed(_: Instant, stream: &mut Stream, _: &mut [ReceiverDriver]) {
    stream.feed();
}

fn straight(_: Instant, datagrams: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    datagrams
}

fn receiver(loss: f64, seed: u64) -> ReceiverDriver {
    ReceiverDriver::new(receiver_config(), loss, seed)
}

fn broken(receiver: &ReceiverDriver) -> Option<(u64, StreamBreak)> {
    receiver.events.iter().find_map(|event| match event {
        ReceiverEvent::StreamBroken { at, reason } => Some((*at, *reason)),
        _ => None,
    })
}

fn assert_whole(receiver: &ReceiverDriver, bytes: &[u8]) {
    assert_eq!(broken(receiver), None);
    assert!(receiver.runner.handed_over == bytes, "{} bytes", receiver.runner.handed_over.len());
    assert!(receiver.complete_at.is_some());
    // A receiver that reports stays for roll calls.
    let stays = receiver.endpoint.is_known_to_sender().is_some();
    assert_eq!(receiver.joined.is_empty(), !stays, "the group was left");
}

#[test]
fn streams_of_every_length_arrive_in_order_at_no_and_some_loss() {
    for length in [0, 1, 63, 64, 65, FRAGMENT - 1, FRAGMENT, FRAGMENT + 1, 40 * FRAGMENT + 77] {
        let bytes = noise(length, 3);
        let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
        let mut receivers: Vec<_> =
            [0.0, 0.01, 0.1].into_iter().map(|loss| receiver(loss, 7)).collect();
        run(&mut stream, &mut receivers, straight, feed);
        receivers.iter().for_each(|receiver| assert_whole(receiver, &bytes));
        assert!(stream.batches.is_empty(), "everything was released");
        assert!(stream.most_batches <= 70, "{}", stream.most_batches);
    }
}

#[test]
fn a_stream_costs_little_more_than_its_bytes_and_its_repair_share() {
    let mut stream = Stream::new(noise(100 * FRAGMENT, 3), 1, Duration::ZERO);
    let mut receivers = [receiver(0.0, 1)];
    run(&mut stream, &mut receivers, straight, feed);
    let stats = stream.sender.stats();
    let (k, repair) = (u64::from(K), u64::from(repair_symbols(K, 100)));
    assert_eq!((stats.source_symbols, stats.repair_symbols), (100 * k, 100 * repair));
    assert!(stats.control_packets < stats.packets / 10, "{stats:?}");
    assert!(receivers[0].inefficiency() < 1.6);
}

#[test]
fn a_fast_stream_has_more_heads_in_a_second_than_a_receiver_checks_of_strangers() {
    let bytes = noise(400 * FRAGMENT, 3);
    let mut stream = Stream::of_rate(bytes.clone(), 10 * RATE);
    let mut receivers = [receiver(0.0, 1)];
    run(&mut stream, &mut receivers, straight, feed);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn the_heads_of_a_stream_are_renewed_before_they_expire() {
    let config = StreamSenderConfig {
        expiry: Some(HeadExpiry {
            lifetime: Duration::from_secs(30),
            started_at_unix_seconds: 1_000,
        }),
        ..Stream::config(1, &key(1), Duration::ZERO, RATE)
    };
    let mut stream = Stream::with_config(noise(100, 3), config);
    let mut left = Vec::new();
    let path = |now: Instant, datagrams: Vec<Vec<u8>>| {
        for datagram in &datagrams {
            let head = datagram.windows(7).position(|bytes| bytes == b"FONTANA");
            if let Some(at) = head.filter(|_| Packet::parse(datagram).is_ok()) {
                let head = UnverifiedHead::parse(&datagram[at..]).unwrap();
                let head = head.verify(&key(1).public_key()).unwrap();
                let expires = head.expires_unix_seconds.unwrap().get();
                left.push(expires - 1_000 - now.as_nanos() / 1_000_000_000);
            }
        }
        datagrams
    };
    let mut receivers = [receiver(0.0, 1)];
    let each = |now: Instant, stream: &mut Stream, _: &mut [ReceiverDriver]| {
        // The producer pauses after its only fragment.
        if stream.taken == 0 {
            stream.taken = stream.bytes.len();
            let part = stream.bytes.clone();
            stream.push(&part);
        }
        if now >= Instant::ZERO + Duration::from_secs(60) {
            stream.sender.finish(true);
        }
    };
    run(&mut stream, &mut receivers, path, each);
    assert!(left.len() > 60 && left.iter().all(|left| (20..=30).contains(left)), "{left:?}");
    assert_whole(&receivers[0], &noise(100, 3));
}

#[test]
fn forged_heads_of_another_source_do_not_delay_a_stream() {
    let bytes = noise(200 * FRAGMENT, 3);
    let mut stream = Stream::of_rate(bytes.clone(), 2 * RATE);
    let mut receivers = [receiver(0.0, 1)];
    let head = RefCell::new(Vec::new());
    let path = |_: Instant, datagrams: Vec<Vec<u8>>| {
        let is_head = |datagram: &&Vec<u8>| {
            Packet::parse(datagram).is_ok_and(|packet| packet.header.toi == Some(Toi::HEAD))
        };
        if let Some(latest) = datagrams.iter().rfind(is_head) {
            head.borrow_mut().clone_from(latest);
        }
        datagrams
    };
    // A thousand heads a second, each with another signature.
    let mut forged = 0_u32;
    let each = |now: Instant, stream: &mut Stream, receivers: &mut [ReceiverDriver]| {
        stream.feed();
        let mut datagram = head.borrow().clone();
        if let Some(signature) = datagram.last_chunk_mut::<4>() {
            forged += 1;
            *signature = forged.to_be_bytes();
            receivers
                .iter_mut()
                .for_each(|receiver| receiver.maybe_hear(now, source(2), &datagram));
        }
    };
    run(&mut stream, &mut receivers, path, each);
    assert!(forged > 1000, "{forged}");
    assert_whole(&receivers[0], &bytes);
}

/// Heads in the name of the stream's own address, whose signatures are wrong.
#[test]
fn forged_heads_that_are_repeated_are_checked_once() {
    let bytes = noise(200 * FRAGMENT, 3);
    let mut stream = Stream::of_rate(bytes.clone(), 2 * RATE);
    let mut receivers = [receiver(0.0, 1)];
    let forged = RefCell::new(Vec::new());
    let path = |_: Instant, datagrams: Vec<Vec<u8>>| {
        let is_head = |datagram: &&Vec<u8>| {
            Packet::parse(datagram).is_ok_and(|packet| packet.header.toi == Some(Toi::HEAD))
        };
        let mut forged = forged.borrow_mut();
        if let Some(head) = datagrams.iter().find(is_head).filter(|_| forged.is_empty()) {
            forged.extend((0..4_u8).map(|number| {
                // Versions that the stream does not reach, under the signature of another one.
                let mut head = head.clone();
                let start = head.windows(7).position(|bytes| bytes == b"FONTANA").unwrap();
                (head[start + 24], head[start + 31]) = (1, number);
                head
            }));
        }
        datagrams
    };
    let mut milliseconds = 0;
    let each = |now: Instant, stream: &mut Stream, receivers: &mut [ReceiverDriver]| {
        stream.feed();
        milliseconds += 1;
        for datagram in forged.borrow().iter() {
            receivers[0].maybe_hear(now, source(1), datagram);
        }
    };
    run(&mut stream, &mut receivers, path, each);
    assert!(milliseconds > 1000, "{milliseconds}");
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn reordered_datagrams_change_nothing() {
    let bytes = noise(20 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.02, 1)];
    // The packets of every five milliseconds are reversed.
    let mut held = Vec::new();
    let path = |now: Instant, mut datagrams: Vec<Vec<u8>>| {
        held.append(&mut datagrams);
        let due = (now.as_nanos() / 1_000_000).is_multiple_of(5);
        if due { held.drain(..).rev().collect() } else { Vec::new() }
    };
    run(&mut stream, &mut receivers, path, feed);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn a_burst_that_removes_a_tenth_of_a_fragment_is_recovered() {
    let bytes = noise(30 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.0, 1)];
    let mut count = 0;
    // Of every 500 packets, 25 in a row are lost.
    let path = |_: Instant, datagrams: Vec<Vec<u8>>| {
        datagrams
            .into_iter()
            .filter(|_| {
                count += 1;
                count % 500 >= 25
            })
            .collect()
    };
    run(&mut stream, &mut receivers, path, feed);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn a_pausing_producer_loses_nothing_and_delays_no_receiver() {
    let mut stream = Stream::new(Vec::new(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.05, 1)];
    let mut sent = Vec::new();
    // Three bytes every two seconds, ten times.
    let each = |now: Instant, stream: &mut Stream, receivers: &mut [ReceiverDriver]| {
        let millis = now.as_nanos() / 1_000_000;
        if millis.is_multiple_of(2000) && millis < 20_000 {
            let part = noise(3, millis);
            stream.push(&part);
            sent.extend(part);
        }
        if millis % 2000 == 1500 && millis < 20_000 {
            assert!(receivers[0].runner.handed_over == sent, "at {millis} ms");
        }
        if millis == 20_500 {
            stream.sender.finish(true);
        }
    };
    run(&mut stream, &mut receivers, straight, each);
    assert_whole(&receivers[0], &sent);
    // Between the fragments there is little but head and index.
    assert!(stream.sender.stats().packets < 1500, "{:?}", stream.sender.stats());
}

#[test]
fn a_receiver_that_joins_after_the_first_fragments_ends_as_late() {
    let mut stream = Stream::new(noise(60 * FRAGMENT, 3), 1, Duration::ZERO);
    let mut late = receiver(0.0, 1);
    late.joins_at = Instant::ZERO + Duration::from_millis(1500);
    let mut receivers = [late];
    run(&mut stream, &mut receivers, straight, feed);
    assert_eq!(broken(&receivers[0]), Some((0, StreamBreak::Late)));
    assert!(receivers[0].runner.handed_over.is_empty() && receivers[0].joined.is_empty());
}

/// A stream whose fragments are all in the first index that the receiver gets: it has lost nothing,
/// and lacks what was sent before it came.
#[test]
fn a_receiver_that_joins_late_for_a_short_stream_ends_as_late() {
    let mut reasons = Vec::new();
    for millis in (5..120).step_by(5) {
        let mut stream = Stream::new(noise(6 * FRAGMENT, 3), 1, Duration::ZERO);
        let mut late = receiver(0.0, 1);
        late.joins_at = Instant::ZERO + Duration::from_millis(millis);
        let mut receivers = [late];
        run(&mut stream, &mut receivers, straight, feed);
        reasons.extend(broken(&receivers[0]).map(|(at, reason)| (millis, at, reason)));
    }
    let is_late =
        |&(_, at, reason): &(u64, u64, StreamBreak)| (at, reason) == (0, StreamBreak::Late);
    assert!(reasons.len() > 10 && reasons.iter().all(is_late), "{reasons:?}");
}

#[test]
fn a_receiver_that_comes_while_the_stream_is_announced_gets_all_of_it() {
    let bytes = noise(5 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::from_secs(3));
    let mut late = receiver(0.01, 1);
    late.joins_at = Instant::ZERO + Duration::from_millis(2500);
    let mut receivers = [late];
    run(&mut stream, &mut receivers, straight, feed);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn after_a_lost_fragment_nothing_is_delivered_and_the_gap_is_reported() {
    let bytes = noise(40 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.0, 1)];
    // Half of everything is lost from 500 to 700 ms.
    let mut count = 0;
    let path = |now: Instant, datagrams: Vec<Vec<u8>>| {
        let millis = now.as_nanos() / 1_000_000;
        let lossy = (500..700).contains(&millis);
        let survives = |_: &Vec<u8>| {
            count += 1;
            !lossy || count % 2 == 0
        };
        datagrams.into_iter().filter(survives).collect()
    };
    run(&mut stream, &mut receivers, path, feed);
    let (at, reason) = broken(&receivers[0]).unwrap();
    assert_eq!(reason, StreamBreak::Lost);
    assert!(at > 0 && (at as usize).is_multiple_of(FRAGMENT), "{at}");
    assert!(receivers[0].runner.handed_over == bytes[..at as usize]);
    assert_eq!(receivers[0].complete_at, None);
}

/// A fragment is whole if three more symbols of it arrive from the sender than it has source
/// symbols.
#[test]
fn forged_symbols_in_every_fragment_do_not_end_a_stream() {
    const FORGED: u32 = 2;
    let sent = K + repair_symbols(K, 100);
    for (honest, suffices) in [(K + 3, true), (K + 2, false)] {
        let bytes = noise(8 * FRAGMENT, 3);
        let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
        let mut receivers = [receiver(0.0, 1)];
        let mut counts: BTreeMap<Toi, u32> = BTreeMap::new();
        // The first symbols of each fragment are replaced, and the last ones are lost.
        let path = |_: Instant, datagrams: Vec<Vec<u8>>| {
            let pass = |mut datagram: Vec<u8>| {
                let toi = Packet::parse(&datagram).unwrap().header.toi;
                let Some(toi) = toi.filter(|toi| toi.is_content()) else { return Some(datagram) };
                let count = counts.entry(toi).or_default();
                *count += 1;
                if *count <= FORGED {
                    let symbol = datagram.len() - usize::from(T)..;
                    datagram[symbol].copy_from_slice(&noise(T.into(), u64::from(*count)));
                }
                (*count <= FORGED + honest).then_some(datagram)
            };
            datagrams.into_iter().filter_map(pass).collect()
        };
        run(&mut stream, &mut receivers, path, feed);
        assert!(sent >= honest + FORGED && counts.values().all(|&count| count == sent));
        if suffices {
            assert_whole(&receivers[0], &bytes);
            assert_eq!(receivers[0].endpoint.stats().corrupt_blocks, 8);
        } else {
            assert_eq!(broken(&receivers[0]), Some((0, StreamBreak::Lost)));
        }
    }
}

#[test]
fn a_stalled_consumer_is_given_up_when_the_window_is_full_and_others_continue() {
    let bytes = noise(60 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut config = receiver_config();
    config.limits.max_stream_window_bytes = 20 * FRAGMENT as u64;
    let stalled = ReceiverDriver::new(config.clone(), 0.0, 1);
    let mut receivers = [stalled, receiver(0.01, 2)];
    let each = |now: Instant, stream: &mut Stream, receivers: &mut [ReceiverDriver]| {
        feed(now, stream, receivers);
        receivers[0].runner.consumer_is_stalled =
            receivers[0].runner.handed_over.len() >= 5 * FRAGMENT;
        assert!(receivers[0].runner.held() <= 20, "{}", receivers[0].runner.held());
    };
    run(&mut stream, &mut receivers, straight, each);
    let (at, reason) = broken(&receivers[0]).unwrap();
    assert_eq!((at as usize, reason), (5 * FRAGMENT, StreamBreak::Behind));
    assert_whole(&receivers[1], &bytes);

    // A consumer that pauses for less time than the window covers loses nothing.
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [ReceiverDriver::new(config, 0.0, 1)];
    let each = |now: Instant, stream: &mut Stream, receivers: &mut [ReceiverDriver]| {
        feed(now, stream, receivers);
        receivers[0].runner.consumer_is_stalled =
            (300..450).contains(&(now.as_nanos() / 1_000_000));
    };
    run(&mut stream, &mut receivers, straight, each);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn a_stream_that_its_sender_aborts_is_incomplete() {
    let bytes = noise(3 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.01, 1)];
    let each = |_: Instant, stream: &mut Stream, _: &mut [ReceiverDriver]| {
        while stream.sender.wants_fragment() && stream.taken < stream.bytes.len() {
            let part = stream.bytes[stream.taken..][..FRAGMENT].to_vec();
            stream.taken += FRAGMENT;
            stream.push(&part);
        }
        if stream.taken == stream.bytes.len() {
            stream.sender.finish(false);
        }
    };
    run(&mut stream, &mut receivers, straight, each);
    assert_eq!(broken(&receivers[0]), Some((bytes.len() as u64, StreamBreak::BySender)));
    assert!(receivers[0].runner.handed_over == bytes, "what had been sent is right");
}

#[test]
fn replayed_heads_and_indexes_change_nothing() {
    let bytes = noise(40 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.01, 1)];
    // All control packets of the beginning, repeated.
    let mut recorded: Vec<Vec<u8>> = Vec::new();
    let mut count = 0;
    let path = |now: Instant, datagrams: Vec<Vec<u8>>| {
        let mut out = Vec::new();
        for datagram in datagrams {
            // Control packets carry EXT_FTI: a header of eight words.
            if now < Instant::ZERO + Duration::from_millis(600) && datagram[2] == 8 {
                recorded.push(datagram.clone());
            }
            out.push(datagram);
            count += 1;
            out.extend(recorded.get(count % (recorded.len() + 1)).cloned());
        }
        out
    };
    run(&mut stream, &mut receivers, path, feed);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn a_forged_session_with_another_key_or_instance_is_not_accepted() {
    let bytes = noise(30 * FRAGMENT, 3);
    let forged = noise(30 * FRAGMENT, 4);
    for with_ticket in [true, false] {
        let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
        // The same TSI, from the same address; one with another key, and a recorded one: the same
        // key in an earlier run.
        let mut forgers = [
            Stream::new(forged.clone(), 2, Duration::ZERO),
            Stream::of_key(forged.clone(), 9, &key(1), Duration::ZERO),
        ];
        let mut config: ReceiverConfig = receiver_config();
        config.expectation.publisher = with_ticket.then(|| key(1).public_key());
        let mut receivers = [ReceiverDriver::new(config, 0.01, 1)];
        let path = |now: Instant, mut datagrams: Vec<Vec<u8>>| {
            for forger in &mut forgers {
                forger.feed();
                // Their heads and indexes only: their symbols would corrupt fragments, which
                // another test covers. The receiver has received the real stream first.
                let control = forger.poll(now).into_iter().filter(|datagram| datagram[2] == 8);
                if now > Instant::ZERO + Duration::from_millis(100) {
                    datagrams.extend(control);
                }
            }
            datagrams
        };
        run(&mut stream, &mut receivers, path, feed);
        assert_whole(&receivers[0], &bytes);
        let accepted = receivers[0].events.iter().find_map(|event| match event {
            ReceiverEvent::StreamAccepted { key, verified, .. } => Some((*key, *verified)),
            _ => None,
        });
        let trust = if with_ticket { Verified::Signed } else { Verified::Digest };
        assert_eq!(accepted, Some((key(1).public_key(), trust)));
    }
}

/// Heads of another key are checked while no stream is accepted, and remembered. Later another host
/// repeats them in the accepted stream's name, with its instance.
#[test]
fn heads_that_were_checked_before_a_stream_was_accepted_do_not_replace_its_key() {
    let bytes = noise(30 * FRAGMENT, 3);
    let mut forger = Stream::of_key(noise(30 * FRAGMENT, 4), 1, &key(2), Duration::ZERO);
    let toi = |datagram: &[u8]| Packet::parse(datagram).unwrap().header.toi.unwrap();
    let mut control = Vec::new();
    for ms in 0..400 {
        forger.feed();
        control.extend(forger.poll(Instant::ZERO + Duration::from_millis(ms)));
        control.retain(|datagram| !toi(datagram).is_content());
    }
    let control = control.split_off(control.len() - 8);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut receivers = [receiver(0.0, 1)];
    receivers[0].timeout(Instant::ZERO);
    for head in control.iter().filter(|datagram| toi(datagram) == Toi::HEAD) {
        receivers[0].hear(Instant::ZERO, source(2), head);
    }
    let path = |now: Instant, mut datagrams: Vec<Vec<u8>>| {
        // More would use up the checks of heads that arrive in the stream's name.
        let millisecond = now.as_nanos() / 1_000_000;
        if millisecond > 20 && millisecond.is_multiple_of(50) {
            datagrams.extend(control.iter().cloned());
        }
        datagrams
    };
    run(&mut stream, &mut receivers, path, feed);
    assert_whole(&receivers[0], &bytes);
}

#[test]
fn forged_symbols_of_fragments_that_do_not_exist_take_no_room() {
    let bytes = noise(30 * FRAGMENT, 3);
    let mut stream = Stream::new(bytes.clone(), 1, Duration::ZERO);
    let mut config = receiver_config();
    config.limits.max_early_bytes = 20_000;
    let mut receivers = [ReceiverDriver::new(config, 0.01, 1)];
    let mut number = 1000_u32;
    let path = |_: Instant, datagrams: Vec<Vec<u8>>| {
        let mut out = Vec::new();
        for datagram in datagrams {
            if datagram[2] == 4 {
                let mut forged = datagram.clone();
                number += 1;
                forged[12..16].copy_from_slice(&number.to_be_bytes());
                out.push(forged);
            }
            out.push(datagram);
        }
        out
    };
    run(&mut stream, &mut receivers, path, feed);
    assert_whole(&receivers[0], &bytes);
    assert!(receivers[0].endpoint.stats().late > 1000);
}

#[test]
fn the_rate_holds_in_every_window() {
    let mut stream = Stream::new(noise(20 * FRAGMENT, 3), 1, Duration::ZERO);
    let mut sent: Vec<(u64, u64)> = Vec::new();
    let path = |now: Instant, datagrams: Vec<Vec<u8>>| {
        let bytes = datagrams.iter().map(|datagram| datagram.len() as u64 + 28).sum();
        sent.push((now.as_nanos(), bytes));
        datagrams
    };
    run(&mut stream, &mut [], path, feed);
    // Two control packets, the longest ones: more than 2 ms of the rate.
    let burst = 2 * (1300 + 36 + 28 + 28);
    for window in [1, 10, 100, 1000] {
        for part in sent.windows(window) {
            let bytes: u64 = part.iter().map(|(_, bytes)| bytes).sum();
            let nanos = part[window - 1].0 - part[0].0;
            let earned = |nanos: u64| 400_000 * nanos / 1_000_000_000;
            // The peak window and the debt.
            let peak = earned(5 * (nanos + 20_000_000)) / 4;
            let allowed = peak.min(earned(nanos + 100_000_000)) + burst;
            assert!(bytes <= allowed, "{bytes} in {nanos} ns");
        }
    }
}

#[test]
fn a_datagram_for_another_session_is_foreign() {
    let mut receiver = receiver(0.0, 1);
    receiver.timeout(Instant::ZERO);
    let mut stream = Stream::new(noise(100, 1), 1, Duration::ZERO);
    stream.feed();
    let mut datagram = stream.poll(Instant::ZERO).remove(0);
    datagram[8..12].copy_from_slice(&(Tsi(8).0 as u32).to_be_bytes());
    let channel = fontana_proto::ChannelId(0);
    receiver.hear_on(Instant::ZERO, source(1), channel, &datagram);
    assert_eq!(receiver.endpoint.stats().foreign, 1);
}

/// Receivers that report.
fn reporting(loss: f64, number: u8) -> ReceiverDriver {
    let id = ReceiverId([number + 1; 16]);
    let config = ReporterConfig::new(id, ReceiverLabel::default(), number.into());
    receiver(loss, number.into()).with_reports(Reporter::new(config))
}

/// The sender gets what they have sent, as of members of a group with a key.
fn answer(now: Instant, stream: &mut Stream, receivers: &mut [ReceiverDriver]) {
    for receiver in receivers {
        for (to, datagram) in std::mem::take(&mut receiver.sent) {
            assert_eq!(to, Destination::Sender(COLLECTOR.parse().unwrap()));
            if receiver.random.unit() >= receiver.loss {
                stream.sender.handle_done(now, received(&datagram, Authority::Group));
            }
        }
    }
}

/// Real receivers request what they lack of fragments, and get it before these leave the index.
#[test]
fn what_receivers_request_of_a_stream_is_repaired() {
    for loss in [0.0, 0.01, 0.1] {
        let bytes = noise(60 * FRAGMENT + 77, 3);
        let mut stream = Stream::repaired(bytes.clone(), 3);
        let mut receivers: Vec<_> = (0..3).map(|number| reporting(loss, number)).collect();
        run(&mut stream, &mut receivers, straight, |now, stream, receivers| {
            answer(now, stream, receivers);
            stream.feed();
        });
        receivers.iter().for_each(|receiver| assert_whole(receiver, &bytes));
        assert!(stream.batches.is_empty(), "everything was released");
        let stats = stream.sender.stats();
        let most = if loss == 0.0 { 0 } else { (4.0 * loss * 6_002.0) as u64 + 60 };
        assert!(stats.repair_symbols <= most, "{loss}: {stats:?}");
    }
}

/// A burst removes more of a fragment than the fixed share repairs.
#[test]
fn a_burst_that_removes_half_of_a_fragment_is_repaired_on_request() {
    let bytes = noise(60 * FRAGMENT, 3);
    for is_repaired in [true, false] {
        let mut stream = match is_repaired {
            true => Stream::repaired(bytes.clone(), 1),
            false => Stream::new(bytes.clone(), 1, Duration::ZERO),
        };
        let mut receivers = [reporting(0.0, 1)];
        let mut count = 0;
        // Of every 1500 packets, 60 in a row are lost.
        let path = |_: Instant, datagrams: Vec<Vec<u8>>| {
            let survives = |_: &Vec<u8>| {
                count += 1;
                count % 1500 >= 60
            };
            datagrams.into_iter().filter(survives).collect()
        };
        run(&mut stream, &mut receivers, path, |now, stream, receivers| {
            answer(now, stream, receivers);
            stream.feed();
        });
        match is_repaired {
            true => assert_whole(&receivers[0], &bytes),
            false => assert!(broken(&receivers[0]).is_some()),
        }
    }
}

/// A stream that waits accepts no fragment, and announces itself.
#[test]
fn a_stream_that_waits_for_receivers_begins_when_they_report() {
    let bytes = noise(5 * FRAGMENT, 3);
    let config = Stream::config(5, &key(1), Duration::ZERO, RATE);
    let start = StreamStart::WhenFollowed;
    let stream = Stream::with_config(bytes.clone(), StreamSenderConfig { start, ..config });
    let mut stream = stream.following(1);
    let mut late = reporting(0.01, 1);
    late.joins_at = Instant::ZERO + Duration::from_secs(20);
    let mut receivers = [late];
    let joins_at = Instant::ZERO + Duration::from_secs(20);
    run(&mut stream, &mut receivers, straight, |now, stream, receivers| {
        if now < joins_at {
            assert!(!stream.sender.wants_fragment() && stream.sender.stats().source_symbols == 0);
        }
        answer(now, stream, receivers);
        if stream.sender.wants_fragment() || stream.taken > 0 {
            stream.feed();
        }
    });
    assert!(stream.sender.stats().control_packets > 800, "{:?}", stream.sender.stats());
    assert_whole(&receivers[0], &bytes);
}

/// Roll calls say that the sender is there, though it sends no symbol before all have come.
#[test]
fn a_receiver_of_a_stream_that_waits_does_not_give_up() {
    let bytes = noise(5 * FRAGMENT, 3);
    let mut stream = Stream::repaired(bytes.clone(), 2);
    let mut late = reporting(0.01, 2);
    late.joins_at = Instant::ZERO + Duration::from_secs(90);
    let mut receivers = [reporting(0.01, 1), late];
    run(&mut stream, &mut receivers, straight, |now, stream, receivers| {
        answer(now, stream, receivers);
        stream.feed();
    });
    receivers.iter().for_each(|receiver| assert_whole(receiver, &bytes));
    // With the first silence a program gives up.
    let is_silence = |event: &ReceiverEvent| matches!(event, ReceiverEvent::Silence { .. });
    assert!(!receivers[0].events.iter().any(is_silence), "{:?}", receivers[0].events);
}

/// One that hears nothing around the end learns of it later: it completes, or has lost the stream,
/// and the sender does not wait for it.
#[test]
fn a_receiver_that_has_missed_the_end_of_a_stream_is_told() {
    let mut lost = 0;
    for missed in [50, 500, 1_500, 2_500, 4_000, 8_000, 20_000] {
        let bytes = noise(20 * FRAGMENT, 3);
        let mut stream = Stream::repaired(bytes.clone(), 1);
        let repair = RepairBy::Stream { waits_for: 1, on_request: true };
        let mut config = collection(repair, Expected::Count(1), 1);
        config.until_complete = true;
        stream.sender = stream.sender.with_collection(config, Instant::ZERO);
        let mut receiver = reporting(0.0, 1);
        let (mut now, mut until) = (Instant::ZERO, None);
        receiver.timeout(now);
        while receiver.complete_at.is_none() && broken(&receiver).is_none() {
            assert!(now < Instant::ZERO + Duration::from_secs(60), "missed {missed} ms");
            answer(now, &mut stream, std::slice::from_mut(&mut receiver));
            stream.feed();
            if stream.taken == bytes.len() {
                until.get_or_insert(now + Duration::from_millis(missed));
            }
            for datagram in stream.poll(now) {
                if until.is_none_or(|until| now >= until) {
                    receiver.maybe_hear(now, source(1), &datagram);
                }
            }
            now = now + Duration::from_millis(1);
            receiver.timeout(now);
        }
        match broken(&receiver) {
            Some((_, reason)) => assert_eq!(reason, StreamBreak::Lost, "missed {missed} ms"),
            None => assert_whole(&receiver, &bytes),
        }
        lost += u32::from(broken(&receiver).is_some());
    }
    assert!(lost > 0, "none has missed the end");
}

/// While a stream waits, the silence of receivers that are not started yet says nothing: it begins
/// at the low rate, and not at the one for receivers that cannot report.
#[test]
fn a_stream_that_has_waited_begins_at_its_first_rate() {
    let (low, joins_at) = (20_000, Instant::ZERO + Duration::from_secs(20));
    let waits = (StreamStart::WhenFollowed, 1);
    let announces = (StreamStart::After(Duration::from_secs(25)), 0);
    for (start, waits_for) in [waits, announces] {
        let config = Stream::config(5, &key(1), Duration::ZERO, RATE);
        let config = StreamSenderConfig { start, ..config };
        let mut stream = Stream::with_config(noise(5 * FRAGMENT, 3), config);
        let repair = RepairBy::Stream { waits_for, on_request: false };
        let mut config = collection(repair, Expected::Anyone, 1);
        config.rate = Some(RateConfig {
            start: low,
            most: RATE,
            least: low / 2,
            least_to_finish: low / 2,
            packet_bytes: u32::from(T) + 60,
            budget_per_second: 100,
            known: None,
            blind: Some(RATE),
            max_receivers: 100,
        });
        stream.sender = stream.sender.with_collection(config, Instant::ZERO);
        let mut late = reporting(0.0, 1);
        late.joins_at = joins_at;
        let mut first = None;
        run(&mut stream, &mut [late], straight, |now, stream, receivers| {
            answer(now, stream, receivers);
            stream.feed();
            if stream.sender.stats().source_symbols > 0 {
                let rate = || stream.sender.collection().and_then(|it| it.rate());
                first = first.or_else(rate);
            }
        });
        assert_eq!(first, Some(low), "{start:?}");
    }
}

/// An expected receiver that has not come has missed the stream.
#[test]
fn a_stream_ends_soon_if_expected_receivers_are_missing() {
    let bytes = noise(5 * FRAGMENT, 3);
    let mut stream = Stream::of_rate(bytes.clone(), RATE);
    let repair = RepairBy::Stream { waits_for: 0, on_request: false };
    let mut config = collection(repair, Expected::Count(2), 1);
    config.until_complete = true;
    stream.sender = stream.sender.with_collection(config, Instant::ZERO);
    let mut receivers = [reporting(0.0, 1)];
    let mut now = run(&mut stream, &mut receivers, straight, |now, stream, receivers| {
        answer(now, stream, receivers);
        stream.feed();
    });
    let finished_at = now;
    while stream.over_at.is_none() && now < finished_at + Duration::from_secs(100) {
        for datagram in stream.poll(now) {
            receivers[0].maybe_hear(now, source(1), &datagram);
        }
        now = now + Duration::from_millis(1);
        receivers[0].timeout(now);
        answer(now, &mut stream, &mut receivers);
    }
    assert_whole(&receivers[0], &bytes);
    let waits = stream.over_at.expect("it ends").saturating_since(finished_at);
    assert!(waits > Duration::from_secs(20) && waits < Duration::from_secs(32), "{waits:?}");
}
