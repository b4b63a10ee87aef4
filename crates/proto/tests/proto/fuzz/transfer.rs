//! Blocks of any code: symbols of several senders and of mirrors, right and wrong ones, in any
//! order, across attempts to solve that take long and runs that end.

use crate::fuzz::{SEQUENCES, advance, settle, small_config};
use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, disk_error, sender, source,
};
use bolero::check;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{Esi, FecScheme, ObjectLayout, PlanCache, Progress, Sbn, Work};
use fontana_proto::{
    BlockId, DecodePolicy, Endpoint, Expectation, Instant, ReceiveDone, ReceiveJob, ReceiverConfig,
    SessionKey,
};
use fontana_testing::Script;
use fontana_wire::{Toi, Tsi};
use std::sync::Arc;
use std::time::Duration;

/// Source symbols of the first object.
const K: u32 = 24;

/// Content, and what three senders of it send in the first milliseconds.
struct Air {
    content: Content,
    recorded: Vec<Vec<Vec<u8>>>,
}

impl Air {
    fn new(scheme: &dyn Fn(u8, u32) -> FecScheme) -> Self {
        let shapes = [(K as usize * usize::from(T) - 3, 1), (5 * usize::from(T), 1)];
        let content = Content::coded(&shapes, 3, 1, scheme);
        let record = |seed| {
            let setup = Setup { seed, ..Setup::default() };
            let mut sender = SenderDriver::new(sender(&content, &setup, None), &content);
            let polled = |ms| sender.poll(Instant::ZERO + Duration::from_millis(ms));
            (0..60).flat_map(polled).collect()
        };
        let recorded = (1..4).map(record).collect();
        Self { content, recorded }
    }

    fn blocks(&self) -> Vec<BlockId> {
        let of = |(&toi, (layout, _)): (&Toi, &(ObjectLayout, _))| {
            (0..layout.block_count()).map(move |sbn| BlockId { toi, sbn: Sbn(sbn) })
        };
        self.content.objects.iter().flat_map(of).collect()
    }

    /// The bytes of source symbols of a block, without padding.
    fn source(&self, block: BlockId, esis: std::ops::Range<u32>) -> Vec<u8> {
        let (layout, bytes) = &self.content.objects[&block.toi];
        let before: u32 =
            (0..block.sbn.0).map(|sbn| layout.source_symbols(Sbn(sbn)).unwrap()).sum();
        let at = |esi: u32| ((before + esi) as usize * usize::from(T)).min(bytes.len());
        bytes[at(esis.start)..at(esis.end)].to_vec()
    }

    fn config(&self, script: &mut Script<'_>) -> ReceiverConfig {
        let mut config = small_config();
        config.expectation =
            Expectation { manifest: Some(self.content.hash()), ..Expectation::default() };
        config.policy = match script.below(4) {
            0 => DecodePolicy::Deferred,
            1 => DecodePolicy::Patient { margin: script.below(6).into() },
            _ => DecodePolicy::Incremental,
        };
        config.stays_until_verified = script.once_in(2);
        config
    }
}

/// What the objects of a content are sent with.
fn codes() -> [Air; 4] {
    let raptorq = |blocks, _| {
        FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 })
    };
    let none = |_, k: u32| FecScheme::NoCode(NoCode { max_source_block_length: k });
    let reed_solomon = |_, k: u32| {
        FecScheme::ReedSolomon(ReedSolomon {
            code: ReedSolomonCode::Rfc5510,
            max_source_block_length: k as u16,
            max_encoding_symbols: k as u16 + 6,
        })
    };
    let tornado = |_, k: u32| {
        FecScheme::Tornado(Tornado { max_source_block_length: k, code: TornadoCode::Z })
    };
    [Air::new(&raptorq), Air::new(&none), Air::new(&reed_solomon), Air::new(&tornado)]
}

/// Answers the attempts that were put aside: they succeed, want more, or exhaust their budget.
fn answer(script: &mut Script<'_>, now: Instant, receiver: &mut ReceiverDriver) {
    for job in std::mem::take(&mut receiver.runner.put_aside) {
        let ReceiveJob::Solve { block, mut decoder, .. } = job else { continue };
        let progress = match script.below(4) {
            0 => Progress::OutOfBudget,
            1 => Progress::Wanting(1 + u32::from(script.below(3))),
            _ => decoder.solve(Work::UNBOUNDED),
        };
        receiver.endpoint.handle_done(now, ReceiveDone::Solved { block, decoder, progress });
        receiver.poll(now);
    }
}

/// A mirror is asked for a run of symbols that a block lacks, and may answer with wrong ones.
/// Returns the number of runs that were pulled.
fn pull(script: &mut Script<'_>, now: Instant, receiver: &mut ReceiverDriver, air: &Air) -> u64 {
    let block = *script.pick(&air.blocks());
    match script.below(8) {
        0 => _ = receiver.endpoint.refetch(block),
        1 => _ = receiver.endpoint.release(block),
        _ => {}
    }
    let lacks = receiver.endpoint.missing_source(block, Esi(u32::from(script.below(30))));
    let wanted = receiver.endpoint.block_symbols_wanted(block);
    assert!(wanted == 0 || receiver.endpoint.needs_symbols(block));
    let repair = receiver.endpoint.missing_repair(block, K..K + 9);
    assert!(repair.is_none_or(|run| run.start >= K && run.end <= K + 9 && !run.is_empty()));
    let runs = lacks.is_some().into();
    if let Some(run) = lacks {
        assert!(receiver.endpoint.is_receiving(block.toi));
        let end = run.end.min(run.start + 1 + u32::from(script.below(12)));
        let mut symbols = air.source(block, run.start..end);
        if script.once_in(6) {
            let at = usize::from(script.u16()) % symbols.len();
            symbols[at] ^= 1 | script.u8();
        }
        let fresh = receiver.pull(now, block, run.start, &symbols);
        assert!(fresh <= u64::from(end - run.start));
    }
    let _ = receiver.endpoint.is_suspect(block);
    receiver.poll(now);
    runs
}

/// What a receiver would ask a sender for, and what it tells of itself. `pulled`: runs of symbols.
fn check_lacking(receiver: &ReceiverDriver, most: usize, pulled: u64) {
    let lacking = receiver.endpoint.lacking(most);
    assert!(lacking.blocks.len() <= most && lacking.blocks.is_sorted());
    for need in &lacking.blocks {
        let block = BlockId { toi: Toi(need.toi.into()), sbn: Sbn(need.sbn) };
        assert!(need.symbols > 0 && receiver.endpoint.needs_symbols(block));
    }
    let is_over = receiver.endpoint.joined_channels().next().is_none();
    assert!(!is_over || lacking.blocks.is_empty() || !lacking.may_lack_more);
    let heard = receiver.endpoint.stats().datagrams + pulled;
    assert!(receiver.endpoint.relevant_packets() <= heard);
    assert!(receiver.endpoint.newer_manifest().is_none(), "there is one version");
    let _ = receiver.endpoint.waits_for_announcements();
}

#[test]
fn any_symbols_of_any_code() {
    let codes = codes();
    let from = SessionKey { source: source(9), tsi: Tsi(0) };
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let air = &codes[usize::from(script.below(4))];
        let config = air.config(&mut script);
        let mut receiver = ReceiverDriver::new(config.clone(), 0.0, 1);
        let (has_mirror, is_failing) = (script.once_in(2), script.once_in(16));
        // Most senders are honest.
        let forger = usize::from(script.below(6));
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        if has_mirror && script.once_in(2) {
            let (hash, manifest) = (air.content.hash(), &air.content.manifest);
            let refused = receiver.endpoint.accept_manifest(from, hash, manifest);
            assert!(refused.is_ok());
            assert!(receiver.endpoint.accept_manifest(from, hash, manifest).is_err());
            receiver.poll(now);
        }
        let (mut at, mut pulled) = ([0; 3], 0);
        for _ in 0..3 * Script::STEPS {
            now = advance(&mut script, now);
            receiver.runner.solver_is_slow = script.once_in(4);
            let mirror = usize::from(script.below(3));
            at[mirror] += 1 + usize::from(script.once_in(8));
            let recorded = &air.recorded[mirror];
            let mut datagram = recorded[at[mirror] % recorded.len()].clone();
            if mirror == forger && script.once_in(3) {
                *datagram.last_mut().unwrap() ^= 1 | script.u8();
            }
            receiver.hear(now, source(1 + mirror as u8), &datagram);
            match script.below(24) {
                0..4 if has_mirror => pulled += pull(&mut script, now, &mut receiver, air),
                4..16 => answer(&mut script, now, &mut receiver),
                16 if script.once_in(4) => {
                    receiver = receiver.restarted(config.clone(), 1);
                    pulled = 0;
                    settle(&mut receiver, now);
                }
                17 if is_failing => {
                    let scope = fontana_proto::Scope::Object(Toi(1));
                    let failed = ReceiveDone::Failed { scope, error: disk_error() };
                    receiver.endpoint.handle_done(now, failed);
                    receiver.poll(now);
                }
                18 => _ = receiver.endpoint.suspect_block(),
                19 => _ = (receiver.endpoint.symbols_wanted(), receiver.endpoint.channel_loss()),
                20 => _ = receiver.endpoint.object_progress(Toi(1)),
                21 => check_lacking(&receiver, script.below(6).into(), pulled),
                22 if script.once_in(4) => {
                    receiver.endpoint.share_plans(Arc::new(PlanCache::new(1)))
                }
                _ => {}
            }
            settle(&mut receiver, now);
        }
        for &toi in receiver.committed() {
            let (_, data) = &air.content.objects[&toi];
            assert!(receiver.object(toi) == **data, "wrong bytes of {toi}");
        }
        let stats = receiver.endpoint.stats();
        let is_honest = forger >= 3 && !has_mirror;
        assert!(!is_honest || stats.corrupt_blocks == 0, "{stats:?}");
        assert!(receiver.endpoint.symbols_wanted() <= receiver.endpoint.source_symbols() + 2_048);
    });
}
