//! Whole sessions in virtual time: the real endpoints, every job carried out in memory.

use crate::support::world::{
    Content, NOW_UNIX, ReceiverDriver, SenderDriver, Setup, TSI, receiver_config, run, sender,
    source,
};
use fontana_fec::{EncodingId, Progress, Sbn};
use fontana_proto::{
    Acceptance, BlockId, DecodePolicy, Endpoint, Expectation, Instant, ReceiveDone, ReceiveJob,
    ReceiverEvent, Rejection, SendMode, SenderEvent, TransmissionSchedule, Verified,
};
use fontana_wire::{Packet, SecretKey, Toi, Tsi, manifest_hash};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

fn start(content: &Content, setup: &Setup) -> SenderDriver {
    SenderDriver::new(sender(content, setup, None), content)
}

#[test]
fn everyone_gets_every_byte_at_any_loss_for_about_the_bytes_of_the_file() {
    let content = Content::new(&[(1_000_000, 5), (300_000, 1), (1, 1), (2_000, 2)], 3);
    let mut senders = [start(&content, &Setup::default())];
    let mut receivers: Vec<_> = [0.0, 0.01, 0.1, 0.3, 0.6, 0.9]
        .iter()
        .enumerate()
        .map(|(n, &loss)| ReceiverDriver::new(receiver_config(), loss, n as u64))
        .collect();
    run(&mut senders, &mut receivers, LIMIT);
    for receiver in &receivers {
        assert!(receiver.complete_at.is_some() && receiver.has(&content), "{}", receiver.loss);
        // Small blocks here, so the worst of them is further off than in a real session.
        assert!(receiver.inefficiency() < 1.12, "{} {}", receiver.loss, receiver.inefficiency());
        assert_eq!(receiver.endpoint.stats().duplicates, 0, "{}", receiver.loss);
        let stats = receiver.endpoint.stats();
        let measured = stats.lost as f64 / stats.expected as f64;
        assert!((measured - receiver.loss).abs() < 0.01, "{measured} {}", receiver.loss);
    }
    assert!(receivers[0].inefficiency() < 1.03, "{}", receivers[0].inefficiency());
}

#[test]
fn late_receiver_completes_without_the_first_cycle() {
    let content = Content::new(&[(500_000, 3)], 4);
    let mut senders = [start(&content, &Setup::default())];
    let mut receivers: Vec<_> = [0, 100, 250, 900, 5_000]
        .iter()
        .map(|&millis| {
            let mut receiver = ReceiverDriver::new(receiver_config(), 0.0, millis);
            receiver.joins_at = Instant::ZERO + Duration::from_millis(millis);
            receiver
        })
        .collect();
    run(&mut senders, &mut receivers, LIMIT);
    for receiver in &receivers {
        assert!(receiver.has(&content), "{:?}", receiver.joins_at);
        assert!(
            receiver.inefficiency() < 1.05,
            "{:?} {}",
            receiver.joins_at,
            receiver.inefficiency()
        );
        // What came before the head and the manifest was kept, not wasted.
        assert_eq!(receiver.endpoint.stats().without_room, 0);
    }
}

#[test]
fn a_sender_short_of_memory_interleaves_in_grains_and_everyone_still_completes() {
    let content = Content::new(&[(640_000, 10)], 5);
    let setup = Setup {
        schedule: TransmissionSchedule::Interleaved { grain: 32 },
        round_symbols: 100,
        ..Setup::default()
    };
    let mut senders = [start(&content, &setup)];
    let mut receivers = [
        ReceiverDriver::new(receiver_config(), 0.0, 1),
        ReceiverDriver::new(receiver_config(), 0.2, 2),
    ];
    run(&mut senders, &mut receivers, LIMIT);
    assert!(receivers.iter().all(|r| r.has(&content)));
    assert!(receivers[0].inefficiency() < 1.05, "{}", receivers[0].inefficiency());
    assert!(senders[0].runner.most_batches <= 2 * 5, "two rounds of four or five blocks");
}

#[test]
fn sequential_order_and_patient_decoding_deliver_too() {
    let content = Content::new(&[(200_000, 4), (50_000, 2)], 6);
    let setup = Setup {
        schedule: TransmissionSchedule::Sequential { repair_permille: 200 },
        ..Setup::default()
    };
    let mut senders = [start(&content, &setup)];
    let mut config = receiver_config();
    config.policy = DecodePolicy::Patient { margin: 5 };
    // More patience than a decoder has room for is as much as it has room for.
    let mut endless = config.clone();
    endless.policy = DecodePolicy::Patient { margin: 100_000 };
    let mut receivers = [
        ReceiverDriver::new(config.clone(), 0.1, 1),
        ReceiverDriver::new(config, 0.0, 2),
        ReceiverDriver::new(endless, 0.1, 3),
    ];
    run(&mut senders, &mut receivers, LIMIT);
    assert!(receivers.iter().all(|r| r.has(&content)));
}

#[test]
fn a_push_session_sends_its_amount_and_ends() {
    let content = Content::new(&[(100_000, 2)], 7);
    let k = content.source_symbols();
    let setup = Setup { mode: SendMode::Push { repair_permille: 250 }, ..Setup::default() };
    let mut driver = start(&content, &setup);
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.1, 5);
    receiver.timeout(Instant::ZERO);
    let mut data = 0;
    for millis in 0..2_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            let toi = Packet::parse(&datagram).unwrap().header.toi.unwrap();
            data += u64::from(toi.is_content());
            receiver.maybe_hear(now, source(1), &datagram);
        }
    }
    assert!((k * 5 / 4..=k * 5 / 4 + 2).contains(&data), "{data} of {k}");
    assert!(matches!(driver.events.as_slice(), [SenderEvent::Finished]));
    assert!(receiver.has(&content));
}

#[test]
fn several_senders_add_up_and_repeat_nothing() {
    let content = Content::new(&[(600_000, 3)], 8);
    let mirror = Setup { source_pass: false, ..Setup::default() };
    let mut senders = [
        start(&content, &Setup::default()),
        start(&content, &Setup { seed: 2, ..mirror.clone() }),
        start(&content, &Setup { seed: 3, ..mirror }),
    ];
    let mut receivers = [ReceiverDriver::new(receiver_config(), 0.2, 1)];
    run(&mut senders, &mut receivers, LIMIT);
    let [receiver] = receivers;
    assert!(receiver.has(&content));
    assert_eq!(receiver.endpoint.stats().duplicates, 0);
    assert!(receiver.inefficiency() < 1.05, "{}", receiver.inefficiency());
    assert_loss(&receiver, 0.2);
}

/// Each sender numbers its own packets: mixed up, they would look like a loss of nearly all.
fn assert_loss(receiver: &ReceiverDriver, loss: f64) {
    let stats = receiver.endpoint.stats();
    let measured = stats.lost as f64 / stats.expected as f64;
    // Of some 1 000 packets: five standard deviations.
    assert!((measured - loss).abs() < 0.05, "{measured}");
}

#[test]
fn a_ticket_with_several_sources_takes_each_of_them_and_nobody_else() {
    let content = Content::new(&[(600_000, 3)], 8);
    let mirror = Setup { source_pass: false, ..Setup::default() };
    let mut senders: Vec<_> = [(1, true), (2, false), (3, false)]
        .map(|(seed, source_pass)| start(&content, &Setup { seed, source_pass, ..mirror.clone() }))
        .into();
    let mut config = receiver_config();
    config.expectation.sources = vec![source(1), source(3)];
    let mut receivers = [ReceiverDriver::new(config, 0.1, 1)];
    run(&mut senders, &mut receivers, LIMIT);
    let [receiver] = receivers;
    assert!(receiver.has(&content));
    let stats = receiver.endpoint.stats();
    assert_eq!(stats.duplicates, 0);
    // A third of what arrived was the second sender's.
    let share = stats.foreign as f64 / stats.datagrams as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.05, "{share}");
    assert_loss(&receiver, 0.1);
}

#[test]
fn a_sender_that_starts_again_goes_on_with_the_same_objects() {
    let content = Content::new(&[(300_000, 2)], 9);
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.1, 3);
    receiver.timeout(Instant::ZERO);
    let mut now = Instant::ZERO;
    for life in 0..4 {
        let source_pass = life == 0;
        let mut driver =
            start(&content, &Setup { seed: 10 + life, source_pass, ..Setup::default() });
        // A sender's own clock begins with it.
        for millis in 0..160 {
            let begun = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(begun) {
                receiver.maybe_hear(now, source(1), &datagram);
            }
            now = now + Duration::from_millis(1);
        }
    }
    assert!(receiver.has(&content));
    assert_eq!(receiver.endpoint.stats().duplicates, 0);
    assert!(receiver.inefficiency() < 1.25, "{}", receiver.inefficiency());
    // Every life numbers its packets from elsewhere.
    assert_loss(&receiver, 0.1);
}

#[test]
fn a_manifest_that_an_earlier_receiver_left_is_not_waited_for() {
    let content = Content::new(&[(100_000, 2)], 9);
    let hash = manifest_hash(&content.manifest.emit());
    let receive = |known: Option<fontana_wire::Hash>| {
        let mut config = receiver_config();
        config.known_manifest = known.map(|hash| (hash, Arc::clone(&content.manifest)));
        let mut receiver = ReceiverDriver::new(config, 0.0, 3);
        receiver.timeout(Instant::ZERO);
        let mut driver = start(&content, &Setup::default());
        for millis in 0..1_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(now) {
                let toi = Packet::parse(&datagram).unwrap().header.toi;
                if toi != Some(Toi::MANIFEST) {
                    receiver.maybe_hear(now, source(1), &datagram);
                }
            }
        }
        receiver.has(&content)
    };
    assert!(receive(Some(hash)), "the head alone says which it is");
    assert!(!receive(None));
    let other = fontana_wire::Hash([7; 32]);
    assert!(!receive(Some(other)), "a manifest of another hash is of no use");
}

#[test]
fn a_session_on_offer_stays_there_when_its_sender_starts_again() {
    let content = Content::new(&[(100_000, 2)], 9);
    let mut config = receiver_config();
    config.acceptance = Acceptance::Ask;
    let mut receiver = ReceiverDriver::new(config, 0.0, 3);
    receiver.timeout(Instant::ZERO);
    for seed in 1..=2 {
        let mut driver = start(&content, &Setup { seed, ..Setup::default() });
        for millis in 0..200 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(now) {
                receiver.maybe_hear(now, source(1), &datagram);
            }
        }
    }
    assert!(matches!(receiver.events[..], [ReceiverEvent::Offered(_)]), "{:?}", receiver.events);
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let digest = |seed| {
        let content = Content::new(&[(100_000, 2)], 1);
        let mut senders = [start(&content, &Setup { seed, ..Setup::default() })];
        let mut receivers = [ReceiverDriver::new(receiver_config(), 0.3, seed)];
        run(&mut senders, &mut receivers, LIMIT);
        format!("{:?} {:?}", senders[0].endpoint.stats(), receivers[0].endpoint.stats())
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

#[test]
fn receivers_leave_when_they_have_heard_enough_and_are_told_of_silence() {
    let content = Content::new(&[(50_000, 1)], 2);
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.0, 1);
    receiver.timeout(Instant::ZERO);
    assert_eq!(receiver.joined.len(), 1);
    receiver.timeout(Instant::ZERO + Duration::from_millis(9_999));
    assert!(receiver.events.is_empty());
    receiver.timeout(Instant::ZERO + Duration::from_secs(10));
    assert!(matches!(receiver.events[..], [ReceiverEvent::Silence { ever_since_start: true }]));
    assert_eq!(receiver.joined.len(), 1, "joined anew");
    let mut receivers = [receiver];
    run(&mut [start(&content, &Setup::default())], &mut receivers, LIMIT);
    assert!(receivers[0].has(&content));
    assert!(receivers[0].joined.is_empty(), "left");
    assert_eq!(receivers[0].endpoint.poll_timeout(), None);
}

#[test]
fn empty_files_alone_are_a_session_too() {
    let content = Content::new(&[(0, 1), (0, 1)], 2);
    for mode in [SendMode::OnDemand, SendMode::Push { repair_permille: 0 }] {
        let mut receivers = [ReceiverDriver::new(receiver_config(), 0.3, 1)];
        let mut senders = [start(&content, &Setup { mode, ..Setup::default() })];
        run(&mut senders, &mut receivers, LIMIT);
        assert!(receivers[0].complete_at.is_some());
        assert_eq!(receivers[0].committed(), [Toi(1), Toi(2)]);
    }
}

#[test]
fn only_the_expected_publisher_and_manifest_are_received() {
    let key = SecretKey::from_seed(&[1; 32]);
    let other = SecretKey::from_seed(&[2; 32]);
    let content = Content::new(&[(20_000, 1)], 2);
    let elsewhere = Content::new(&[(20_000, 1)], 3);
    let outcome = |expectation: Expectation, signer: Option<&SecretKey>, expires| {
        let setup = Setup { expires, ..Setup::default() };
        let driver = SenderDriver::new(sender(&content, &setup, signer), &content);
        let mut config = receiver_config();
        config.expectation = Expectation { tsi: Some(TSI), ..expectation };
        let mut receivers = [ReceiverDriver::new(config, 0.0, 1)];
        run(&mut [driver], &mut receivers, Duration::from_secs(2));
        let [receiver] = receivers;
        let verified = receiver.events.iter().find_map(|event| match event {
            ReceiverEvent::ObjectDone { verified, .. } => Some(*verified),
            _ => None,
        });
        let rejected = receiver.events.iter().find_map(|event| match event {
            ReceiverEvent::Rejected { reason, .. } => Some(*reason),
            _ => None,
        });
        match (verified, rejected) {
            (Some(verified), None) => Ok(verified),
            (None, Some(reason)) => Err(reason),
            other => panic!("{other:?}"),
        }
    };
    let any = Expectation::default;
    let signed = || Expectation { publisher: Some(key.public_key()), ..any() };
    let pinned = |content: &Content| Expectation { manifest: Some(content.hash()), ..any() };
    assert_eq!(outcome(any(), None, 0), Ok(Verified::Digest));
    assert_eq!(outcome(any(), Some(&key), 0), Ok(Verified::Digest));
    assert_eq!(outcome(signed(), Some(&key), 0), Ok(Verified::Signed));
    assert_eq!(outcome(signed(), Some(&other), 0), Err(Rejection::WrongKey));
    assert_eq!(outcome(signed(), None, 0), Err(Rejection::WrongKey));
    assert_eq!(outcome(pinned(&content), None, 0), Ok(Verified::Digest));
    assert_eq!(outcome(pinned(&elsewhere), None, 0), Err(Rejection::OtherManifest));
    let both = Expectation { manifest: Some(elsewhere.hash()), ..signed() };
    assert_eq!(outcome(both, Some(&key), 0), Err(Rejection::OtherManifest));
    assert_eq!(
        outcome(signed(), Some(&key), NOW_UNIX),
        Err(Rejection::Expired { unix_seconds: NOW_UNIX })
    );
    assert_eq!(outcome(signed(), Some(&key), NOW_UNIX + 60), Ok(Verified::Signed));
    let both = Expectation { manifest: Some(content.hash()), ..signed() };
    assert_eq!(outcome(both, Some(&key), NOW_UNIX), Ok(Verified::Signed), "the only manifest");
    assert_eq!(outcome(pinned(&content), None, NOW_UNIX), Ok(Verified::Digest));
    assert_eq!(outcome(any(), None, NOW_UNIX), Ok(Verified::Digest), "any host can say it");
}

#[test]
fn an_offer_waits_for_its_answer_and_what_came_meanwhile_is_not_lost() {
    let content = Content::new(&[(60_000, 1)], 2);
    let mut driver = start(&content, &Setup::default());
    let mut config = receiver_config();
    config.acceptance = Acceptance::Ask;
    config.expectation.tsi = None;
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    let mut accepted = false;
    for millis in 0..2_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        if millis == 50 {
            let [ReceiverEvent::Offered(offer)] = receiver.events.as_slice() else { panic!() };
            let session = offer.session;
            assert!(receiver.endpoint.accept(session));
            assert!(!receiver.endpoint.accept(session), "once");
            receiver.poll(now);
            accepted = true;
        }
    }
    assert!(accepted && receiver.has(&content));
    assert!(receiver.inefficiency() < 1.05, "{}", receiver.inefficiency());
}

#[test]
fn a_source_that_fails_is_withdrawn_and_the_others_go_on() {
    let content = Content::new(&[(50_000, 2), (50_000, 2)], 2);
    let mut driver = start(&content, &Setup::default());
    driver.runner.failing.push(Toi(1));
    let (mut tois, mut now) = (Vec::new(), Instant::ZERO);
    for _ in 0..500 {
        for datagram in driver.poll(now) {
            tois.extend(Packet::parse(&datagram).unwrap().header.toi);
        }
        now = now + Duration::from_millis(1);
    }
    assert!(matches!(driver.events.as_slice(), [SenderEvent::Withdrawn { toi: Toi(1), .. }]));
    assert!(!tois.contains(&Toi(1)) && tois.contains(&Toi(2)));
    driver.runner.failing.push(Toi(2));
    for _ in 0..5_000 {
        driver.poll(now);
        now = now + Duration::from_millis(1);
    }
    let ended = [Toi(1), Toi(2)].map(|toi| {
        driver
            .events
            .iter()
            .any(|e| matches!(e, SenderEvent::Withdrawn { toi: t, .. } if *t == toi))
    });
    assert_eq!(ended, [true, true]);
    assert!(matches!(driver.events.last(), Some(SenderEvent::Finished)));
}

#[test]
fn a_block_that_fails_alone_takes_no_other_of_its_object() {
    let content = Content::new(&[(50_000, 3)], 2);
    let mut driver = start(&content, &Setup::default());
    let lost = BlockId { toi: Toi(1), sbn: Sbn(1) };
    let (mut sent, mut now) = (BTreeMap::<Sbn, u32>::new(), Instant::ZERO);
    for millisecond in 0..1_000 {
        if millisecond == 300 {
            driver.runner.failing_alone.push(lost);
        }
        for datagram in driver.poll(now) {
            let packet = Packet::parse(&datagram).unwrap();
            if packet.header.toi == Some(Toi(1)) && millisecond >= 600 {
                let payload = packet.payload(EncodingId::RAPTORQ).unwrap().unwrap();
                *sent.entry(payload.sbn).or_default() += 1;
            }
        }
        now = now + Duration::from_millis(1);
    }
    assert_eq!(sent.keys().copied().collect::<Vec<_>>(), [Sbn(0), Sbn(2)]);
    assert!(matches!(driver.events.as_slice(), [SenderEvent::Withdrawn { toi: Toi(1), .. }]));
}

#[test]
fn the_rate_holds_in_every_window_headers_included() {
    let content = Content::new(&[(2_000_000, 3)], 2);
    for rate in [20_000_u64, 1_000_000, 50_000_000] {
        let mut driver = start(&content, &Setup { rate, ..Setup::default() });
        let (mut sent, mut now) = (Vec::new(), Instant::ZERO);
        for tick in 0..3_000_u64 {
            for datagram in driver.poll(now) {
                sent.push((now.as_nanos(), datagram.len() as u64 + 28));
            }
            // Wake-ups come early, late and in bunches.
            now = now + Duration::from_micros([100, 900, 3_000, 7, 1_400][tick as usize % 5]);
        }
        // Two of the largest packets: a control object's, with the longest header.
        let burst = (rate / 500).max(2 * (256 + 28 + 64));
        let bytes: Vec<u64> = sent
            .iter()
            .scan(0, |sum, (_, b)| {
                *sum += b;
                Some(*sum)
            })
            .collect();
        for i in (0..sent.len()).step_by(7) {
            for j in [i, i + 1, i + 10, i + 100, sent.len() - 1] {
                let Some(&(end, _)) = sent.get(j) else { continue };
                let window = u128::from(end - sent[i].0);
                let inside = bytes[j] - bytes[i] + sent[i].1;
                let earned = |nanos: u128| u128::from(rate) * nanos / 1_000_000_000;
                // The peak window and the debt.
                let peak = earned(5 * (window + 20_000_000)) / 4;
                let allowed = peak.min(earned(window + 100_000_000)) + u128::from(burst) + 1;
                assert!(u128::from(inside) <= allowed, "{inside} in {window} ns at {rate}");
            }
        }
        let seconds = now.as_nanos() as f64 / 1e9;
        let achieved = *bytes.last().unwrap() as f64 / seconds / rate as f64;
        assert!(achieved > 0.97, "{achieved} of {rate}");
    }
}

#[test]
fn a_session_elsewhere_on_the_group_is_counted_and_ignored() {
    let content = Content::new(&[(50_000, 1)], 2);
    let stranger = Content::new(&[(50_000, 1)], 77);
    let mut senders = [
        start(&stranger, &Setup { tsi: Tsi(8), ..Setup::default() }),
        start(&content, &Setup::default()),
    ];
    let mut receivers = [ReceiverDriver::new(receiver_config(), 0.0, 1)];
    run(&mut senders, &mut receivers, LIMIT);
    assert!(receivers[0].has(&content));
    let stats = receivers[0].endpoint.stats();
    assert!(stats.foreign > 100, "{stats:?}");
    let rejections =
        receivers[0].events.iter().filter(|e| matches!(e, ReceiverEvent::Rejected { .. }));
    assert_eq!(rejections.count(), 1, "told once");
    assert!(receivers[0].inefficiency() < 1.05);
}

#[test]
fn a_receiver_that_dies_again_and_again_goes_on_with_its_symbols() {
    let content = Content::new(&[(900_000, 3), (20_000, 1), (10, 1)], 12);
    let mut driver = start(&content, &Setup::default());
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.1, 0);
    receiver.timeout(Instant::ZERO);
    // What comes before a life has heard head and manifest dies with it, so lives are a few times
    // longer than that takes.
    for millis in 1..6_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        if millis % 370 == 0 && receiver.complete_at.is_none() {
            receiver = receiver.restarted(receiver_config(), millis);
            receiver.timeout(now);
        }
    }
    assert!(receiver.complete_at.is_some());
    assert_eq!(receiver.committed().len(), 3);
    assert_eq!(receiver.endpoint.stats().corrupt_blocks, 0);
    // All lives together.
    assert!(receiver.inefficiency() < 1.06, "{}", receiver.inefficiency());
    let resumed =
        receiver.events.iter().any(|e| matches!(e, ReceiverEvent::Resumed { symbols: 1.. }));
    assert!(resumed);
}

#[test]
fn a_kept_symbol_that_is_not_what_it_was_costs_one_block_and_no_byte() {
    let content = Content::new(&[(300_000, 2)], 12);
    let mut receivers = [ReceiverDriver::new(receiver_config(), 0.2, 0)];
    run(&mut [start(&content, &Setup::default())], &mut receivers, Duration::from_millis(300));
    let [receiver] = receivers;
    let mut next = receiver.restarted(receiver_config(), 1);
    next.runner.damage_one_symbol();
    let mut receivers = [next];
    run(&mut [start(&content, &Setup { seed: 5, ..Setup::default() })], &mut receivers, LIMIT);
    assert!(receivers[0].has(&content));
    assert_eq!(receivers[0].endpoint.stats().corrupt_blocks, 1);
}

/// What is saved of a block still includes the symbols that were found to be wrong. The next run
/// finds them again, without another symbol.
#[test]
fn a_run_that_ends_when_wrong_symbols_were_dropped_is_resumed_without_another_symbol() {
    const K: u32 = 200;
    let content = Content::new(&[(64 * K as usize, 1)], 12);
    let mut driver = start(&content, &Setup::default());
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.0, 0);
    let is_dropped = |receiver: &ReceiverDriver| {
        let dropped = |e: &ReceiverEvent| matches!(e, ReceiverEvent::SymbolsDropped { .. });
        receiver.events.iter().any(dropped)
    };
    let mut now = Instant::ZERO;
    receiver.timeout(now);
    while !is_dropped(&receiver) {
        for mut datagram in driver.poll(now) {
            let packet = Packet::parse(&datagram).unwrap();
            let is_content = packet.header.toi.is_some_and(Toi::is_content);
            let esi = packet.payload(EncodingId::RAPTORQ).unwrap().map(|payload| payload.esi.0);
            // Source symbols and a repair symbol, with errors that do not depend on each other.
            if let Some(esi @ (7 | 150 | 201)) = esi.filter(|_| is_content) {
                let at = datagram.len() - 1 - esi as usize % 60;
                datagram[at] ^= 1 + esi as u8;
            }
            let corrupt = |e: &ReceiverEvent| matches!(e, ReceiverEvent::BlockCorrupt { .. });
            receiver.runner.solver_is_slow = receiver.events.iter().any(corrupt);
            receiver.hear(now, source(1), &datagram);
            if is_dropped(&receiver) {
                break;
            }
        }
        now = now + Duration::from_millis(1);
        assert!(now < Instant::ZERO + Duration::from_secs(5), "{:?}", receiver.events);
    }
    assert_eq!(receiver.runner.put_aside.len(), 1, "the block waits to be solved again");
    let mut next = receiver.restarted(receiver_config(), 1);
    next.timeout(now);
    let mut again = start(&content, &Setup::default());
    for datagram in (0..300).flat_map(|ms| again.poll(Instant::ZERO + Duration::from_millis(ms))) {
        if Packet::parse(&datagram).unwrap().header.toi.is_some_and(|toi| !toi.is_content()) {
            next.hear(now, source(1), &datagram);
        }
    }
    assert!(next.complete_at.is_some() && next.has(&content), "{:?}", next.events);
    assert!(is_dropped(&next) && next.endpoint.stats().fresh == 0);
}

#[test]
fn a_reception_is_complete_before_a_slow_solver_has_ended_and_goes_on_if_it_fails() {
    let is_complete = |receiver: &ReceiverDriver| {
        matches!(receiver.events.last(), Some(ReceiverEvent::ReceptionComplete))
    };
    let content = Content::new(&[(64 * 200, 1)], 13);
    let mut driver = start(&content, &Setup { source_pass: false, ..Setup::default() });
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.0, 0);
    receiver.runner.solver_is_slow = true;
    receiver.timeout(Instant::ZERO);
    let mut now = Instant::ZERO;
    while !is_complete(&receiver) {
        for datagram in driver.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        now = now + Duration::from_micros(500);
        assert!(now < Instant::ZERO + Duration::from_secs(2), "it was never complete");
    }
    assert_eq!(receiver.joined.len(), 1, "the block is not verified yet");
    // k and three more, some heads and manifests.
    let heard = receiver.endpoint.stats().session_packets;
    assert!((203..=210).contains(&heard), "{heard}");

    // The attempt was made with k symbols; say that they did not suffice.
    let Some(ReceiveJob::Solve { block, decoder, .. }) = receiver.runner.put_aside.pop() else {
        panic!()
    };
    receiver.runner.solver_is_slow = false;
    let progress = Progress::Wanting(1);
    receiver.endpoint.handle_done(now, ReceiveDone::Solved { block, decoder, progress });
    receiver.poll(now);
    // The three symbols that came meanwhile are tried at once, and suffice.
    assert!(receiver.has(&content) && receiver.joined.is_empty());
    assert_eq!(receiver.endpoint.stats().session_packets, heard);

    // With none to spare it has to receive more.
    let mut receiver = ReceiverDriver::new(receiver_config(), 0.0, 0);
    receiver.timeout(now);
    receiver.runner.solver_is_slow = true;
    let mut lied = false;
    let mut limit = 0;
    while !receiver.has(&content) {
        for datagram in driver.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        if is_complete(&receiver) && !lied {
            let Some(ReceiveJob::Solve { block, decoder, .. }) = receiver.runner.put_aside.pop()
            else {
                panic!()
            };
            let progress = Progress::OutOfBudget;
            receiver.runner.solver_is_slow = false;
            receiver.endpoint.handle_done(now, ReceiveDone::Solved { block, decoder, progress });
            receiver.poll(now);
            assert_eq!(receiver.joined.len(), 1);
            lied = true;
        }
        now = now + Duration::from_micros(500);
        limit += 1;
        assert!(
            limit < 4_000,
            "{lied} {:?} {:?} {:?}",
            receiver.endpoint.stats(),
            receiver.events,
            receiver.runner.put_aside
        );
    }
    assert!(lied && receiver.joined.is_empty());
}
