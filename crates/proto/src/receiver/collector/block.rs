//! A block of a control object: decoded in memory, and searched for wrong symbols if the object's
//! hash is wrong. The rules are those of [`suspicion`](crate::receiver::suspicion), with less
//! surplus for short blocks: receiving them again takes few symbols.

use crate::endpoint::BlockId;
use crate::job::Search;
use crate::receiver::suspicion::{Conclusion, SearchLimits, SearchRecord};
use fontana_fec::simple::decode_block;
use fontana_fec::{
    BlockLengthError, Esi, FecScheme, IdDecoder, Lent, Location, Novelty, Progress, Sbn, Scratch,
    Work,
};
use fontana_wire::Toi;
use std::collections::BTreeMap;

/// The budget to eliminate the syndromes: 1 024 surplus symbols of 1 400 bytes, a tenth of a second
/// of the core that handles packets.
const SEARCH_WORK: Work = Work(1 << 27);

/// A block in memory. Its symbols stay until they are dropped with it.
#[derive(Debug)]
pub(super) struct ControlBlock {
    scheme: FecScheme,
    source_symbols: u32,
    symbol_size: usize,
    symbols: BTreeMap<Esi, Vec<u8>>,
    state: State,
    search: SearchRecord,
}

#[derive(Debug)]
enum State {
    Collecting(Box<dyn IdDecoder>),
    /// Further symbols are of no use, unless the object turns out to be wrong.
    Recovered,
    /// The recovered bytes were wrong. The next search takes so many more symbols.
    Suspect {
        wanted: u32,
    },
}

impl ControlBlock {
    /// A block without symbols.
    pub(super) fn new(
        scheme: FecScheme,
        source_symbols: u32,
        symbol_size: usize,
    ) -> Result<Self, BlockLengthError> {
        let state = State::Collecting(scheme.decoder(source_symbols)?);
        let (symbols, search) = (BTreeMap::new(), SearchRecord::default());
        Ok(Self { scheme, source_symbols, symbol_size, symbols, state, search })
    }

    /// Whether another symbol was taken under this id.
    pub(super) fn contradicts(&self, esi: Esi, symbol: &[u8]) -> bool {
        self.symbols.get(&esi).is_some_and(|own| !own.starts_with(symbol))
    }

    /// Takes a symbol, of which the padding may be missing. The source symbols, one after another,
    /// when they are recovered, and again after each search that has found wrong symbols.
    pub(super) fn push(&mut self, esi: Esi, symbol: &[u8]) -> Option<Vec<u8>> {
        match &mut self.state {
            State::Collecting(decoder) => {
                if decoder.push(esi) != Ok(Novelty::Fresh) {
                    return None;
                }
                self.store(esi, symbol);
                self.solve()
            }
            State::Recovered => None,
            State::Suspect { .. } if self.symbols.contains_key(&esi) => None,
            State::Suspect { wanted } => {
                *wanted = wanted.saturating_sub(1);
                let is_due = *wanted == 0;
                self.store(esi, symbol);
                if is_due { self.search() } else { None }
            }
        }
    }

    /// The recovered bytes are wrong.
    pub(super) fn on_wrong(&mut self) {
        let limits = SearchLimits::of_control(self.scheme, self.source_symbols);
        let Some(limits) = limits.filter(|_| !self.search.is_exhausted()) else {
            return self.restart();
        };
        let available = self.search.collected(self.symbols.len() as u32).available;
        self.state = State::Suspect { wanted: limits.first_wanted(available).max(1) };
    }

    fn store(&mut self, esi: Esi, symbol: &[u8]) {
        let mut padded = symbol.to_vec();
        padded.resize(self.symbol_size, 0);
        self.symbols.insert(esi, padded);
    }

    /// Recovers the source symbols, if those that are available suffice.
    fn solve(&mut self) -> Option<Vec<u8>> {
        let State::Collecting(decoder) = &mut self.state else { return None };
        if decoder.symbols_wanted() > 0 {
            return None;
        }
        let budget = self.scheme.block_profile(self.source_symbols).work;
        let Progress::Solved(plan) = decoder.solve(budget) else { return None };
        let symbol = |esi| self.symbols.get(&esi).map(Vec::as_slice);
        let bytes = decode_block(&plan, self.symbol_size, symbol).ok()?;
        self.state = State::Recovered;
        Some(bytes)
    }

    /// Searches for wrong symbols, and recovers the block without them.
    fn search(&mut self) -> Option<Vec<u8>> {
        let available = self.symbols.len() as u32;
        self.search.on_search(available);
        let collected = self.search.collected(available);
        let limits = SearchLimits::of_control(self.scheme, self.source_symbols);
        let conclusion = limits.map(|limits| limits.conclude(self.locate(), &collected));
        match conclusion {
            Some(Conclusion::Drop(wrong)) => {
                wrong.iter().for_each(|esi| _ = self.symbols.remove(esi));
                return self.solve_again();
            }
            Some(Conclusion::Want(wanted)) if !self.search.is_exhausted() => {
                self.state = State::Suspect { wanted };
            }
            // Symbols that agree are of another object: the hash, or its head, was a stranger's.
            Some(Conclusion::Want(_) | Conclusion::Restart | Conclusion::Agreed) | None => {
                self.restart();
            }
        }
        None
    }

    fn locate(&self) -> Location {
        let Ok(decoder) = self.scheme.decoder(self.source_symbols) else {
            return Location::Unsupported;
        };
        let mut search = Search {
            block: BlockId { toi: Toi::MANIFEST, sbn: Sbn(0) },
            profile: self.scheme.profile(),
            decoder,
            available: self.symbols.keys().copied().collect(),
            repair: Vec::new(),
            solving: self.scheme.block_profile(self.source_symbols).work,
            locating: SEARCH_WORK,
        };
        let mut locator = match search.locator() {
            Ok(locator) => locator,
            Err(location) => return location,
        };
        let symbols = Lent(|esi| self.symbols.get(&esi).map(Vec::as_slice).unwrap_or_default());
        let Ok(_) = locator.add_columns(self.symbol_size, symbols, Scratch::default());
        locator.locate(search.locating)
    }

    fn solve_again(&mut self) -> Option<Vec<u8>> {
        let Ok(mut decoder) = self.scheme.decoder(self.source_symbols) else {
            self.restart();
            return None;
        };
        for &esi in self.symbols.keys() {
            let _ = decoder.push(esi);
        }
        self.state = State::Collecting(decoder);
        self.solve()
    }

    /// Drops all symbols.
    fn restart(&mut self) {
        self.symbols.clear();
        self.search.on_restart();
        if let Ok(decoder) = self.scheme.decoder(self.source_symbols) {
            self.state = State::Collecting(decoder);
        }
    }
}
