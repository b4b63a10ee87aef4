//! How files become objects.
//!
//! A file is an object, or several if one cannot hold it. Every object has at least one block, and
//! a receiver is complete when its slowest block is. A thousand files of a few symbols each would
//! therefore cost more than one of the same size. Small files are *bundled*: concatenated in the
//! order of the tree, in objects that contain many of them. No object contains holes.

use super::lost::Lost;
use super::{ContentObject, ContentOptions, bundles};
use crate::error::{Error, SetupError};
use crate::geometry;
use fontana_proto::ControlError;
use fontana_store::{
    Extent, Extents, FileIndex, GeometryError, ObjectSource, SourceError, SourceFile, SourceFiles,
};
use fontana_wire::Segment;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Fewer small files than this are not bundled: they cost little, and receivers of plain FLUTE can
/// use a file that is an object.
const LEAST_BUNDLED: usize = 16;

/// The extents that share objects: those of a file, or of many small ones.
pub(super) fn runs(
    options: &ContentOptions<'_>,
    sources: &SourceFiles,
    lost: &Lost,
) -> Vec<Vec<Extent>> {
    if let ([_, ..], [file]) = (options.parts, sources.as_slice()) {
        let index = FileIndex(0);
        let data = if lost.has(index) { Vec::new() } else { data_of(options, index, file) };
        return cut(data, options.parts);
    }
    // The bytes of a block: longer files have long blocks without bundling.
    let block = u64::from(options.block_symbols) * u64::from(options.symbol_size);
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for (index, file) in (0..).map(FileIndex).zip(sources.as_slice()) {
        let extents = data_of(options, index, file);
        let length = bundles::length(&extents);
        if length > 0 && !lost.has(index) {
            let run = if length < block && !options.plain { &mut small } else { &mut large };
            run.push(extents);
        }
    }
    if small.len() < LEAST_BUNDLED {
        // In the order of the files.
        let mut all = [large, small].concat();
        all.sort();
        return all;
    }
    let bundles = bundles::split(small).into_iter().map(|bundle| bundle.files.concat());
    large.into_iter().chain(bundles).collect()
}

/// The extents of each part of a file, and of what is in no part.
fn cut(mut data: Vec<Extent>, parts: &[std::ops::Range<u64>]) -> Vec<Vec<Extent>> {
    let mut runs = Vec::with_capacity(parts.len() + 1);
    for part in parts {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for Extent { file, offset, length } in data {
            let end = offset + length;
            let from = part.start.clamp(offset, end);
            let to = part.end.clamp(from, end);
            let extent = |from: u64, to: u64| Extent { file, offset: from, length: to - from };
            if from == to {
                outside.push(extent(offset, end));
            } else {
                inside.push(extent(from, to));
                outside.extend((offset < from).then(|| extent(offset, from)));
                outside.extend((to < end).then(|| extent(to, end)));
            }
        }
        runs.push(inside);
        data = outside;
    }
    runs.push(data);
    runs.retain(|run| !run.is_empty());
    runs
}

/// The extents of a file that are sent. Plain FLUTE sends holes as zeros.
pub(super) fn data_of(
    options: &ContentOptions<'_>,
    file: FileIndex,
    source: &SourceFile,
) -> Vec<Extent> {
    if options.plain {
        let whole = Extent { file, offset: 0, length: source.size() };
        return if whole.length > 0 { vec![whole] } else { Vec::new() };
    }
    let extent = |range: &std::ops::Range<u64>| Extent {
        file,
        offset: range.start,
        length: range.end - range.start,
    };
    source.data().iter().map(extent).collect()
}

/// The objects of a run of extents: one, or as many as its length needs.
pub(super) fn fragments(
    options: &ContentOptions<'_>,
    sources: &Arc<SourceFiles>,
    run: &[Extent],
) -> Result<Vec<ObjectSource>, Error> {
    let length = bundles::length(run);
    let largest = geometry::max_object_size(options.code, options.symbol_size);
    let count = length.div_ceil(largest);
    if options.plain && count > 1 {
        let allowed =
            "one that a single object holds: raise the symbol size, or send without FLUTE";
        return Err(
            SetupError::Range { what: "the length of a file", actual: length, allowed }.into()
        );
    }
    // Fragments of about equal length, in whole symbols.
    let symbols = length.div_ceil(u64::from(options.symbol_size)).div_ceil(count.max(1));
    let size = symbols * u64::from(options.symbol_size);
    (0..count)
        .map(|number| {
            let offset = number * size;
            let length = size.min(length - offset);
            let oti = geometry::object_oti(
                options.code,
                length,
                options.symbol_size,
                options.block_symbols,
            );
            let layout = oti.layout().map_err(ControlError::from)?;
            let extents = Extents::new(part(run, offset, length)).map_err(SourceError::from)?;
            let source = ObjectSource::new(Arc::clone(sources), layout, extents);
            Ok(source.map_err(SourceError::from)?)
        })
        .collect()
}

/// `length` bytes of a run, from `start` on.
fn part(run: &[Extent], start: u64, length: u64) -> Vec<Extent> {
    let end = start + length;
    let mut at = 0;
    run.iter()
        .filter_map(|extent| {
            let begin = at;
            at += extent.length;
            let (from, to) = (start.max(begin), end.min(at));
            (from < to).then(|| Extent {
                file: extent.file,
                offset: extent.offset + (from - begin),
                length: to - from,
            })
        })
        .collect()
}

/// The segments of every file: in objects, or in holes.
pub(super) fn segments(
    sources: &SourceFiles,
    objects: &[ContentObject],
) -> Result<BTreeMap<FileIndex, Vec<Segment>>, Error> {
    let mut placed: BTreeMap<FileIndex, Vec<(u64, Segment)>> = BTreeMap::new();
    for object in objects {
        let mut object_offset = 0;
        for &Extent { file, offset, length } in object.source.extents().as_slice() {
            let segment = Segment::Extent { toi: object.toi.0 as u32, object_offset, length };
            placed.entry(file).or_default().push((offset, segment));
            object_offset += length;
        }
    }
    let mut all = BTreeMap::new();
    for (index, file) in (0..).map(FileIndex).zip(sources.as_slice()) {
        let mut extents = placed.remove(&index).unwrap_or_default();
        extents.sort_by_key(|(offset, _)| *offset);
        let (mut segments, mut at) = (Vec::new(), 0);
        for (offset, segment) in extents {
            segments.extend(hole(at, offset));
            segments.push(segment);
            at = offset
                .checked_add(segment.length())
                .ok_or(GeometryError::Overflow)
                .map_err(SourceError::from)?;
        }
        segments.extend(hole(at, file.size()));
        all.insert(index, segments);
    }
    Ok(all)
}

fn hole(from: u64, to: u64) -> Option<Segment> {
    let length = to.saturating_sub(from);
    (length > 0).then_some(Segment::Hole { length })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(index: u32, length: u64) -> Vec<Extent> {
        vec![Extent { file: FileIndex(index), offset: 0, length }]
    }

    #[test]
    fn parts_of_a_file_are_objects_in_their_order_and_have_each_byte_once() {
        // The start and end of each extent, of a file with a hole.
        let cut = |parts: &[std::ops::Range<u64>]| {
            let later = Extent { offset: 20, ..file(0, 10)[0] };
            let runs = cut([file(0, 10), vec![later]].concat(), parts);
            let ends = |extent: &Extent| (extent.offset, extent.offset + extent.length);
            let runs = runs.iter().map(|run| run.iter().map(ends).collect());
            runs.collect::<Vec<Vec<_>>>()
        };
        let expected = [vec![(5, 10), (20, 22)], vec![(0, 5)], vec![(22, 30)]];
        assert_eq!(cut(&[5..22, 0..5]), expected);
        // A part that ends before it begins, one beyond the end, and one that others have.
        let odd = [std::ops::Range { start: 8, end: 3 }, 40..50, 0..u64::MAX, 2..4];
        assert_eq!(cut(&odd), [[(0, 10), (20, 30)]]);
    }

    #[test]
    fn a_part_of_a_run_is_cut_where_it_begins_and_ends() {
        let run = [file(0, 10), file(1, 5), file(2, 10)].concat();
        let cut = |start, length| {
            let extents = part(&run, start, length);
            extents.iter().map(|e| (e.file.0, e.offset, e.length)).collect::<Vec<_>>()
        };
        assert_eq!(cut(0, 25), [(0, 0, 10), (1, 0, 5), (2, 0, 10)]);
        assert_eq!(cut(8, 9), [(0, 8, 2), (1, 0, 5), (2, 0, 2)]);
        assert_eq!(cut(10, 5), [(1, 0, 5)]);
        assert_eq!(cut(25, 0), []);
    }
}
