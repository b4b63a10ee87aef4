//! The planning window: how many symbols are planned at a time, in which order, and the memory for
//! solved blocks beside it.

use super::digests;
use super::options::{Ordering, SendOptions};
use crate::content::Content;
use crate::error::SetupError;
use crate::memory::{LEAST_VISIT, SenderMemory};
use fontana_fec::{FecScheme, ObjectLayout, Sbn};
use fontana_proto::{Fcast, SendMode, SymbolOrganization, TransmissionSchedule};

/// Bytes of a symbol in an order that uses lists: a block and a number.
const LISTED_SYMBOL_BYTES: u64 = 8;
/// Consecutive symbols of a block: 48 packets of 1 364 bytes fill the 64 KiB of a GSO batch.
const RUN_SYMBOLS: u32 = 48;
/// A layer lists as many symbols as there are source symbols. A single channel lists all symbols of
/// the code, if that is at most this multiple of the source symbols.
const MOST_SEGMENTS: u8 = 4;

/// Even progress on one channel.
const IN_RUNS: TransmissionSchedule =
    TransmissionSchedule::Runs { length: RUN_SYMBOLS, visits: None };

/// How a sender plans its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Symbols of a planning window.
    pub(super) round_symbols: u32,
    /// Their order.
    pub(super) schedule: TransmissionSchedule,
    /// Symbols of a block that a restarted sender sends in one run at the start, per thousand
    /// source symbols.
    pub(super) opening_permille: u32,
    /// Bytes of prepared symbols in a window.
    pub(super) round_bytes: usize,
    /// Bytes of memory for solved blocks.
    pub(super) solved_bytes: usize,
    /// Whether solved blocks exceed that memory.
    pub(super) needs_scratch: bool,
    /// Source symbols before the end of the source pass from which on blocks are solved; 0: each
    /// when its first repair symbol is prepared.
    pub(super) solving_window: u64,
}

impl Layout {
    /// `scratch_bytes`: room for solved blocks on a disk.
    pub(super) fn of(
        options: &SendOptions,
        content: &Content,
        symbol_size: u16,
        channels: u8,
        shares: &SenderMemory,
        scratch_bytes: u64,
    ) -> Result<Self, SetupError> {
        let layouts = || content.objects.iter().map(|object| object.source.layout());
        let volume = Volume {
            source_symbols: layouts().map(|layout| layout.total_source_symbols()).sum(),
            longest_block: layouts().map(|layout| layout.max_source_symbols()).max().unwrap_or(1),
            channels,
        };
        let symbol_bytes = usize::from(symbol_size.max(1));
        let most = (shares.round_bytes / symbol_bytes).clamp(1, 1 << 24);
        let least = if options.symbol_digests() { digests::LEAST_WINDOW } else { 0 };
        let timely = timely_symbols(options, symbol_bytes).max(least).min(most);
        let solved: u64 = layouts().map(solved_bytes).sum();
        let room = shares.solved_bytes(timely * symbol_bytes) as u64 + scratch_bytes;
        // Slow channels need long windows, and so do blocks that are solved for each visit.
        let is_solved_once = solved <= room && channels <= 1;
        let symbols = if is_solved_once { timely } else { most };
        let round_bytes = symbols * symbol_bytes;
        let memory_bytes = shares.solved_bytes(round_bytes);
        let symbols = symbols as u32;
        let planned = if is_solved_once { u32::MAX } else { symbols };
        let schemes = || layouts().map(|layout| layout.oti().scheme);
        // An order for a code of finite length also works for a fountain code.
        let scheme = schemes().find(|s| !s.profile().is_rateless).or_else(|| schemes().next());
        let schedule = match options.ordering {
            Ordering::Sequential { repair_permille } => {
                TransmissionSchedule::Sequential { repair_permille }
            }
            Ordering::Even => volume.schedule(options, scheme, planned, shares.order_bytes),
            Ordering::Schedule(schedule) => {
                // With Tornado, short objects have RaptorQ.
                let rateless = schemes().find(|s| s.profile().is_rateless);
                let scheme = match schedule {
                    TransmissionSchedule::Cumulative => rateless.or(scheme),
                    _ => scheme,
                };
                volume.check(schedule, scheme, planned, shares.order_bytes)?;
                schedule
            }
        };
        let most = volume.source_symbols.clamp(1, u64::from(u32::MAX)) as u32;
        let opening_permille = match options.ordering {
            Ordering::Even => opening_permille(options),
            Ordering::Sequential { .. } | Ordering::Schedule(_) => 0,
        };
        let solving_window = match options.ordering {
            Ordering::Even if is_solved_once => solving_window(options, volume.source_symbols),
            _ => 0,
        };
        Ok(Self {
            round_symbols: symbols.min(most),
            schedule,
            opening_permille,
            round_bytes,
            solved_bytes: memory_bytes,
            needs_scratch: solved > memory_bytes as u64,
            solving_window,
        })
    }
}

/// Time for which a planning window has symbols, if each block is solved once. Two windows are
/// prepared: enough for workers that wait for a disk or a processor.
const WINDOW_MILLIS: u64 = 100;
/// Least symbols of a window: a few runs.
const LEAST_WINDOW: u64 = 4 * RUN_SYMBOLS as u64;

/// Symbols that are sent in [`WINDOW_MILLIS`].
fn timely_symbols(options: &SendOptions, symbol_bytes: usize) -> usize {
    let copies = options.addressing.copies().max(1) as u64;
    let bytes = options.rate.as_bytes_per_second() / copies / 1000 * WINDOW_MILLIS;
    usize::try_from((bytes / symbol_bytes as u64).max(LEAST_WINDOW)).unwrap_or(usize::MAX)
}

/// Bytes of the intermediate symbols of an object's blocks, at most.
fn solved_bytes(layout: &ObjectLayout) -> u64 {
    let oti = layout.oti();
    let rows = |k: u32| {
        let profile = oti.scheme.block_profile(k);
        match oti.scheme {
            _ if profile.max_repair_symbols == 0 => 0,
            FecScheme::Tornado(_) => u64::from(profile.symbols_per_cycle),
            // RFC 6330, section 5.3.3.3: K' + S + H, with S and H of about 3 % in long blocks.
            _ => u64::from(k) + u64::from(k / 16) + 32,
        }
    };
    let blocks = (0..layout.block_count()).filter_map(|sbn| layout.source_symbols(Sbn(sbn)));
    blocks.map(|k| rows(k) * u64::from(oti.symbol_size)).sum()
}

/// Bytes of blocks per second that the workers of a small host encode.
const ENCODED_BYTES_PER_SECOND: u64 = 200_000_000;

/// Runs of the opening in which the workers keep up: at the start, windows double, so each is
/// encoded while half as many symbols are sent. At least a [`LEAST_VISIT`]. At most half a block,
/// because a receiver that lacks a little of every block waits until all have had their run.
fn opening_permille(options: &SendOptions) -> u32 {
    let copies = options.addressing.copies().max(1) as u64;
    let rate = options.rate.as_bytes_per_second() / copies;
    let permille = rate.saturating_mul(2 * 1000) / ENCODED_BYTES_PER_SECOND;
    permille.clamp((1000 / LEAST_VISIT).into(), 500) as u32
}

/// Source symbols that are sent while the workers of a small host solve all blocks, at most all of
/// them. 0 if there is no source pass, or no repair symbol is sent.
fn solving_window(options: &SendOptions, source_symbols: u64) -> u64 {
    let has_repair = options.mode != SendMode::Push { repair_permille: 0 };
    if !options.source_pass || !has_repair {
        return 0;
    }
    let copies = options.addressing.copies().max(1) as u64;
    let rate = options.rate.as_bytes_per_second() / copies;
    let symbols =
        u128::from(source_symbols) * u128::from(rate) / u128::from(ENCODED_BYTES_PER_SECOND);
    u64::try_from(symbols).map_or(source_symbols, |symbols| symbols.min(source_symbols))
}

/// The amount of content.
#[derive(Clone, Copy, Debug)]
struct Volume {
    source_symbols: u64,
    /// Source symbols of the longest block.
    longest_block: u32,
    channels: u8,
}

impl Volume {
    /// Refuses a schedule that the sender would have to replace by another one.
    fn check(
        self,
        schedule: TransmissionSchedule,
        scheme: Option<FecScheme>,
        round_symbols: u32,
        order_bytes: u64,
    ) -> Result<(), SetupError> {
        let is_rateless = scheme.is_none_or(|scheme| scheme.profile().is_rateless);
        let refuse = |schedule, needs| Err(SetupError::Schedule { schedule, needs });
        let is_segmented = |fcast: Fcast| fcast.organization == SymbolOrganization::Segments;
        match schedule {
            TransmissionSchedule::Cumulative if is_rateless => {
                return refuse("the cumulative schedule", "a code that repeats its symbols");
            }
            TransmissionSchedule::Fcast(fcast)
                if is_segmented(fcast) && self.channels <= 1 && !is_rateless =>
            {
                return refuse("a schedule of segments", "several channels, with this code");
            }
            _ => {}
        }
        let has_window = u64::from(round_symbols) * u64::from(LEAST_VISIT) >= self.source_symbols;
        let lists = if is_rateless { self.channels } else { self.channels.max(MOST_SEGMENTS) };
        let listed = match schedule {
            TransmissionSchedule::Cumulative => u64::from(MOST_SEGMENTS),
            TransmissionSchedule::Fcast(_) => u64::from(lists),
            _ => 0,
        };
        let listed = self.source_symbols.saturating_mul(listed);
        if has_window && listed.saturating_mul(LISTED_SYMBOL_BYTES) <= order_bytes {
            return Ok(());
        }
        refuse("this schedule", "more memory for so much content")
    }

    /// The profile's order, if memory allows it: blocks alternate after short runs, so a window has
    /// to hold a 32nd of the content, and the order may need lists. Otherwise each visit of a block
    /// prepares a 32nd of it. Several channels send runs of one symbol: the runs of all channels
    /// together would be long.
    fn schedule(
        self,
        options: &SendOptions,
        scheme: Option<FecScheme>,
        round_symbols: u32,
        order_bytes: u64,
    ) -> TransmissionSchedule {
        let has_runs = self.channels <= 1;
        // If a window holds a 32nd of the content, short runs cost nothing.
        let is_small = u64::from(round_symbols) * u64::from(LEAST_VISIT) >= self.source_symbols;
        if !is_small && has_runs {
            let visits = Some(LEAST_VISIT);
            return TransmissionSchedule::Runs { length: RUN_SYMBOLS, visits };
        }
        if !is_small {
            let grain = self.longest_block.div_ceil(LEAST_VISIT);
            return TransmissionSchedule::Interleaved { grain };
        }
        let is_rateless = scheme.is_none_or(|scheme| scheme.profile().is_rateless);
        let lists = if is_rateless { self.channels } else { self.channels.max(MOST_SEGMENTS) };
        let listed = self.source_symbols.saturating_mul(u64::from(lists));
        let has_room = listed.saturating_mul(LISTED_SYMBOL_BYTES) <= order_bytes;
        let schedule = scheme.filter(|_| has_room).map_or(TransmissionSchedule::EVEN, |scheme| {
            options.profile.schedule(scheme, self.channels)
        });
        match schedule {
            TransmissionSchedule::EVEN if has_runs => IN_RUNS,
            schedule => schedule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_proto::Profile;

    const RAPTORQ: FecScheme =
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });

    #[test]
    fn a_profile_has_its_order_where_memory_allows_for_it() {
        let order = |profile, source_symbols, channels| {
            let options = SendOptions { profile, ..SendOptions::new(Vec::new()) };
            let volume = Volume { source_symbols, longest_block: 6_400, channels };
            volume.schedule(&options, Some(RAPTORQ), 1_000, 8 * 40_000)
        };
        let space = Profile::Space.schedule(RAPTORQ, 1);
        assert_ne!(space, TransmissionSchedule::EVEN);
        // A window of 1000 symbols is a 32nd of 32 000; lists have room for 40 000.
        assert_eq!(order(Profile::Space, 32_000, 1), space);
        assert_eq!(order(Profile::Space, 20_000, 2), space);
        assert_eq!(order(Profile::Space, 20_001, 2), TransmissionSchedule::EVEN);
        assert_eq!(order(Profile::Speed, 32_000, 1), IN_RUNS);
        assert_eq!(order(Profile::Speed, 32_000, 2), TransmissionSchedule::EVEN);
        let in_visits = TransmissionSchedule::Runs { length: 48, visits: Some(32) };
        let in_grains = TransmissionSchedule::Interleaved { grain: 200 };
        for profile in Profile::ALL {
            assert_eq!(order(profile, 32_001, 1), in_visits);
            assert_eq!(order(profile, 32_001, 2), in_grains);
        }
        let nothing = Volume { source_symbols: 0, longest_block: 1, channels: 1 };
        let options = SendOptions { profile: Profile::Space, ..SendOptions::new(Vec::new()) };
        assert_eq!(nothing.schedule(&options, None, 1_000, 0), IN_RUNS);
    }

    #[test]
    fn a_chosen_schedule_is_refused_where_it_would_be_replaced() {
        let check = |schedule, source_symbols, channels| {
            let volume = Volume { source_symbols, longest_block: 6_400, channels };
            volume.check(schedule, Some(RAPTORQ), 1_000, 8 * 40_000)
        };
        let space = Profile::Space.schedule(RAPTORQ, 2);
        let refusal = |schedule, source_symbols, channels| {
            check(schedule, source_symbols, channels).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(space, 20_000, 2), None);
        assert_eq!(refusal(space, 20_000, 1), None, "a fountain code has no segments");
        let memory = Some("this schedule needs more memory for so much content".to_owned());
        assert_eq!(refusal(space, 20_001, 2), memory);
        assert_eq!(refusal(TransmissionSchedule::Random, 32_000, 2), None);
        assert_eq!(refusal(TransmissionSchedule::Random, 32_001, 2), memory);
        let cumulative = refusal(TransmissionSchedule::Cumulative, 100, 2);
        assert!(cumulative.is_some_and(|text| text.contains("a code that repeats its symbols")));
    }

    #[test]
    fn blocks_are_solved_near_the_end_of_the_source_pass() {
        let options = |mode, source_pass| SendOptions {
            rate: Rate::bytes_per_second(40_000_000),
            mode,
            source_pass,
            ..SendOptions::new(Vec::new())
        };
        let window = |mode, source_pass| solving_window(&options(mode, source_pass), 1_000);
        // Workers encode five times as fast as the content is sent.
        assert_eq!(window(SendMode::OnDemand, true), 200);
        assert_eq!(window(SendMode::Push { repair_permille: 1 }, true), 200);
        assert_eq!(window(SendMode::Push { repair_permille: 0 }, true), 0);
        assert_eq!(window(SendMode::OnDemand, false), 0);
        let fast = SendOptions { rate: Rate::mbit(100_000), ..options(SendMode::OnDemand, true) };
        assert_eq!(solving_window(&fast, 1_000), 1_000);
    }

    #[test]
    fn runs_of_the_opening_grow_with_the_rate() {
        let permille = |megabits| {
            let rate = Rate::mbit(megabits);
            opening_permille(&SendOptions { rate, ..SendOptions::new(Vec::new()) })
        };
        let runs = [1, 200, 1_000].map(permille);
        assert_eq!(runs, [31, 250, 500]);
    }
}
