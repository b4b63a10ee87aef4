//! Which fresh symbols to request: of a server that computes repair symbols of any block.

use super::rate::RateMeter;
use super::shelf::Wanted;
use super::{FIRST_REQUEST, GROWTH, LEAST_PART};
use crate::endpoint::BlockId;
use crate::time::Instant;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{FreshRequest, FreshShare, FreshStart, Toi};
use std::collections::BTreeMap;
use std::time::Duration;

/// Symbols of a block among which the first one is looked for that has not arrived.
const LOOK_AHEAD: u32 = 1 << 16;

/// An object that the server has symbols of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshObject {
    /// The object.
    pub toi: Toi,
    /// Its number of blocks.
    pub blocks: u32,
    /// Bytes of a symbol.
    pub symbol_size: u16,
}

/// A request for symbols of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshOrder {
    /// The object.
    pub object: FreshObject,
    /// Which symbols.
    pub request: FreshRequest,
}

/// The symbols of a server, as far as they were not received.
#[derive(Clone, Debug)]
pub struct FreshPull {
    start: FreshStart,
    objects: Vec<FreshObject>,
    /// Of each block, the number after the last symbol that has arrived.
    next: BTreeMap<BlockId, u32>,
    rate: RateMeter,
    last_length: u64,
    /// What is expected of each block of the present request.
    expected: BTreeMap<BlockId, u32>,
    /// A frame of the present request had a symbol that was new.
    has_fresh: bool,
    /// Frames of the present request that should have had one.
    frames: u64,
    /// Requests in a row without a new symbol.
    barren: u32,
}

/// A symbol that was not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRequested;

impl FreshPull {
    /// A server whose symbols begin at `start`, with these objects.
    pub fn new(start: FreshStart, objects: Vec<FreshObject>) -> Self {
        Self {
            start,
            objects,
            next: BTreeMap::new(),
            rate: RateMeter::default(),
            last_length: 0,
            expected: BTreeMap::new(),
            has_fresh: false,
            frames: 0,
            barren: 0,
        }
    }

    /// The measured rate in symbols per second; `None` before the first arrival.
    pub fn rate(&self, now: Instant) -> Option<f64> {
        self.rate.estimate(now)
    }

    /// The next request, for about `time` at the measured rate. `None` if nothing is wanted.
    ///
    /// Blocks are requested from the first one on, so that receivers that lack the same ones share
    /// what the server computes.
    pub fn next_request(
        &mut self,
        now: Instant,
        time: Duration,
        wanted: &impl Wanted,
    ) -> Option<FreshOrder> {
        let most = self.last_length.max(FIRST_REQUEST).saturating_mul(GROWTH);
        let length = self.rate.estimate(now).map_or(FIRST_REQUEST, |rate| {
            ((rate * time.as_secs_f64()) as u64).clamp(LEAST_PART, most)
        });
        let orders = self.objects.iter().map(|&object| self.order(object, length, wanted));
        let order = orders.into_iter().find(|order| !order.request.blocks.is_empty())?;
        self.expected = order
            .request
            .blocks
            .iter()
            .map(|share| (BlockId { toi: order.object.toi, sbn: share.sbn }, share.count))
            .collect();
        (self.has_fresh, self.frames) = (false, 0);
        self.last_length = order.request.symbols().unwrap_or(0);
        self.rate.begin(now);
        Some(order)
    }

    /// The first `length` symbols that the blocks of an object want.
    fn order(&self, object: FreshObject, length: u64, wanted: &impl Wanted) -> FreshOrder {
        let (mut left, mut blocks) = (length, Vec::new());
        for sbn in (0..object.blocks).map(Sbn) {
            if left == 0 || blocks.len() >= FreshRequest::MAX_BLOCKS {
                break;
            }
            let block = BlockId { toi: object.toi, sbn };
            let count = u64::from(wanted.count(block)).min(left);
            let count = count.min(FreshRequest::MAX_COUNT.into());
            if count > 0 {
                left = left.saturating_sub(count);
                let start = self.first_missing(block, wanted);
                blocks.push(FreshShare { sbn, count: count as u32, start });
            }
        }
        FreshOrder { object, request: FreshRequest { start: 0, blocks } }
    }

    /// The number after the last symbol of a block that this server has sent, or a later one: from
    /// another address of the same server, others may have arrived.
    fn first_missing(&self, block: BlockId, wanted: &impl Wanted) -> u32 {
        let next = self.next.get(&block).copied().unwrap_or(0);
        let first = self.start.esi(next);
        let end = first.0.saturating_add(LOOK_AHEAD).min(FreshStart::END.0);
        let missing =
            wanted.missing(block, first.0..end).and_then(|esis| self.start.number(Esi(esis.start)));
        missing.unwrap_or(next)
    }

    /// Symbols that are still expected of the present request, by block.
    pub fn expected(&self) -> impl Iterator<Item = (BlockId, u32)> + '_ {
        self.expected.iter().map(|(&block, &count)| (block, count)).filter(|&(_, count)| count > 0)
    }

    /// A symbol of the present request has arrived.
    ///
    /// # Errors
    /// [`NotRequested`]: it is of another block, more than were requested, or none of a server.
    pub fn on_symbol(&mut self, block: BlockId, esi: Esi) -> Result<(), NotRequested> {
        let number = self.start.number(esi).ok_or(NotRequested)?;
        let expected = self.expected.get_mut(&block).ok_or(NotRequested)?;
        *expected = expected.checked_sub(1).ok_or(NotRequested)?;
        let next = number.saturating_add(1) % FreshStart::SYMBOLS;
        self.next.insert(block, next);
        Ok(())
    }

    /// So many symbols of the present request have arrived together.
    pub fn on_arrival(&mut self, now: Instant, count: u64) {
        self.rate.on_arrival(now, count);
    }

    /// The block of a symbol needs symbols: it was new, or not.
    pub fn on_needed(&mut self, is_fresh: bool) {
        self.frames = self.frames.saturating_add(1);
        self.has_fresh |= is_fresh;
    }

    /// The request has ended. Returns the number of requests in a row that have brought nothing but
    /// symbols that had arrived before.
    pub fn end_request(&mut self, now: Instant) -> u32 {
        self.rate.end(now);
        self.expected.clear();
        self.barren = match (self.has_fresh, self.frames) {
            (true, _) => 0,
            (false, 0) => self.barren,
            (false, _) => self.barren.saturating_add(1),
        };
        (self.has_fresh, self.frames) = (false, 0);
        self.barren
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    const NOW: Instant = Instant::ZERO;
    const OBJECT: FreshObject = FreshObject { toi: Toi(1), blocks: 3, symbol_size: 100 };

    struct Lacking([u32; 3]);

    impl Wanted for Lacking {
        fn count(&self, block: BlockId) -> u32 {
            self.0[block.sbn.0 as usize]
        }

        fn missing(&self, _: BlockId, esis: Range<u32>) -> Option<Range<u32>> {
            Some(esis)
        }
    }

    fn pull() -> FreshPull {
        FreshPull::new(FreshStart::draw(0), vec![OBJECT])
    }

    fn block(sbn: u32) -> BlockId {
        BlockId { toi: OBJECT.toi, sbn: Sbn(sbn) }
    }

    fn query(pull: &mut FreshPull, lacking: [u32; 3]) -> Option<String> {
        let order = pull.next_request(NOW, Duration::from_secs(1), &Lacking(lacking))?;
        Some(order.request.to_string())
    }

    #[test]
    fn a_block_is_asked_for_what_it_lacks_from_where_it_was() {
        let mut pull = pull();
        assert_eq!(query(&mut pull, [5, 0, 7]).as_deref(), Some("start=0&blocks=0:5,2:7"));
        for number in [0, 1, 2, 64, 65] {
            pull.on_symbol(block(0), pull.start.esi(number)).unwrap();
            pull.on_needed(true);
        }
        assert_eq!(pull.expected().collect::<Vec<_>>(), [(block(2), 7)]);
        pull.end_request(NOW);
        assert_eq!(query(&mut pull, [1, 0, 7]).as_deref(), Some("start=0&blocks=0:1:66,2:7"));
        pull.end_request(NOW);
        assert_eq!(query(&mut pull, [0; 3]), None);
        // The first request of a server whose rate is not known is short.
        let mut other = super::tests::pull();
        assert_eq!(query(&mut other, [200, 200, 9]).as_deref(), Some("start=0&blocks=0:200,1:56"));
    }

    /// Symbols that arrive together are one sample of the rate.
    #[test]
    fn a_request_is_as_long_as_the_rate_allows() {
        let (mut pull, wanted) = (pull(), Lacking([100_000; 3]));
        let mut now = NOW;
        for symbols in [256, 1_024, 4_000, 4_000] {
            let order = pull.next_request(now, Duration::from_secs(1), &wanted).unwrap();
            assert!(order.request.symbols().unwrap() * 10 >= symbols * 9, "{symbols}");
            // 4 000 a second.
            now = now + Duration::from_millis(order.request.symbols().unwrap() / 4);
            pull.on_arrival(now, order.request.symbols().unwrap());
            pull.end_request(now);
        }
    }

    #[test]
    fn what_was_not_requested_is_an_error() {
        let mut pull = pull();
        query(&mut pull, [1, 0, 0]);
        let first = pull.start.first_esi();
        assert_eq!(pull.on_symbol(block(1), first), Err(NotRequested));
        assert_eq!(pull.on_symbol(block(0), Esi(3)), Err(NotRequested));
        assert_eq!(pull.on_symbol(block(0), first), Ok(()));
        assert_eq!(pull.on_symbol(block(0), first), Err(NotRequested));
    }

    #[test]
    fn requests_in_a_row_that_bring_nothing_new_are_counted() {
        let mut pull = pull();
        for barren in 1..5 {
            query(&mut pull, [1, 1, 1]);
            pull.on_needed(false);
            assert_eq!(pull.end_request(NOW), barren);
        }
        // An answer that did not come, or that nothing needed, counts for nothing.
        assert_eq!(pull.end_request(NOW), 4);
        pull.on_needed(true);
        assert_eq!(pull.end_request(NOW), 0);
    }

    /// What came from another address of the same server is not asked for.
    #[test]
    fn symbols_that_have_arrived_are_skipped() {
        struct Since(FreshStart, u32);

        impl Wanted for Since {
            fn count(&self, _: BlockId) -> u32 {
                9
            }

            fn missing(&self, _: BlockId, esis: Range<u32>) -> Option<Range<u32>> {
                let first = self.0.esi(self.1).0.max(esis.start);
                (first < esis.end).then_some(first..esis.end)
            }
        }

        let mut pull = pull();
        let mut start = |number| {
            let since = Since(FreshStart::draw(0), number);
            let order = pull.next_request(NOW, Duration::from_secs(1), &since).unwrap();
            order.request.blocks[0].start
        };
        assert_eq!([start(0), start(70), start(LOOK_AHEAD - 1)], [0, 70, LOOK_AHEAD - 1]);
        // All of them have arrived.
        assert_eq!(start(LOOK_AHEAD), 0);
    }
}
