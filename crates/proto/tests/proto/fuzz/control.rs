//! Objects of control: heads that name manifests of any shape, and any symbols of these.

use crate::fuzz::packets::{datagram, fields, oti};
use crate::fuzz::{SEQUENCES, advance, settle, small_config};
use crate::support::world::{Content, ReceiverDriver, SenderDriver, Setup, TSI, sender, source};
use bolero::check;
use fontana_proto::{Expectation, Instant, control_oti};
use fontana_testing::Script;
use fontana_wire::{
    CongestionControl, ContentKind, HeadRecords, InstanceId, ObjectRef, Packet, SessionHead, Toi,
};
use std::num::NonZeroU64;
use std::time::Duration;

/// Any session head.
fn head(script: &mut Script<'_>, content: &Content) -> SessionHead {
    let length = content.manifest_bytes.len() as u64;
    let mut hash = content.hash();
    if script.once_in(2) {
        hash.0[0] ^= script.below(4);
    }
    SessionHead {
        instance: InstanceId([script.below(3); 16]),
        manifest_version: if script.once_in(8) { script.magnitude() } else { 1 },
        kind: if script.once_in(8) { ContentKind::StreamIndex } else { ContentKind::Manifest },
        manifest: ObjectRef {
            toi: if script.once_in(8) { script.u32() } else { 0xFFFF_FFFE },
            oti: oti(script, length),
            hash,
        },
        expires_unix_seconds: NonZeroU64::new(script.magnitude() >> script.below(64)),
        rate_bytes_per_second: NonZeroU64::new(script.magnitude()),
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    }
}

/// A packet with a head.
fn head_packet(script: &mut Script<'_>, content: &Content) -> Vec<u8> {
    let bytes = head(script, content).emit(None);
    datagram(&fields(Toi::HEAD, control_oti(bytes.len(), 512)), 0, 0, &bytes)
}

/// The collectors of a receiver that trusts any head, or the hash of one: hostile transmission
/// information, sizes and symbols, also of an object that is complete but for them.
#[test]
fn control_objects_of_any_shape() {
    let content = Content::new(&[(900, 1), (300, 1)], 1);
    let mut honest = SenderDriver::new(sender(&content, &Setup::default(), None), &content);
    let recorded: Vec<_> =
        (0..30).flat_map(|ms| honest.poll(Instant::ZERO + Duration::from_millis(ms))).collect();
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut config = small_config();
        let is_pinned = script.once_in(2);
        config.expectation = Expectation {
            tsi: Some(TSI),
            manifest: is_pinned.then(|| content.hash()),
            ..Expectation::default()
        };
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        let mut last = oti(&mut script, content.manifest_bytes.len() as u64);
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            let from = source(1 + script.below(2));
            let packet = match script.below(8) {
                0 => head_packet(&mut script, &content),
                1 => {
                    last = oti(&mut script, content.manifest_bytes.len() as u64);
                    continue;
                }
                2..5 => {
                    let esi =
                        if script.once_in(8) { script.u32() } else { script.below(60).into() };
                    let sbn = if script.once_in(8) { script.u32() } else { 0 };
                    let size = if script.once_in(4) { script.u8().into() } else { 64 };
                    let start = esi as usize * 64;
                    let right = content.manifest_bytes.get(start..start + size);
                    let symbol = match right {
                        Some(right) if !script.once_in(8) => right.to_vec(),
                        _ => vec![script.u8(); size],
                    };
                    datagram(&fields(Toi::MANIFEST, last), sbn, esi, &symbol)
                }
                _ => script.pick(&recorded).clone(),
            };
            assert!(packet.is_empty() || Packet::parse(&packet).is_ok());
            receiver.hear(now, from, &packet);
            settle(&mut receiver, now);
        }
        if is_pinned {
            for &toi in receiver.committed() {
                assert_eq!(receiver.object(toi), *content.objects[&toi].1);
            }
        }
    });
}
