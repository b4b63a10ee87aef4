//! Which small files of a publisher share an object, from version to version.
//!
//! Objects of earlier versions stay as they are where possible, so that receivers continue with
//! them, and so that nothing is hashed again. Every version with new files adds an object. So that
//! objects do not accumulate, bundles of similar size are merged, as in a log-structured merge
//! tree: each file is then merged about once for each factor [`CLASS_RATIO`] between its size and
//! that of all files. A merge costs receivers nothing that have the files.

use fontana_store::Extent;
use std::collections::BTreeMap;

/// Largest number of bytes of a bundle, unless a single file is longer: some blocks of the default
/// length, so that none is short. If a file of a bundle changes while it is sent, and the bundle is
/// not copied, its block is given up.
pub(super) const MAX_BUNDLE: u64 = 64 << 20;

/// The sizes of bundles of one class differ by less than this factor.
const CLASS_RATIO: u64 = 8;
/// Largest number of bundles of a class. More are merged.
const MAX_PER_CLASS: usize = 8;
/// Bundles of at least this many bytes are not merged: two of them would be too long.
const MERGED_BELOW: u64 = MAX_BUNDLE / 2;

/// Small files that share an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    /// The data of each file.
    pub(super) files: Vec<Vec<Extent>>,
    /// The object of the version before that the bundle is.
    pub(super) carried: Option<usize>,
}

impl Bundle {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| length(file)).sum()
    }
}

/// Bytes of extents.
pub(super) fn length(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.length).sum()
}

/// Concatenates files to bundles of about equal length, at most [`MAX_BUNDLE`]. A file is in one
/// bundle only, so that it is complete when the bundle is.
pub(super) fn split(files: Vec<Vec<Extent>>) -> Vec<Bundle> {
    let total: u64 = files.iter().map(|file| length(file)).sum();
    let share = total.div_ceil(total.div_ceil(MAX_BUNDLE).max(1)).max(1);
    let mut bundles: Vec<Bundle> = Vec::new();
    let mut before = 0;
    for file in files {
        // A file belongs to the bundle that its first byte falls into.
        if before / share >= bundles.len() as u64 {
            bundles.push(Bundle { files: Vec::new(), carried: None });
        }
        before += length(&file);
        if let Some(bundle) = bundles.last_mut() {
            bundle.files.push(file);
        }
    }
    bundles
}

/// Merges the bundles of every class that has too many.
pub(super) fn merge(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    loop {
        let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, bundle) in bundles.iter().enumerate() {
            let bytes = bundle.bytes();
            if bytes < MERGED_BELOW {
                classes.entry(bytes.max(1).ilog(CLASS_RATIO)).or_default().push(index);
            }
        }
        let Some(full) = classes.into_values().find(|class| class.len() > MAX_PER_CLASS) else {
            return bundles;
        };
        let mut files = Vec::new();
        // The members have less than half of the largest size each, so that this makes at most half
        // as many bundles, and the loop ends.
        for index in full.into_iter().rev() {
            files.extend(bundles.remove(index).files);
        }
        files.sort_unstable();
        bundles.extend(split(files));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_store::FileIndex;
    use fontana_testing::noise;

    fn file(index: u32, length: u64) -> Vec<Extent> {
        vec![Extent { file: FileIndex(index), offset: 0, length }]
    }

    fn bundle(index: u32, length: u64) -> Bundle {
        Bundle { files: vec![file(index, length)], carried: Some(index as usize) }
    }

    #[test]
    fn bundles_are_about_equal_and_split_no_file() {
        let files: Vec<_> = (0..1000).map(|index| file(index, 200_000)).collect();
        let bundles = split(files.clone());
        assert_eq!(bundles.len(), 3);
        let contents = bundles.iter().flat_map(|bundle| bundle.files.clone());
        assert_eq!(contents.collect::<Vec<_>>(), files);
        for bundle in &bundles {
            let length = bundle.bytes();
            assert!(length <= MAX_BUNDLE + 200_000, "{length}");
            assert!((66_000_000..67_200_000).contains(&length), "{length}");
        }
    }

    #[test]
    fn the_ninth_bundle_of_a_class_merges_all_of_it_and_no_other() {
        let large = bundle(100, 9_500_000);
        let eight: Vec<_> = (0..8).map(|index| bundle(index, 2_048)).collect();
        let before = [vec![large.clone()], eight].concat();
        assert_eq!(merge(before.clone()), before);
        let after = merge([before, vec![bundle(8, 2_048)]].concat());
        let merged =
            Bundle { files: (0..9).map(|index| file(index, 2_048)).collect(), carried: None };
        assert_eq!(after, [large, merged]);
    }

    #[test]
    fn large_bundles_are_not_merged() {
        let large: Vec<_> = (0..50).map(|index| bundle(index, MERGED_BELOW)).collect();
        assert_eq!(merge(large.clone()), large);
        let below: Vec<_> = (0..9).map(|index| bundle(index, MERGED_BELOW - 1)).collect();
        let merged = merge(below);
        assert_eq!(merged.len(), 5);
        assert!(merged.iter().all(|bundle| bundle.bytes() <= MAX_BUNDLE + MERGED_BELOW));
    }

    /// Sizes of files: mostly small, some large.
    fn sizes(count: usize) -> Vec<u64> {
        let bytes = noise(count * 3, 7);
        let size =
            |three: &[u8]| (u64::from(three[0]) << (three[1] % 12)) + u64::from(three[2]) + 1;
        bytes.chunks_exact(3).map(size).collect()
    }

    #[test]
    fn in_a_random_history_objects_stay_few_and_files_are_rarely_merged() {
        for seed in 0..20_u64 {
            let random = noise(2_000, seed);
            let mut bundles = split(vec![file(0, 9_500_000)]);
            let (mut next, mut added, mut merged) = (1, 0, 0);
            let mut present: std::collections::BTreeSet<u32> = [0].into();
            for (step, size) in sizes(300).into_iter().enumerate() {
                // Sometimes a file vanishes or changes: its bundle is dissolved.
                let mut loose = Vec::new();
                if random[step] < 64 {
                    let victim = usize::from(random[step + 300]) % bundles.len();
                    let mut files = bundles.remove(victim).files;
                    let gone = files.remove(usize::from(random[step + 600]) % files.len());
                    present.remove(&gone[0].file.0);
                    loose = split(files);
                }
                bundles.extend(loose);
                bundles.extend(split(vec![file(next, size)]));
                present.insert(next);
                (next, added) = (next + 1, added + size);
                let before = bundles.clone();
                bundles = merge(bundles);
                let new = bundles.iter().filter(|bundle| !before.contains(bundle));
                merged += new.map(Bundle::bytes).filter(|&bytes| bytes < 9_000_000).sum::<u64>();
                let contents = bundles.iter().flat_map(|bundle| &bundle.files);
                let mut names: Vec<_> = contents.map(|file| file[0].file.0).collect();
                names.sort_unstable();
                assert!(names.iter().eq(&present), "every file is in one bundle");
                assert!(bundles.len() <= 8 * 9, "{} bundles", bundles.len());
            }
            assert!(merged < 8 * added, "{merged} merged of {added}, seed {seed}");
        }
    }
}
