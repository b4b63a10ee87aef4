//! A control object at the receiver: collected and decoded in memory.

mod block;

use super::symbols::{SymbolRun, symbol_fits};
use crate::counter::Counter;
use block::ControlBlock;
use fontana_fec::{Esi, ObjectLayout, Oti, Sbn};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Collects the symbols of one control object.
#[derive(Debug)]
pub(super) struct Collector {
    layout: ObjectLayout,
    blocks: BTreeMap<Sbn, Block>,
    blocks_missing: u32,
    bytes: Vec<u8>,
    /// Symbols that were taken.
    received: u64,
}

#[derive(Debug)]
enum Block {
    Open(Box<ControlBlock>),
    Complete,
}

impl Collector {
    /// `None` if `oti` describes no object, one of more than `max_bytes`, or one with a code whose
    /// decoders take much memory. Memory grows with what arrives, not with what `oti` says.
    pub(super) fn new(oti: Oti, max_bytes: u64) -> Option<Self> {
        let layout = oti.layout().ok()?;
        let cheap = oti.scheme.block_profile(1).decoder_memory.is_none();
        (cheap && oti.transfer_length <= max_bytes).then(|| Self {
            layout,
            blocks: BTreeMap::new(),
            blocks_missing: layout.block_count(),
            bytes: Vec::new(),
            received: 0,
        })
    }

    /// Symbols that were received, those that came again included.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn source_symbols(&self) -> u64 {
        self.layout.total_source_symbols()
    }

    pub(super) fn oti(&self) -> Oti {
        self.layout.oti()
    }

    /// Whether another symbol was taken under the id of this one: it is of another object.
    pub(super) fn contradicts(&self, sbn: Sbn, esi: Esi, symbol: &[u8]) -> bool {
        match self.blocks.get(&sbn) {
            Some(Block::Open(block)) => block.contradicts(esi, symbol),
            Some(Block::Complete) | None => false,
        }
    }

    /// Takes the symbols of a payload. Returns the object's bytes, when they are complete.
    pub(super) fn push(&mut self, sbn: Sbn, esi: Esi, payload: &[u8]) -> Option<Vec<u8>> {
        if symbol_fits(&self.layout, sbn, esi, payload.len()) {
            return self.push_symbol(sbn, esi, payload);
        }
        let run = SymbolRun::new(&self.layout, sbn, esi, payload.len())?;
        run.symbols().find_map(|(esi, range)| self.push_symbol(sbn, esi, payload.get(range)?))
    }

    /// The object's bytes are wrong: a symbol was forged, or is of another version. If the object
    /// has one block, further symbols show which. Objects of several blocks, which no sender of
    /// Fontana sends, are collected again.
    pub(super) fn reject(&mut self) {
        self.blocks_missing = self.layout.block_count();
        match self.blocks.values_mut().next() {
            Some(Block::Open(block)) if self.blocks_missing == 1 => block.on_wrong(),
            _ => self.blocks.clear(),
        }
    }

    /// Takes a symbol that [fits](symbol_fits).
    fn push_symbol(&mut self, sbn: Sbn, esi: Esi, symbol: &[u8]) -> Option<Vec<u8>> {
        let k = self.layout.source_symbols(sbn)?;
        let oti = self.layout.oti();
        let size = usize::from(oti.symbol_size);
        self.received.count(1);
        let block = match self.blocks.entry(sbn) {
            Entry::Occupied(block) => block.into_mut(),
            Entry::Vacant(block) => {
                let open = ControlBlock::new(oti.scheme, k, size).ok()?;
                block.insert(Block::Open(Box::new(open)))
            }
        };
        let Block::Open(open) = block else { return None };
        let symbols = open.push(esi, symbol)?;
        self.bytes.resize(oti.transfer_length as usize, 0);
        for (esi, symbol) in (0..k).map(Esi).zip(symbols.chunks_exact(size)) {
            for piece in self.layout.symbol_pieces(sbn, esi) {
                let to = piece.in_object.start as usize..piece.in_object.end as usize;
                let start = piece.in_symbol.start;
                let from = start..start.saturating_add(to.len());
                if let (Some(to), Some(from)) = (self.bytes.get_mut(to), symbol.get(from)) {
                    to.copy_from_slice(from);
                }
            }
        }
        if self.layout.block_count() > 1 {
            *block = Block::Complete;
        }
        self.blocks_missing.discount(1);
        (self.blocks_missing == 0).then(|| std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::simple::encode;
    use fontana_fec::{FecScheme, Intermediate, SplitMix64};

    /// More bytes than symbols are forged: their errors are independent.
    const SIZE: u16 = 1024;

    fn noise(bytes: usize, random: &mut SplitMix64) -> Vec<u8> {
        (0..bytes).map(|_| random.next_u64() as u8).collect()
    }

    /// A control object of so many symbols, and how it arrives beside forged symbols.
    struct World {
        object: Vec<u8>,
        encoded: Intermediate,
        collector: Collector,
        random: SplitMix64,
        next: u32,
    }

    impl World {
        fn new(source_symbols: u32, seed: u64) -> Self {
            let mut random = SplitMix64::new(seed);
            let object = noise(source_symbols as usize * usize::from(SIZE) - 7, &mut random);
            let raptorq = RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 };
            let scheme = FecScheme::RaptorQ(raptorq);
            let encoded = encode(scheme, &object, SIZE).unwrap();
            let oti = Oti { transfer_length: object.len() as u64, symbol_size: SIZE, scheme };
            let collector = Collector::new(oti, u64::MAX).unwrap();
            Self { object, encoded, collector, random, next: 0 }
        }

        /// Receives honest symbols, and forged ones at this share of their rate, until the object
        /// is there. Returns the number of each.
        fn receive(&mut self, share: f64) -> (u32, u32) {
            let (mut honest, mut forged) = (0, 0);
            loop {
                let is_forged = (self.random.next_u64() as f64) < share * u64::MAX as f64;
                let (esi, symbol) = if is_forged {
                    forged += 1;
                    (Esi((1 << 20) + forged), noise(SIZE.into(), &mut self.random))
                } else {
                    honest += 1;
                    self.next += 1;
                    let mut symbol = vec![0; SIZE.into()];
                    self.encoded.write_symbol(Esi(self.next), &mut symbol);
                    (Esi(self.next), symbol)
                };
                assert!(
                    honest < 3 * self.collector.source_symbols() as u32 + 100,
                    "{forged} forged"
                );
                match self.collector.push(Sbn(0), esi, &symbol) {
                    Some(bytes) if bytes == self.object => return (honest, forged),
                    Some(_) => self.collector.reject(),
                    None => {}
                }
            }
        }
    }

    #[test]
    fn forged_symbols_of_a_control_object_cost_about_as_many_honest_ones() {
        for k in [10, 100, 1_000, 10_000] {
            // Of 10 000 symbols, a tenth would be more than are searched for.
            for share in
                [0.000_1, 0.001, 0.01, 0.1].into_iter().filter(|share| share * f64::from(k) < 500.0)
            {
                let seeds: u32 = if k > 1_000 { 1 } else { 8 };
                let mut sum = 0.0;
                for seed in 0..seeds {
                    let (honest, forged) = World::new(k, seed.into()).receive(share);
                    println!("{k} symbols, {share}: {honest} honest, {forged} forged");
                    sum += f64::from(honest);
                }
                let limit = f64::from(k) * (1.0 + 2.0 * share) * 1.01 + 4.0;
                assert!(sum / f64::from(seeds) <= limit, "{k} symbols, {share}");
            }
        }
    }

    #[test]
    fn symbols_of_another_object_do_not_keep_the_right_one_out() {
        let mut world = World::new(20, 1);
        let other = World::new(20, 2);
        // All of another object, as before a sender was restarted; its hash is wrong.
        for esi in 0..20 {
            let mut symbol = vec![0; SIZE.into()];
            other.encoded.write_symbol(Esi(esi), &mut symbol);
            if world.collector.push(Sbn(0), Esi(esi), &symbol).is_some() {
                world.collector.reject();
            }
        }
        world.next = 100;
        let (honest, _) = world.receive(0.0);
        assert!(honest <= 20 + 20 + 2, "{honest}");
    }
}
