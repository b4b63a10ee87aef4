//! Which symbols of a shelf to request: a shelf has repair symbols in files, in a fixed order.

use super::rate::RateMeter;
use super::{FIRST_REQUEST, GROWTH, LEAST_PART};
use crate::endpoint::BlockId;
use crate::time::Instant;
use fontana_fec::Sbn;
use fontana_wire::{ShelfLayout, ShelfNumber, Toi};
use std::ops::Range;
use std::time::Duration;

/// Symbols that are not wanted and are requested with what lies around them: as many as arrive in a
/// round trip, about.
const JOINED_GAP: u64 = 48;

/// What receivers lack, as a shelf asks.
pub trait Wanted {
    /// Number of symbols that a block still needs of this shelf.
    fn count(&self, block: BlockId) -> u32;

    /// The first run of encoding symbols of the range that the block lacks.
    fn missing(&self, block: BlockId, esis: Range<u32>) -> Option<Range<u32>>;
}

/// A range of a shelf's file to be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShelfRequest {
    /// The object whose symbols the file has.
    pub toi: Toi,
    /// The bytes of the file.
    pub bytes: Range<u64>,
    /// Bytes of a symbol.
    pub symbol_size: u16,
    /// The symbols that are these bytes, in order.
    pub runs: Vec<(BlockId, Range<u32>)>,
}

impl ShelfRequest {
    /// The symbols from the given one of the request on, of one block, `count` at most.
    pub fn run_at(&self, symbol: u64, count: u64) -> Option<(BlockId, Range<u32>)> {
        let mut first = 0;
        for (block, esis) in &self.runs {
            let length = u64::from(esis.end.saturating_sub(esis.start));
            if symbol < first + length {
                let start = esis.start + (symbol - first) as u32;
                let end = esis.end.min(start.saturating_add(count.min(length) as u32));
                return Some((*block, start..end));
            }
            first += length;
        }
        None
    }
}

/// The symbols of a shelf, as far as they were not requested.
#[derive(Clone, Debug)]
pub struct ShelfPull {
    number: ShelfNumber,
    objects: Vec<(Toi, ShelfLayout)>,
    /// Where to look for the next symbols: object and round.
    at: (usize, u32),
    rate: RateMeter,
    last_length: u64,
}

impl ShelfPull {
    /// A shelf with the symbols of these objects.
    pub fn new(number: ShelfNumber, objects: Vec<(Toi, ShelfLayout)>) -> Self {
        let rate = RateMeter::default();
        Self { number, objects, at: (0, 0), rate, last_length: 0 }
    }

    /// The number of the shelf.
    pub fn number(&self) -> ShelfNumber {
        self.number
    }

    /// The measured rate in symbols per second; `None` before the first arrival.
    pub fn rate(&self, now: Instant) -> Option<f64> {
        self.rate.estimate(now)
    }

    /// Bytes of the file of an object.
    pub fn file_length(&self, toi: Toi) -> u64 {
        let object = self.objects.iter().find(|(own, _)| *own == toi);
        object.map_or(0, |(_, layout)| layout.length())
    }

    /// The next request, for about `time` at the measured rate. `None` if the shelf has nothing
    /// that is wanted.
    pub fn next_request(
        &mut self,
        now: Instant,
        time: Duration,
        wanted: &impl Wanted,
    ) -> Option<ShelfRequest> {
        let most = self.last_length.max(FIRST_REQUEST).saturating_mul(GROWTH);
        let length = self.rate.estimate(now).map_or(FIRST_REQUEST, |rate| {
            ((rate * time.as_secs_f64()) as u64).clamp(LEAST_PART, most)
        });
        let request = self.search(self.at, length, wanted).or_else(|| {
            // Symbols that were passed because their blocks seemed to have enough.
            (self.at != (0, 0)).then(|| self.search((0, 0), length, wanted)).flatten()
        });
        let (at, request) = request?;
        self.at = at;
        self.last_length =
            request.runs.iter().map(|(_, esis)| u64::from(esis.end - esis.start)).sum();
        self.rate.begin(now);
        Some(request)
    }

    /// The first symbols from a place on that are wanted, and where the search ended.
    fn search(
        &self,
        (first, mut round): (usize, u32),
        length: u64,
        wanted: &impl Wanted,
    ) -> Option<((usize, u32), ShelfRequest)> {
        for (index, (toi, layout)) in self.objects.iter().enumerate().skip(first) {
            let mut draft = Draft::new(*toi, layout, self.number.first_esi(), length);
            let rounds = layout.rounds();
            while round < rounds && !draft.is_over && draft.left_wanted(wanted) {
                draft.add_round(round, wanted);
                if !draft.is_over {
                    round += 1;
                }
            }
            if let Some(request) = draft.finish() {
                return Some(((index, round), request));
            }
            round = 0;
        }
        None
    }

    /// Symbols of the request have arrived.
    pub fn on_arrival(&mut self, now: Instant, count: u64) {
        self.rate.on_arrival(now, count);
    }

    /// The request has ended.
    pub fn end_request(&mut self, now: Instant) {
        self.rate.end(now);
    }
}

/// A request in the making.
struct Draft<'a> {
    toi: Toi,
    layout: &'a ShelfLayout,
    first_esi: u32,
    /// Symbols that may be added.
    left: u64,
    /// What each block wants beside what the request has.
    wanted: Vec<Option<u32>>,
    start: Option<u64>,
    runs: Vec<(BlockId, Range<u32>)>,
    /// Runs that are not wanted, after the last one that is.
    passed: Vec<(BlockId, Range<u32>)>,
    is_over: bool,
}

impl<'a> Draft<'a> {
    fn new(toi: Toi, layout: &'a ShelfLayout, first_esi: u32, left: u64) -> Self {
        let blocks = layout.block_count();
        Self {
            toi,
            layout,
            first_esi,
            left,
            wanted: vec![None; blocks],
            start: None,
            runs: Vec::new(),
            passed: Vec::new(),
            is_over: false,
        }
    }

    fn block(&self, sbn: u32) -> BlockId {
        BlockId { toi: self.toi, sbn: Sbn(sbn) }
    }

    /// Whether a block of the object wants symbols.
    fn left_wanted(&mut self, wanted: &impl Wanted) -> bool {
        let toi = self.toi;
        (0..).zip(&mut self.wanted).any(|(sbn, left)| {
            *left.get_or_insert_with(|| wanted.count(BlockId { toi, sbn: Sbn(sbn) })) > 0
        })
    }

    fn add_round(&mut self, round: u32, wanted: &impl Wanted) {
        let layout = self.layout;
        for run in layout.round(round) {
            let block = self.block(run.sbn);
            let esis = self.first_esi + run.indices.start..self.first_esi + run.indices.end;
            let left = self.wanted.get_mut(run.sbn as usize);
            let left = left.map_or(0, |left| *left.get_or_insert_with(|| wanted.count(block)));
            let missing = (left > 0).then(|| wanted.missing(block, esis.clone())).flatten();
            let Some(missing) = missing else {
                self.pass(block, esis);
                continue;
            };
            let count = (missing.end - missing.start).min(left);
            let count = u64::from(count).min(self.left) as u32;
            let taken = missing.start..missing.start + count;
            let before = esis.start..taken.start;
            let after = taken.end..esis.end;
            if !before.is_empty() {
                self.pass(block, before.clone());
            }
            if self.is_over {
                return;
            }
            let skipped = u64::from(before.end - before.start);
            let offset = run.offset + skipped * u64::from(layout.symbol_size());
            self.take(block, taken, offset);
            if self.is_over {
                return;
            }
            if !after.is_empty() {
                self.pass(block, after);
            }
        }
    }

    /// Symbols that are not wanted follow.
    fn pass(&mut self, block: BlockId, esis: Range<u32>) {
        if self.start.is_none() {
            return;
        }
        self.passed.push((block, esis));
        let gap: u64 = self.passed.iter().map(|(_, esis)| u64::from(esis.end - esis.start)).sum();
        self.is_over = gap > JOINED_GAP;
    }

    fn take(&mut self, block: BlockId, esis: Range<u32>, offset: u64) {
        let count = esis.end - esis.start;
        self.start.get_or_insert(offset);
        self.runs.append(&mut self.passed);
        match self.runs.last_mut() {
            Some((last, own)) if *last == block && own.end == esis.start => own.end = esis.end,
            _ => self.runs.push((block, esis)),
        }
        if let Some(Some(left)) = self.wanted.get_mut(block.sbn.0 as usize) {
            *left -= count.min(*left);
        }
        self.left -= u64::from(count).min(self.left);
        self.is_over = self.left == 0;
    }

    fn finish(self) -> Option<ShelfRequest> {
        let (start, symbol_size) = (self.start?, self.layout.symbol_size());
        let symbols = self.runs.iter().map(|(_, esis)| u64::from(esis.end - esis.start));
        let end = start + symbols.sum::<u64>() * u64::from(symbol_size);
        Some(ShelfRequest { toi: self.toi, bytes: start..end, symbol_size, runs: self.runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_wire::{Hash, ShelfIndex};
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};

    const NOW: Instant = Instant::ZERO;
    const TOI: Toi = Toi(1);

    /// Blocks that lack numbers of symbols, and what they have got.
    #[derive(Default)]
    struct Blocks {
        lacking: RefCell<BTreeMap<u32, u32>>,
        got: RefCell<BTreeMap<u32, BTreeSet<u32>>>,
    }

    impl Blocks {
        fn new(lacking: &[u32]) -> Self {
            let lacking = (0..).zip(lacking.iter().copied()).collect();
            Self { lacking: RefCell::new(lacking), ..Self::default() }
        }

        /// Takes all symbols of a request. Returns how many were of use.
        fn take(&self, request: &ShelfRequest) -> u32 {
            let mut useful = 0;
            for (block, esis) in &request.runs {
                let mut lacking = self.lacking.borrow_mut();
                let lacking = lacking.get_mut(&block.sbn.0).unwrap();
                for esi in esis.clone() {
                    let is_new = self.got.borrow_mut().entry(block.sbn.0).or_default().insert(esi);
                    if is_new && *lacking > 0 {
                        *lacking -= 1;
                        useful += 1;
                    }
                }
            }
            useful
        }
    }

    impl Wanted for Blocks {
        fn count(&self, block: BlockId) -> u32 {
            self.lacking.borrow()[&block.sbn.0]
        }

        fn missing(&self, block: BlockId, esis: Range<u32>) -> Option<Range<u32>> {
            let got = self.got.borrow();
            let has = |esi: &u32| got.get(&block.sbn.0).is_some_and(|got| got.contains(esi));
            let start = esis.clone().find(|esi| !has(esi))?;
            let end = (start..esis.end).find(has).unwrap_or(esis.end);
            Some(start..end)
        }
    }

    fn shelf(stretch_permille: u16, blocks: &[u32]) -> ShelfPull {
        let number = ShelfNumber::new(2).unwrap();
        let index = ShelfIndex { manifest: Hash([0; 32]), number, stretch_permille };
        ShelfPull::new(number, vec![(TOI, index.layout(100, blocks.iter().copied()))])
    }

    /// Makes requests until there is none. Returns the symbols that they had, and those of use.
    fn pull(shelf: &mut ShelfPull, blocks: &Blocks) -> (u64, u32, usize) {
        let (mut symbols, mut useful, mut requests) = (0, 0, 0);
        while let Some(request) = shelf.next_request(NOW, Duration::from_secs(1), blocks) {
            symbols += (request.bytes.end - request.bytes.start) / 100;
            useful += blocks.take(&request);
            requests += 1;
            assert!(requests < 10_000);
        }
        (symbols, useful, requests)
    }

    #[test]
    fn a_tail_costs_what_is_missing() {
        // Five blocks of 10 000 lack 5 %, one nothing.
        let blocks = Blocks::new(&[500, 493, 510, 0, 481, 502]);
        let (symbols, useful, requests) = pull(&mut shelf(1_000, &[10_000; 6]), &blocks);
        assert_eq!(useful, 500 + 493 + 510 + 481 + 502);
        assert!(symbols as f64 <= 1.12 * f64::from(useful), "{symbols}");
        assert!(requests < 40, "{requests}");
    }

    #[test]
    fn a_shelf_gives_all_that_it_has_and_each_symbol_once() {
        let (lengths, blocks) = ([749, 750, 10, 1], Blocks::new(&[749, 750, 10, 1]));
        let (symbols, useful, _) = pull(&mut shelf(400, &lengths), &blocks);
        // 0.4 of each block, rounded up.
        assert_eq!((symbols, useful), (300 + 300 + 4 + 1, 605));
        assert_eq!(
            blocks.take(&ShelfRequest { toi: TOI, bytes: 0..0, symbol_size: 1, runs: vec![] }),
            0
        );
    }

    #[test]
    fn a_block_that_lacks_one_more_gets_it() {
        let blocks = Blocks::new(&[20, 20]);
        let mut shelf = shelf(1_000, &[100, 100]);
        pull(&mut shelf, &blocks);
        blocks.lacking.borrow_mut().insert(0, 1);
        assert_eq!(pull(&mut shelf, &blocks).1, 1);
    }

    #[test]
    fn the_symbols_of_a_request_are_found_by_their_place() {
        let mut shelf = shelf(1_000, &[640, 640]);
        let request =
            shelf.next_request(NOW, Duration::from_secs(1), &Blocks::new(&[50, 50])).unwrap();
        let block = |sbn| BlockId { toi: TOI, sbn: Sbn(sbn) };
        let first = 2 << 20;
        // Ten symbols of each block in turn.
        assert_eq!(request.run_at(3, 100), Some((block(0), first + 3..first + 10)));
        assert_eq!(request.run_at(12, 2), Some((block(1), first + 2..first + 4)));
        assert_eq!(request.run_at(10_000, 2), None);
    }
}
