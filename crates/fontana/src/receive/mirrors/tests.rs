//! Mirrors of a receiver whose jobs run at once, on bytes in memory.

use super::fresh::FreshServer;
use super::source::Source;
use super::*;
use crate::web::report::MirrorReport;
use crossbeam_channel::{bounded, unbounded};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{Esi, FecScheme, Oti, Sbn};
use fontana_proto::memory::{MemoryContent, MemoryReceiveRunner};
use fontana_proto::pull::{FreshPull, PulledRun};
use fontana_proto::{
    DatagramBatch, Driver, Effect, Endpoint, Expectation, JobRunner, Output, ReceiveJob,
    ReceiverConfig, ReceiverEvent, ReceiverLimits, Subscription, SubscriptionLimits,
};
use fontana_wire::{
    Entry, FileEntry, HeldIndex, HeldRun, ManifestObject, Metadata, RelativePath, ShelfIndex,
    ShelfNumber, Toi, WebAddress, manifest_hash,
};

pub(super) const SYMBOL: usize = 64;
/// Source symbols of each of the two blocks.
const K: u32 = 20;
const FIRST: BlockId = BlockId { toi: Toi(1), sbn: Sbn(0) };
pub(super) const NO_CODE: FecScheme = FecScheme::NoCode(NoCode { max_source_block_length: K });
pub(super) const TORNADO: FecScheme =
    FecScheme::Tornado(Tornado { max_source_block_length: K, code: TornadoCode::Z });

/// A receiver of one file, and its mirrors.
pub(super) struct Reception {
    pub(super) file: Vec<u8>,
    driver: Driver<Receiver, MemoryReceiveRunner>,
    pub(super) mirrors: Mirrors,
    /// The orders of each mirror.
    pub(super) orders: Vec<ChannelReceiver<Order>>,
    pub(super) now: Instant,
    pub(super) is_complete: bool,
}

impl Reception {
    pub(super) fn new(mirrors: usize, scheme: FecScheme, limits: ReceiverLimits) -> Self {
        let file = fontana_testing::noise(2 * K as usize * SYMBOL, 1);
        let transfer_length = file.len() as u64;
        let oti = Oti { transfer_length, symbol_size: SYMBOL as u16, scheme };
        let mut content = MemoryContent::default();
        content.insert(Toi(1), oti.layout().unwrap(), file.clone());
        let block_hashes = content.get(Toi(1)).unwrap().block_hashes();
        let object = ManifestObject { toi: 1, oti, block_hashes };
        let path = RelativePath::new("file").unwrap();
        let entry = FileEntry::whole_object(path, Metadata::default(), 1, transfer_length);
        let manifest = Manifest::new(1, "", vec![object], vec![Entry::File(entry)]).unwrap();
        let hash = manifest_hash(&manifest.emit());
        let config = ReceiverConfig {
            limits: limits.clone(),
            stays_until_verified: true,
            ..ReceiverConfig::new(
                Expectation { manifest: Some(hash), ..Expectation::default() },
                1_800_000_000,
            )
        };
        let mut receiver =
            Receiver::new(config, Subscription::Declared(SubscriptionLimits::default()));
        let from = SessionKey { source: IpAddr::V4(Ipv4Addr::LOCALHOST), tsi: Tsi(0) };
        receiver.accept_manifest(from, hash, &Arc::new(manifest.clone())).unwrap();
        let (mut pull, mut states, mut orders) = (Pull::new(), Vec::new(), Vec::new());
        for number in 0..mirrors {
            let address: WebAddress = format!("http://{number}.example/").parse().unwrap();
            let (sender, queue) = unbounded();
            let mut state =
                MirrorState::new(number, address, pull.add_source(), sender, Arc::default());
            state.source = Source::Files;
            states.push(state);
            orders.push(queue);
        }
        let (common, group) = (Common::new(pull, 0), (true, None));
        let expected = (Some(hash), limits.manifest);
        let mut mirrors = Mirrors::new(states, common, bounded(0).1, expected, group);
        mirrors.begin(&manifest);
        let driver = Driver::new(receiver, MemoryReceiveRunner::default());
        let now = Instant::ZERO;
        let mut reception = Self { file, driver, mirrors, orders, now, is_complete: false };
        reception.poll(&[]);
        reception
    }

    fn poll(&mut self, slab: &[u8]) {
        let batch = DatagramBatch { slab, datagrams: &[] };
        while let Some(effect) = self.driver.poll(self.now, &batch).unwrap() {
            let receiver = &mut self.driver.endpoint;
            match effect {
                Effect::Event(ReceiverEvent::BlockVerified { block }) => {
                    self.mirrors.on_verified(self.now, block, receiver);
                }
                Effect::Event(ReceiverEvent::BlockCorrupt { block, .. }) => {
                    self.mirrors.on_corrupt(self.now, block, receiver);
                }
                Effect::Event(ReceiverEvent::Complete) => self.is_complete = true,
                _ => {}
            }
        }
    }

    /// Gives orders, a second after the last ones.
    pub(super) fn drive(&mut self) {
        self.drive_after(Duration::from_secs(1));
    }

    pub(super) fn drive_after(&mut self, time: Duration) {
        self.now = self.now + time;
        self.mirrors.drive(self.now, &mut self.driver.endpoint);
        self.poll(&[]);
    }

    /// A packet brings a wrong symbol. Mirrors do not know of it.
    fn bring_wrong(&mut self, block: BlockId, Esi(esi): Esi) {
        let symbol = [9; SYMBOL];
        let run = PulledRun { block, first: Esi(esi), bytes: 0..SYMBOL as u32 };
        self.driver.endpoint.handle_pulled(self.now, &run, &symbol);
        self.poll(&symbol);
    }

    pub(super) fn report(&mut self, mirror: usize, what: Done) {
        let report = Report { mirror, what };
        let receiver = &mut self.driver.endpoint;
        let slab = self.mirrors.on_report(self.now, report, receiver).ok().unwrap();
        self.poll(&slab);
    }

    /// The bytes of the file that a mirror is to send. `None` if it has no order.
    fn order(&self, mirror: usize) -> Option<Range<usize>> {
        match self.orders[mirror].try_recv().ok()? {
            Order::Fetch(fetch) => Some(fetch.bytes.start as usize..fetch.bytes.end as usize),
            Order::File { .. } => None,
        }
    }

    /// A mirror sends these bytes of the file, after `change`.
    fn send(&mut self, mirror: usize, range: Range<usize>, change: impl FnOnce(&mut [u8])) {
        let mut bytes = self.file[range.clone()].to_vec();
        change(&mut bytes);
        self.report(mirror, Done::Bytes { at: range.start as u64, bytes });
    }

    /// Mirrors carry out all orders.
    fn complete(&mut self) {
        for _ in 0..10 {
            self.drive();
            for mirror in 0..self.orders.len() {
                while let Some(range) = self.order(mirror) {
                    self.send(mirror, range, |_| ());
                    self.report(mirror, Done::Ended);
                }
            }
        }
        assert!(self.is_complete, "{:?}", self.reports());
    }

    /// What became of each mirror.
    pub(super) fn reports(&self) -> Vec<MirrorReport> {
        self.mirrors.mirrors.iter().map(MirrorState::report).collect()
    }

    fn wrong_blocks(&self) -> Vec<u32> {
        self.reports().iter().map(|report| report.wrong_blocks).collect()
    }
}

#[test]
fn a_mirror_is_not_charged_with_symbols_that_it_sent_beside_those_of_packets() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    reception.bring_wrong(FIRST, Esi(10));
    // The mirror sends all of the block, because what lies around a symbol is requested with it.
    reception.drive();
    let range = reception.order(0).unwrap();
    assert_eq!(range, 0..reception.file.len());
    reception.send(0, range, |_| ());
    reception.report(0, Done::Ended);
    assert_eq!(reception.driver.endpoint.stats().corrupt_blocks, 1);
    assert_eq!(reception.wrong_blocks(), [0]);
    reception.complete();
    assert_eq!(reception.wrong_blocks(), [0]);
}

#[test]
fn a_mirror_is_charged_once_with_a_wrong_block_that_another_one_sends_again() {
    let mut reception = Reception::new(2, NO_CODE, ReceiverLimits::default());
    reception.drive();
    let range = reception.order(0).unwrap();
    assert!(range.end >= K as usize * SYMBOL);
    reception.send(0, range, |bytes| bytes[0] ^= 1);
    reception.report(0, Done::Ended);
    reception.complete();
    assert_eq!(reception.wrong_blocks(), [1, 0]);
}

/// The whole block finds no memory for its decoder.
#[test]
fn a_block_that_was_fetched_in_vain_is_fetched_again() {
    let decoder = TORNADO.block_profile(K).decoder_memory.unwrap();
    let limits = ReceiverLimits { max_decoder_bytes: decoder, ..ReceiverLimits::default() };
    let mut reception = Reception::new(1, TORNADO, limits);
    reception.drive();
    let (range, half) = (reception.order(0).unwrap(), K as usize * SYMBOL);
    assert_eq!(range, 0..2 * half);
    reception.send(0, 0..half, |bytes| bytes[0] ^= 1);
    assert_eq!(reception.wrong_blocks(), [1]);
    // The other block takes the memory.
    reception.send(0, half..half + 5 * SYMBOL, |_| ());
    reception.report(0, Done::Ended);
    reception.complete();
}

/// A reception whose first mirror has sent wrong blocks and was dropped. The second one has not
/// said yet what it has, and is to send them as a whole.
fn wrong_and_dropped() -> Reception {
    let mut reception = Reception::new(2, TORNADO, ReceiverLimits::default());
    reception.mirrors.mirrors[1].source = Source::Unknown;
    reception.mirrors.mirrors[1].work = Work::Index;
    reception.drive();
    let range = reception.order(0).unwrap();
    reception.send(0, range, |bytes| bytes.fill(9));
    reception.report(0, Done::Ended);
    let receiver = &mut reception.driver.endpoint;
    let failure = MirrorFailure::Wrong(2);
    reception.mirrors.drop_mirror(reception.now, 0, failure, Some(receiver));
    assert!(!reception.mirrors.common.wholes.is_empty(), "the other mirror is to send them");
    reception
}

/// Until its index has arrived, a mirror with a shelf may be one with files, and is to send the
/// block as a whole.
#[test]
fn a_wrong_block_is_not_left_to_a_mirror_that_turns_out_to_have_a_shelf() {
    let mut reception = wrong_and_dropped();
    let number = ShelfNumber::new(1).unwrap();
    let index = ShelfIndex {
        manifest: reception.mirrors.common.content.unwrap(),
        number,
        stretch_permille: 1_000,
    };
    reception.report(1, Done::File(index.emit(), None));
    assert!(reception.mirrors.common.wholes.is_empty());
    assert!(!reception.driver.endpoint.release(FIRST), "a shelf may send it");
}

/// A mirror that rests for a minute, or for ten years, does not keep a block from the others.
#[test]
fn a_wrong_block_is_not_left_to_a_mirror_that_rests() {
    let mut reception = wrong_and_dropped();
    let retry_after = Some(Duration::from_secs(300_000_000));
    let status = status(429, retry_after);
    reception.report(1, Done::Failed(status));
    assert!(reception.mirrors.common.wholes.is_empty());
    assert!(!reception.driver.endpoint.release(FIRST), "packets may bring it");
}

/// Nor does one that has not said yet whether it has files.
#[test]
fn a_wrong_block_does_not_wait_for_a_mirror_that_sends_nothing() {
    let mut reception = wrong_and_dropped();
    reception.drive();
    reception.drive_after(DOUBTFUL_FOR);
    assert!(reception.mirrors.common.wholes.is_empty());
}

/// Symbols of another request complete the block before its turn comes.
#[test]
fn a_block_that_is_not_fetched_again_is_not_reserved() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    let mut wrong = reception.file[..K as usize * SYMBOL].to_vec();
    wrong[0] ^= 1;
    reception.drive();
    reception.send(0, 0..wrong.len(), |bytes| bytes.copy_from_slice(&wrong));
    reception.report(0, Done::Ended);
    assert_eq!(reception.mirrors.common.wholes.len(), 1);
    let run = PulledRun { block: FIRST, first: Esi(0), bytes: 0..wrong.len() as u32 };
    let (now, batch) = (reception.now, DatagramBatch { slab: &wrong, datagrams: &[] });
    let Driver { endpoint, runner, .. } = &mut reception.driver;
    endpoint.handle_pulled(now, &run, &wrong);
    let mut recovery = None;
    while recovery.is_none() {
        match endpoint.poll_output(now, &mut Vec::new()) {
            Some(Output::Job(job @ ReceiveJob::Recover { .. })) => recovery = Some(job),
            Some(Output::Job(job)) => {
                let finished = runner.run(now, job, &batch).unwrap();
                finished.into_iter().for_each(|finished| endpoint.handle_done(now, finished.done));
            }
            output => assert!(output.is_some(), "the block is recovered"),
        }
    }
    reception.mirrors.drive(now, endpoint);
    assert!(reception.mirrors.common.wholes.is_empty(), "its turn has come");
    assert!(!endpoint.release(FIRST), "packets are of no use for it");
}

/// The mirrors that were dropped since the last call.
fn dropped(reception: &mut Reception) -> Vec<MirrorFailure> {
    let events = reception.mirrors.take_events().into_iter();
    let failure = |event| match event {
        ReceiveEvent::MirrorDropped { failure, .. } => Some(failure),
        _ => None,
    };
    events.filter_map(failure).collect()
}

/// The failures that were told since the last call.
fn failed(reception: &mut Reception) -> Vec<MirrorFailure> {
    let events = reception.mirrors.take_events().into_iter();
    let failure = |event| match event {
        ReceiveEvent::MirrorFailed { failure, .. } => Some(failure),
        event => panic!("{event:?}"),
    };
    events.filter_map(failure).collect()
}

pub(super) fn status(status: u16, retry_after: Option<Duration>) -> MirrorFailure {
    MirrorFailure::Status { path: "file".into(), status, what: String::new(), retry_after }
}

#[test]
fn a_refused_certificate_is_reported_while_another_mirror_does_not_answer() {
    let redirect = MirrorFailure::Redirect { path: "x".into(), what: "is refused" };
    let certificate = MirrorFailure::Certificate("expired".into());
    for failure in [certificate, redirect, MirrorFailure::Rebound] {
        let mut reception = Reception::new(3, NO_CODE, ReceiverLimits::default());
        // The manifest is not known yet, and no group brings it.
        reception.mirrors.common.files = None;
        reception.mirrors.has_group = false;
        reception.drive();
        assert!(reception.orders.iter().all(|orders| orders.len() == 1));
        let silent = MirrorFailure::Silent(Duration::from_secs(10));
        let failures = [failure, silent, status(404, None)];
        for (mirror, failure) in failures.iter().enumerate() {
            reception.report(mirror, Done::Failed(failure.clone()));
        }
        assert_eq!(failed(&mut reception), failures);
        assert!(!reception.mirrors.are_gone(), "one may answer");
        // Those that have none are asked again after a minute.
        let is_asked = |reception: &Reception| reception.orders[0].try_iter().count() > 0;
        assert!(is_asked(&reception));
        (0..58).for_each(|_| reception.drive());
        assert!(!is_asked(&reception));
        (0..3).for_each(|_| reception.drive());
        assert!(is_asked(&reception));
        // That the other one has no manifest either ends the reception.
        reception.report(1, Done::Failed(status(403, None)));
        assert!(reception.mirrors.are_gone());
    }
}

/// The file of the reception, as long as it is needed.
fn is_asked_for_file(reception: &Reception, mirror: usize) -> bool {
    reception.order(mirror).is_some_and(|range| range.start == 0)
}

#[test]
fn a_file_that_a_mirror_lacks_is_left_to_others_and_asked_for_again_after_a_minute() {
    for failure in [
        status(404, None),
        status(403, None),
        MirrorFailure::Range { path: "file".into(), what: "26 bytes of text/html".into() },
        MirrorFailure::Redirect { path: "file".into(), what: "leads from https to http" },
    ] {
        let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
        reception.mirrors.has_group = false;
        reception.drive();
        assert!(is_asked_for_file(&reception, 0));
        reception.report(0, Done::Failed(failure.clone()));
        assert_eq!(failed(&mut reception), [failure]);
        (0..58).for_each(|_| reception.drive());
        assert!(reception.orders[0].is_empty(), "it lacks the only file");
        (0..3).for_each(|_| reception.drive());
        // It may have a shelf by now.
        assert!(matches!(reception.orders[0].try_recv(), Ok(Order::File { .. })));
        reception.report(0, Done::Failed(status(404, None)));
        reception.complete();
        let report = &reception.reports()[0];
        assert_eq!((&report.dropped, &report.failing), (&None, &None));
    }
}

#[test]
fn symbols_that_a_shelf_lacks_are_asked_for_again_after_a_minute() {
    let raptorq = RaptorQ { source_blocks: 2, sub_blocks: 1, alignment: 4 };
    let mut reception = Reception::new(1, FecScheme::RaptorQ(raptorq), ReceiverLimits::default());
    reception.mirrors.mirrors[0].source = Source::Unknown;
    reception.drive();
    assert!(file_order(&reception).is_some());
    let (manifest, number) =
        (reception.mirrors.common.content.unwrap(), ShelfNumber::new(1).unwrap());
    let index = ShelfIndex { manifest, number, stretch_permille: 1_000 };
    reception.report(0, Done::File(index.emit(), None));
    reception.drive();
    assert!(reception.order(0).is_some(), "it is asked for symbols");
    reception.report(0, Done::Failed(status(404, None)));
    (0..58).for_each(|_| reception.drive());
    assert!(reception.orders[0].is_empty(), "it lacks those of the only object");
    (0..3).for_each(|_| reception.drive());
    assert!(reception.order(0).is_some());
}

/// The pauses of a mirror that fails begin again once bytes have arrived.
#[test]
fn a_mirror_that_has_sent_something_does_not_fail_any_more() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    let silent = MirrorFailure::Silent(Duration::from_secs(10));
    let pauses = [false, false, false, true, false].map(|sends| {
        let range = loop {
            reception.drive();
            if let Some(range) = reception.order(0) {
                break range;
            }
        };
        if sends {
            reception.send(0, range.start..range.start + SYMBOL, |_| ());
            assert_eq!(reception.reports()[0].failing, None);
        }
        reception.report(0, Done::Failed(silent.clone()));
        assert_eq!(reception.reports()[0].failing, Some(silent.clone()));
        reception.mirrors.mirrors[0].retries_at.saturating_since(reception.now).as_secs()
    });
    assert_eq!(pauses, [1, 2, 4, 1, 2]);
}

/// A mirror with another version of a file beside a group: once it is dropped, what it has sent of
/// other blocks is dropped without a search for wrong symbols, and what packets have brought stays.
#[test]
fn what_a_dropped_mirror_has_sent_is_dropped_from_corrupt_blocks() {
    let raptorq = RaptorQ { source_blocks: 2, sub_blocks: 1, alignment: 4 };
    let mut reception = Reception::new(1, FecScheme::RaptorQ(raptorq), ReceiverLimits::default());
    let half = SYMBOL * K as usize / 2;
    let right = reception.file[..half].to_vec();
    let run = PulledRun { block: FIRST, first: Esi(0), bytes: 0..half as u32 };
    reception.driver.endpoint.handle_pulled(reception.now, &run, &right);
    reception.poll(&right);
    reception.drive();
    assert!(reception.order(0).is_some());
    reception.send(0, half..2 * half, |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 1));
    let endpoint = &mut reception.driver.endpoint;
    assert!(endpoint.is_suspect(FIRST));
    let failure = MirrorFailure::Wrong(2);
    reception.mirrors.drop_mirror(reception.now, 0, failure, Some(endpoint));
    reception.drive_after(Duration::from_millis(1));
    let endpoint = &reception.driver.endpoint;
    assert!(!endpoint.is_suspect(FIRST));
    assert_eq!(endpoint.block_symbols_wanted(FIRST), K / 2);
    // Packets bring the rest.
    let rest = reception.file[half..2 * half].to_vec();
    let run = PulledRun { block: FIRST, first: Esi(K / 2), bytes: 0..half as u32 };
    reception.driver.endpoint.handle_pulled(reception.now, &run, &rest);
    reception.poll(&rest);
    assert!(!reception.driver.endpoint.needs_symbols(FIRST));
}

#[test]
fn what_one_mirror_lacks_another_one_brings_at_once() {
    let mut reception = Reception::new(2, NO_CODE, ReceiverLimits::default());
    reception.drive();
    reception.order(0).unwrap();
    reception.report(0, Done::Failed(status(404, None)));
    for _ in 0..3 {
        while let Some(range) = reception.order(1) {
            reception.send(1, range, |_| ());
            reception.report(1, Done::Ended);
        }
        reception.drive();
    }
    assert!(reception.is_complete && reception.orders[0].is_empty());
}

/// A wrong block that is sent wrong again is not requested of its mirror any more. If nothing else
/// is left, that is the end.
#[test]
fn wrong_blocks_of_the_only_mirror_end_the_reception() {
    let raptorq = RaptorQ { source_blocks: 2, sub_blocks: 1, alignment: 4 };
    for scheme in [NO_CODE, FecScheme::RaptorQ(raptorq)] {
        for wrong in [K as usize * SYMBOL, 1] {
            let mut reception = Reception::new(1, scheme, ReceiverLimits::default());
            reception.mirrors.has_group = false;
            // Blocks of other parts of the file, so that it is not another one.
            let mirror = &mut reception.mirrors.mirrors[0];
            mirror.right_blocks = 10;
            mirror.right.insert(Toi(1), 10);
            for _ in 0..60 {
                reception.drive();
                while let Some(range) = reception.order(0) {
                    // The second block is right.
                    reception.send(0, range.clone(), |bytes| {
                        let wrong = wrong.saturating_sub(range.start);
                        bytes.iter_mut().take(wrong).for_each(|byte| *byte ^= 1);
                    });
                    reception.report(0, Done::Ended);
                }
            }
            assert!(reception.mirrors.are_gone(), "{scheme:?}: {:?}", reception.reports());
            assert_eq!(reception.wrong_blocks(), [2], "{scheme:?}, {wrong} wrong bytes");
        }
    }
}

/// A server of fresh symbols, of no object.
fn fresh() -> Source {
    let start = fontana_wire::FreshStart::draw(1);
    Source::Fresh(FreshServer::new(FreshPull::new(start, Vec::new())))
}

/// Another address of the same server may have brought what this one sends.
#[test]
fn a_server_whose_answers_bring_nothing_new_rests_and_is_not_dropped() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    reception.mirrors.mirrors[0].source = fresh();
    let mut rest_after = |is_new| {
        let mirror = &mut reception.mirrors.mirrors[0];
        let Source::Fresh(fresh) = &mut mirror.source else { panic!("it has symbols") };
        fresh.pull.on_needed(is_new);
        mirror.work = Work::Repair;
        let now = mirror.retries_at.max(reception.now);
        mirror.on_ended(now, &mut reception.mirrors.common);
        assert!(dropped(&mut reception).is_empty());
        reception.mirrors.mirrors[0].retries_at.saturating_since(now).as_secs()
    };
    let rests: Vec<_> = (0..10).map(|_| rest_after(false)).collect();
    assert_eq!(rests, [0, 0, 0, 1, 2, 4, 8, 16, 30, 30]);
    assert_eq!([rest_after(true), rest_after(false)], [0, 0]);
}

/// A server that was started again has other symbols, and says so by a status.
#[test]
fn the_index_of_a_server_of_symbols_is_asked_for_again() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    let mut pauses = Vec::new();
    for attempt in 0..20 {
        let mirror = &mut reception.mirrors.mirrors[0];
        (mirror.source, mirror.work) = (fresh(), Work::Repair);
        let gone = [416, 404, 410][attempt % 3];
        reception.report(0, Done::Failed(status(gone, None)));
        assert!(matches!(reception.mirrors.mirrors[0].source, Source::Unknown));
        let until = reception.mirrors.mirrors[0].retries_at;
        pauses.push(until.saturating_since(reception.now).as_secs());
    }
    assert_eq!(pauses[..6], [1, 2, 4, 8, 16, 30]);
    assert_eq!(pauses.iter().max(), Some(&30));
    // It has files instead: it is a source of them again.
    let index = Done::File(b"<html>".to_vec(), None);
    let mirror = &mut reception.mirrors.mirrors[0];
    let id = mirror.id;
    mirror.work = Work::Index;
    reception.mirrors.common.pull.remove_source(reception.now, id);
    reception.report(0, index);
    reception.now = reception.now + Duration::from_secs(60);
    reception.complete();
}

/// The path of the file that a mirror is to send. `None` if it has no such order.
fn file_order(reception: &Reception) -> Option<String> {
    match reception.orders[0].try_recv().ok()? {
        Order::File { path, .. } => Some(path.to_string()),
        Order::Fetch(_) => None,
    }
}

/// A mirror says that it is receiving, and has these runs of blocks: object, block, number.
fn hold(reception: &mut Reception, runs: &[(u32, u32, u32)]) {
    let run = |&(toi, first, count)| HeldRun { toi, first: Sbn(first), count };
    let manifest = reception.mirrors.common.content.unwrap();
    let index = HeldIndex { manifest, runs: runs.iter().map(run).collect() };
    reception.report(0, Done::File(index.emit(), None));
}

#[test]
fn a_mirror_that_is_receiving_is_asked_for_its_blocks_and_again_for_more() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    reception.mirrors.mirrors[0].source = Source::Unknown;
    reception.drive();
    let index = file_order(&reception).unwrap();
    assert!(index.ends_with(".shelf"), "{index}");
    let block = K as usize * SYMBOL;
    hold(&mut reception, &[(1, 1, 1)]);
    reception.drive_after(Duration::from_millis(100));
    assert_eq!(reception.order(0), Some(block..2 * block), "its only block");
    reception.send(0, block..2 * block, |_| ());
    reception.report(0, Done::Ended);
    reception.drive_after(Duration::from_millis(100));
    // It has nothing else: it answers when it has more than one block.
    assert_eq!(file_order(&reception), Some(format!("{index}?after=1")));
    hold(&mut reception, &[(1, 0, 2)]);
    reception.drive();
    assert_eq!(file_order(&reception), Some(index), "a second later");
    hold(&mut reception, &[(1, 0, 2)]);
    reception.drive_after(Duration::from_millis(100));
    assert_eq!(reception.order(0), Some(0..block));
    reception.send(0, 0..block, |_| ());
    reception.report(0, Done::Ended);
    assert!(reception.is_complete);
}

#[test]
fn blocks_that_do_not_exist_are_not_requested() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    reception.mirrors.mirrors[0].source = Source::Unknown;
    reception.drive();
    assert!(file_order(&reception).is_some());
    for runs in [&[(2, 0, 1)][..], &[(1, 2, 1)], &[(1, 0, 3)], &[(1, 0, u32::MAX)], &[]] {
        hold(&mut reception, runs);
        reception.drive_after(Duration::from_millis(100));
        assert!(file_order(&reception).is_some(), "{runs:?}: only the index");
    }
}

#[test]
fn a_mirror_that_was_receiving_and_has_no_index_any_more_has_the_files() {
    let mut reception = Reception::new(1, NO_CODE, ReceiverLimits::default());
    reception.mirrors.mirrors[0].source = Source::Unknown;
    reception.drive();
    hold(&mut reception, &[]);
    reception.orders[0].try_iter().for_each(drop);
    // It is away for a while, and comes back as it was.
    reception.drive();
    reception.report(0, Done::Failed(MirrorFailure::Cut));
    assert!(matches!(reception.mirrors.mirrors[0].source, Source::Holder(_)));
    reception.drive_after(Duration::from_secs(40));
    let path = file_order(&reception).unwrap();
    let what = "not found".to_owned();
    let missing = MirrorFailure::Status { status: 404, what, path, retry_after: None };
    reception.report(0, Done::Failed(missing));
    assert!(matches!(reception.mirrors.mirrors[0].source, Source::Files));
    reception.complete();
}
