//! Streams whose publisher, or a host that repeats its packets, says anything.

use crate::fuzz::packets::{datagram, fields};
use crate::fuzz::{SEQUENCES, advance, settle, small_config};
use crate::support::world::{ReceiverDriver, T, TSI, hash, noise, source};
use bolero::check;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{Expectation, Instant, ReceiverEvent, StreamBreak, control_oti};
use fontana_testing::Script;
use fontana_wire::{
    CongestionControl, ContentKind, Fragment, HeadRecords, InstanceId, ObjectRef, RelativePath,
    SecretKey, SessionHead, StreamIndex, StreamState, Toi, stream_index_hash,
};

/// Symbols of the longest fragment.
const K: u32 = 4;
/// Fragments of the stream.
const FRAGMENTS: u32 = 40;
/// Symbol size of control objects: indexes are one symbol, or two.
const CONTROL_T: u16 = 1024;

/// The bytes of a fragment; the last symbol may be short.
fn fragment(number: u32) -> Vec<u8> {
    noise((K * u32::from(T) - number % 50) as usize, u64::from(number) + 100)
}

/// An index of the stream. It says false things once in about `rarely` times.
fn index(script: &mut Script<'_>, at: u32, rarely: u8) -> StreamIndex {
    let first = if script.once_in(rarely) { script.magnitude() as u32 } else { at };
    let first = first.min(u32::MAX >> 8);
    let count = u32::from(script.below(8));
    let wrong = if script.once_in(rarely) { script.below(8).into() } else { u32::MAX };
    let is_wide = script.once_in(rarely);
    let listed = |index: u32| {
        let bytes = fragment(first + index);
        let length = match script.below(rarely) {
            0 => script.u16().into(),
            _ if is_wide && index > 0 => 2 * K * u32::from(T),
            _ => bytes.len() as u32,
        };
        let mut hash = hash(&bytes);
        if index == wrong {
            hash.0[3] ^= 1;
        }
        Fragment { length, hash }
    };
    let fragments = (0..count).map(listed).collect();
    let before: u64 = (0..first.min(200)).map(|number| fragment(number).len() as u64).sum();
    StreamIndex {
        version: if script.once_in(rarely) {
            script.magnitude()
        } else {
            u64::from(first + count) + 1
        },
        name: RelativePath::new(if script.once_in(rarely) { "other" } else { "dump" }).unwrap(),
        state: match script.below(rarely) {
            0 => StreamState::Broken,
            1 if at > 3 => StreamState::Ended,
            _ => StreamState::Open,
        },
        symbol_size: if script.once_in(rarely) { script.u16() } else { T },
        max_symbols: match script.below(rarely) {
            0 => script.u32(),
            _ if is_wide => 2 * K,
            _ => K,
        },
        first,
        offset: if script.once_in(rarely) { script.magnitude() } else { before },
        fragments,
    }
}

/// The head and the symbols of an index.
fn packets(script: &mut Script<'_>, key: &SecretKey, index: &StreamIndex) -> Vec<Vec<u8>> {
    let body = index.emit();
    let oti = control_oti(body.len(), CONTROL_T);
    let head = SessionHead {
        instance: InstanceId([1 + u8::from(script.once_in(32)); 16]),
        manifest_version: index.version,
        kind: ContentKind::StreamIndex,
        manifest: ObjectRef { toi: 0xFFFF_FFFE, oti, hash: stream_index_hash(&body) },
        expires_unix_seconds: None,
        rate_bytes_per_second: None,
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    };
    let bytes = head.emit(Some(key));
    let head = datagram(&fields(Toi::HEAD, control_oti(bytes.len(), CONTROL_T)), 0, 0, &bytes);
    let symbol = |(esi, chunk): (u32, &[u8])| {
        let mut symbol = chunk.to_vec();
        if body.len() > usize::from(CONTROL_T) {
            symbol.resize(CONTROL_T.into(), 0);
        }
        datagram(&fields(Toi::MANIFEST, oti), 0, esi, &symbol)
    };
    std::iter::once(head).chain((0..).zip(body.chunks(CONTROL_T.into())).map(symbol)).collect()
}

/// A source symbol of a fragment, right or not.
fn symbol(script: &mut Script<'_>, number: u32) -> Vec<u8> {
    let bytes = fragment(number);
    let esi = u32::from(script.below(K as u8));
    let start = esi as usize * usize::from(T);
    let mut symbol = bytes[start..bytes.len().min(start + usize::from(T))].to_vec();
    symbol.resize(T.into(), 0);
    if script.once_in(64) {
        symbol[0] ^= 1;
    }
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
    let oti = Oti { transfer_length: bytes.len() as u64, symbol_size: T, scheme };
    let mut fields = fields(StreamIndex::toi(number), oti);
    fields.fti = None;
    datagram(&fields, 0, if script.once_in(64) { script.u32() } else { esi }, &symbol)
}

#[test]
fn any_indexes_and_fragments_of_a_stream() {
    let key = SecretKey::from_seed(&[7; 32]);
    let stream: Vec<u8> = (0..FRAGMENTS * 8).flat_map(fragment).collect();
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut config = small_config();
        config.expectation = Expectation {
            tsi: Some(TSI),
            publisher: Some(key.public_key()),
            ..Expectation::default()
        };
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        let mut at = 0;
        let mut last = Vec::new();
        // A stream ends with the first false index.
        let rarely = *script.pick(&[8, 64, 250, 250]);
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            let from = source(1 + u8::from(script.once_in(8)));
            receiver.runner.consumer_is_stalled = script.once_in(6);
            if script.once_in(3) {
                let index = index(&mut script, at, rarely);
                at = (at + u32::from(script.once_in(3))).min(FRAGMENTS);
                last = packets(&mut script, &key, &index);
            }
            let again = 1 + usize::from(script.below(2));
            for packet in last.iter().cycle().take(last.len() * again) {
                receiver.hear(now, from, packet);
            }
            for _ in 0..script.below(16) {
                let number = at.saturating_add(script.below(4).into());
                let packet = symbol(&mut script, number);
                receiver.hear(now, from, &packet);
            }
            settle(&mut receiver, now);
            assert!(receiver.runner.held() <= 1024, "more slots than the limit");
        }
        // A publisher who lists other places makes other streams of the same fragments.
        let handed = &receiver.runner.handed_over;
        assert!(stream.starts_with(handed), "{} bytes are wrong", handed.len());
    });
}

/// A fragment that is longer than its slot would overwrite one that waits for the consumer.
#[test]
fn a_later_index_cannot_list_longer_fragments() {
    let key = SecretKey::from_seed(&[7; 32]);
    let mut config = small_config();
    config.expectation =
        Expectation { tsi: Some(TSI), publisher: Some(key.public_key()), ..Expectation::default() };
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    let mut script = Script::new(&[1; 4096]);
    let mut index = StreamIndex {
        version: 1,
        name: RelativePath::new("dump").unwrap(),
        state: StreamState::Open,
        symbol_size: T,
        max_symbols: K,
        first: 0,
        offset: 0,
        fragments: vec![Fragment { length: K * u32::from(T), hash: hash(&fragment(0)) }],
    };
    settle(&mut receiver, Instant::ZERO);
    for packet in packets(&mut script, &key, &index) {
        receiver.hear(Instant::ZERO, source(1), &packet);
    }
    (index.version, index.max_symbols) = (2, 2 * K);
    index.fragments.push(Fragment { length: K * u32::from(T) + 1, hash: hash(&[]) });
    for packet in packets(&mut script, &key, &index) {
        receiver.hear(Instant::ZERO, source(1), &packet);
    }
    let broken = |event: &&ReceiverEvent| matches!(event, ReceiverEvent::StreamBroken { .. });
    let broken: Vec<_> = receiver.events.iter().filter(broken).collect();
    let expected = (u64::from(K * u32::from(T)), StreamBreak::Failed);
    assert!(
        matches!(broken[..], [&ReceiverEvent::StreamBroken { at, reason }] if (at, reason) == expected),
        "{broken:?}"
    );
}
