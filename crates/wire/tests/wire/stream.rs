//! The stream index: one encoding, and rules that emitter and parser share.

use crate::truncations;
use fontana_wire::{
    Fragment, Hash, RelativePath, StreamError, StreamIndex, StreamState, Toi, manifest_hash,
    stream_index_hash,
};

pub(crate) fn sample() -> StreamIndex {
    StreamIndex {
        version: 9,
        name: RelativePath::new("dump").unwrap(),
        state: StreamState::Open,
        symbol_size: 1344,
        max_symbols: 10_000,
        first: 2,
        offset: 14_000_000,
        fragments: vec![
            Fragment { length: 13_440_000, hash: Hash([1; 32]) },
            Fragment { length: 1, hash: Hash([2; 32]) },
        ],
    }
}

#[test]
fn an_index_is_read_back_with_the_ranges_of_its_fragments() {
    let index = sample();
    assert_eq!(StreamIndex::parse(&index.emit()), Ok(index.clone()));
    let places: Vec<_> = index.placed().map(|placed| (placed.number, placed.range)).collect();
    assert_eq!(places, [(2, 14_000_000..27_440_000), (3, 27_440_000..27_440_001)]);
    assert_eq!((index.next(), index.length()), (4, 27_440_001));
    assert_eq!(StreamIndex::toi(2), Toi(3));
    assert_eq!(StreamIndex::number(Toi(3)), Some(2));
    assert_eq!(StreamIndex::number(Toi::FDT), None);
    let layout = index.oti(13_440_000).layout().unwrap();
    assert_eq!((layout.block_count(), layout.max_source_symbols()), (1, 10_000));
}

#[test]
fn an_index_hashes_to_something_else_than_a_manifest_of_the_same_bytes() {
    let bytes = sample().emit();
    assert_ne!(stream_index_hash(&bytes), manifest_hash(&bytes));
}

#[test]
fn truncated_and_extended_bytes_are_no_index() {
    let bytes = sample().emit();
    for cut in truncations(&bytes) {
        assert!(StreamIndex::parse(cut).is_err());
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(StreamIndex::parse(&longer), Err(StreamError::TrailingBytes { count: 1 }));
}

#[test]
fn every_limit_of_the_index_holds_at_its_edge() {
    let with = |change: &dyn Fn(&mut StreamIndex)| {
        let mut index = sample();
        change(&mut index);
        let checked = index.check();
        assert_eq!(StreamIndex::parse(&index.emit()).map(drop), checked);
        checked.is_ok()
    };
    let path = |name: &str| RelativePath::new(name).unwrap();
    assert!(!with(&|index| index.name = path("a/b")));
    for (size, ok) in [(0, false), (1342, false), (4, true), (1348, true)] {
        assert_eq!(with(&|index| (index.symbol_size, index.fragments) = (size, vec![])), {
            // With symbols of 4 bytes, the fragments before the first one cannot be so long.
            ok && size != 4
        });
    }
    for (most, ok) in [(0, false), (9_999, false), (56_403, true), (56_404, false)] {
        assert_eq!(with(&|index| index.max_symbols = most), ok, "{most}");
    }
    for (length, ok) in [(0, false), (1, true), (13_440_000, true), (13_440_001, false)] {
        assert_eq!(with(&|index| index.fragments[0].length = length), ok, "{length}");
    }
    for (offset, ok) in [(1, false), (2, true), (26_880_000, true), (26_880_001, false)] {
        assert_eq!(with(&|index| index.offset = offset), ok, "{offset}");
    }
    let fragment = Fragment { length: 1, hash: Hash([0; 32]) };
    for (count, ok) in [(0, true), (64, true), (65, false)] {
        assert_eq!(with(&|index| index.fragments = vec![fragment; count]), ok, "{count}");
    }
    // The last TOI of content is 0xFFFFFFEF: that of fragment 0xFFFFFFEE.
    for (first, ok) in [(0xFFFF_FFED, true), (0xFFFF_FFEE, false), (u32::MAX, false)] {
        assert_eq!(with(&|index| (index.first, index.offset) = (first, first.into())), ok);
    }
}
