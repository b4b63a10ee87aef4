//! Source files: which are accepted, which changes are detected, and the symbols computed from
//! them.

use crate::fixtures::{Random, descriptors_below, make_pipe, no_code, raptorq, whole_file};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{Esi, FecScheme, Oti, PlanCache, Sbn, Scratch};
use fontana_proto::Category;
use fontana_store::{
    Change, EncodeError, Errno, Extent, Extents, FileIndex, GeometryError, ObjectEncoder,
    ObjectSource, ScratchFile, SolvedStore, SourceError, SourceFile, SourceFiles,
};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

fn category(path: &Path) -> Category {
    SourceFile::open(path).unwrap_err().category()
}

/// Changes a file until the clock of its timestamps has advanced.
fn until_changed(path: &Path, mut change: impl FnMut()) {
    let stamp = |meta: fs::Metadata| (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec());
    let before = fs::metadata(path).map(stamp).unwrap();
    while fs::metadata(path).map(stamp).is_ok_and(|now| now == before) {
        change();
    }
}

fn object(path: &Path, length: u64) -> ObjectSource {
    let mut files = SourceFiles::default();
    files.add(path).unwrap();
    ObjectSource::new(Arc::new(files), raptorq(length, 64, 2, 1), whole_file(length)).unwrap()
}

#[test]
fn only_regular_files_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link, pipe) = (dir.path().join("f"), dir.path().join("l"), dir.path().join("p"));
    fs::write(&file, "abc").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    make_pipe(&pipe);

    assert_eq!(SourceFile::open(&file).unwrap().size(), 3);
    assert_eq!(SourceFile::open(&link).unwrap().size(), 3);
    for path in [dir.path(), &pipe, Path::new("/dev/null"), &dir.path().join("missing")] {
        assert_eq!(category(path), Category::Refused, "{path:?}");
    }
    assert_eq!(
        SourceFile::open(dir.path()).unwrap_err(),
        SourceError::NotRegular { path: dir.path().into(), kind: "a directory" }
    );
    let below_a_file = SourceFile::open(file.join("x")).unwrap_err();
    assert!(matches!(below_a_file, SourceError::System { errno: Errno::NOTDIR, .. }));
}

#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return; // root ignores permissions
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "abc").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(category(&path), Category::Refused);
}

#[test]
fn a_file_truncated_while_it_is_read_is_reported_as_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, vec![1; 1000]).unwrap();
    let object = object(&path, 1000);
    let mut out = vec![0; 1000];
    object.read_at(0, &mut out).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(999).unwrap();
    object.read_at(0, &mut out[..999]).unwrap();
    let what = Change::Size { before: 1000, now: 999 };
    let changed = SourceError::Changed { path: path.clone(), what };
    assert_eq!(object.read_at(0, &mut out), Err(changed.clone()));
    assert_eq!(object.for_each_chunk_of_block(Sbn(1), |_| {}), Err(changed.clone()));
    assert_eq!(changed.category(), Category::SourceChanged);
}

#[test]
fn a_file_rewritten_in_its_length_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, vec![1; 1000]).unwrap();
    let object = object(&path, 1000);
    assert_eq!(object.check_unchanged(Sbn(0)), Ok(()));
    until_changed(&path, || {
        let file = fs::File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[2], 10).unwrap();
    });
    let changed = SourceError::Changed { path: path.clone(), what: Change::Modified };
    assert_eq!(object.check_unchanged(Sbn(0)), Err(changed.clone()));
    assert_eq!(object.for_each_chunk_of_block(Sbn(0), |_| {}), Err(changed));
}

#[test]
fn links_modes_and_names_are_no_change() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, vec![1; 1000]).unwrap();
    let other = |name: &str| dir.path().join(name);
    let [link, away] = ["link", "away"].map(other);
    let changes: [&dyn Fn(); 3] = [
        &|| {
            let _ = fs::remove_file(&link);
            fs::hard_link(&path, &link).unwrap();
        },
        &|| {
            let mode = fs::metadata(&path).unwrap().mode() ^ 0o040;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        },
        &|| {
            fs::rename(&path, &away).unwrap();
            fs::rename(&away, &path).unwrap();
        },
    ];
    for change in changes {
        let object = object(&path, 1000);
        until_changed(&path, change);
        assert_eq!(object.check_unchanged(Sbn(0)), Ok(()));
        assert_eq!(object.for_each_chunk_of_block(Sbn(0), |_| {}), Ok(()));
    }
}

#[test]
fn a_file_that_grows_or_is_replaced_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("f"), dir.path().join("other"));
    fs::write(&path, vec![1; 1000]).unwrap();
    fs::write(&other, vec![1; 1000]).unwrap();
    let mut files = SourceFiles::new(1);
    let (index, second) = (files.add(&path).unwrap(), files.add(&other).unwrap());

    fs::write(dir.path().join("new"), vec![1; 1000]).unwrap();
    fs::rename(dir.path().join("new"), &path).unwrap();
    let changed = |what| Err(SourceError::Changed { path: path.clone(), what });
    assert_eq!(files.check_unchanged(index), changed(Change::Replaced));
    fs::remove_file(&path).unwrap();
    assert_eq!(files.read_exact_at(index, 0, &mut [0]), changed(Change::Missing));
    make_pipe(&path); // no process has opened its other end
    assert_eq!(files.read_exact_at(index, 0, &mut [0]), changed(Change::Replaced));

    fs::write(&other, vec![1; 1001]).unwrap();
    assert!(matches!(
        files.check_unchanged(second),
        Err(SourceError::Changed { what: Change::Size { before: 1000, now: 1001 }, .. })
    ));
}

#[test]
fn a_bundle_of_many_files_needs_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = SourceFiles::new(4);
    let (mut extents, mut expected) = (Vec::new(), Vec::new());
    for i in 0..300_u32 {
        let path = dir.path().join(i.to_string());
        let bytes = vec![i as u8; i as usize % 7];
        fs::write(&path, &bytes).unwrap();
        let file = files.add(&path).unwrap();
        extents.push(Extent { file, offset: 0, length: bytes.len() as u64 });
        expected.extend(bytes);
    }
    let layout = no_code(expected.len() as u64, 50, 100);
    let extents = Extents::new(extents).unwrap();
    let object = ObjectSource::new(Arc::new(files), layout, extents).unwrap();
    let mut bytes = Vec::new();
    object.for_each_chunk_of_block(Sbn(0), |chunk| bytes.extend_from_slice(chunk)).unwrap();
    assert_eq!(bytes, expected);
    assert_eq!(descriptors_below(dir.path()), 4);
}

#[test]
fn the_files_of_a_block_are_opened_once_to_hash_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = SourceFiles::new(4);
    let paths: Vec<_> = (0..100).map(|number| dir.path().join(number.to_string())).collect();
    let mut extents = Vec::new();
    for path in &paths {
        fs::write(path, [7; 256]).unwrap();
        extents.push(Extent { file: files.add(path).unwrap(), offset: 0, length: 256 });
    }
    let extents = Extents::new(extents).unwrap();
    let object = ObjectSource::new(Arc::new(files), no_code(25_600, 256, 100), extents).unwrap();
    // Files that were read and examined are not needed any more.
    let remove = |_: &[u8]| paths.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(object.for_each_chunk_and_deviations(Sbn(0), remove), Ok(None));
    assert!(object.for_each_chunk_of_block(Sbn(0), |_| {}).is_err());
}

#[test]
fn extents_outside_the_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "0123456789").unwrap();
    let mut files = SourceFiles::default();
    let file = files.add(&path).unwrap();
    let files = Arc::new(files);
    let new = |file, offset, length| {
        let extents = Extents::new([Extent { file, offset, length }]).unwrap();
        ObjectSource::new(files.clone(), no_code(length, 4, 4), extents).map(drop)
    };
    assert_eq!(new(file, 2, 8), Ok(()));
    assert_eq!(new(file, 2, 9), Err(GeometryError::BeyondFile { file, end: 11, length: 10 }));
    assert_eq!(new(FileIndex(1), 0, 1), Err(GeometryError::NoSuchFile(FileIndex(1))));
    let beyond = files.read_exact_at(file, 10, &mut [0]);
    assert!(matches!(beyond, Err(SourceError::Geometry(GeometryError::BeyondFile { .. }))));
    assert_eq!(files.read_exact_at(file, 10, &mut []), Ok(()));
}

#[test]
fn an_empty_object_has_nothing_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "").unwrap();
    let object = object(&path, 0);
    let missing = SourceError::Geometry(GeometryError::NoSuchBlock(Sbn(0)));
    assert_eq!(object.for_each_chunk_of_block(Sbn(0), |_| {}), Err(missing));
    object.read_at(0, &mut []).unwrap();
}

struct Encoding {
    encoder: ObjectEncoder,
    store: Arc<SolvedStore>,
    bytes: Vec<u8>,
    _dir: tempfile::TempDir,
}

fn encoding(length: usize, symbol_size: u16, sub_blocks: u16, kept: usize) -> Encoding {
    encoding_with(length, symbol_size, sub_blocks, SolvedStore::new(kept))
}

fn encoding_with(
    length: usize,
    symbol_size: u16,
    sub_blocks: u16,
    store: Arc<SolvedStore>,
) -> Encoding {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let bytes = Random::new(length as u64).bytes(length);
    fs::write(&path, &bytes).unwrap();
    let mut files = SourceFiles::default();
    files.add(&path).unwrap();
    let layout = raptorq(length as u64, symbol_size, 2, sub_blocks);
    let source = ObjectSource::new(Arc::new(files), layout, whole_file(length as u64)).unwrap();
    let plans = Arc::new(PlanCache::new(4));
    let encoder = ObjectEncoder::new(Arc::new(source), plans, store.clone());
    Encoding { encoder, store, bytes, _dir: dir }
}

impl Encoding {
    /// The symbols that the code computes with the whole object in memory.
    fn expected(&self, sbn: Sbn, esis: &[Esi]) -> Vec<u8> {
        let layout = *self.encoder.source().layout();
        let (size, k) = (layout.oti().symbol_size.into(), layout.source_symbols(sbn).unwrap());
        let plan = layout.oti().scheme.source_plan(k).unwrap();
        let read = |esi: Esi, out: &mut [u8]| {
            for piece in layout.symbol_pieces(sbn, esi) {
                let (from, to) = (piece.in_object.start as usize, piece.in_object.end as usize);
                let part = &self.bytes[from..to];
                out[piece.in_symbol.start..][..part.len()].copy_from_slice(part);
            }
            Ok::<(), ()>(())
        };
        let block = plan.execute(size, read, Scratch::default());
        let mut out = vec![0; esis.len() * size];
        block.unwrap().write_symbols(esis, &mut out);
        out
    }

    fn encode(&self, sbn: Sbn, esis: &[Esi], budget: usize) -> Result<Vec<u8>, EncodeError> {
        let size = usize::from(self.encoder.source().layout().oti().symbol_size);
        let mut out = vec![0xA5; esis.len() * size];
        self.encoder.encode(sbn, esis, budget, &mut out).map(|_| out)
    }
}

#[test]
fn symbols_are_the_same_with_any_budget() {
    for sub_blocks in [1, 3] {
        for kept in [0, usize::MAX] {
            let encoding = encoding(50_001, 256, sub_blocks, kept);
            let k = encoding.encoder.source().layout().max_source_symbols();
            let last = (1 << 24) - 1;
            let esis = [k, k + 1, 3, 4, 5, 4, 0, 1, last, 7, k - 2, k - 1, k, k - 1].map(Esi);
            for sbn in [Sbn(0), Sbn(1)] {
                let expected = encoding.expected(sbn, &esis);
                for budget in [0, 20_000, usize::MAX, 0] {
                    assert!(encoding.encode(sbn, &esis, budget).unwrap() == expected);
                }
            }
            assert_eq!(encoding.store.used() > 0, kept > 0);
        }
    }
}

#[test]
fn cached_blocks_stay_within_the_limit_and_return_it() {
    let probe = encoding(50_000, 256, 1, usize::MAX);
    probe.encode(Sbn(0), &[Esi(200)], usize::MAX).unwrap();
    let one_block = probe.store.used();
    let encoding = encoding(50_000, 256, 1, one_block * 2 - 1);
    for sbn in [Sbn(0), Sbn(1), Sbn(0)] {
        encoding.encode(sbn, &[Esi(200)], usize::MAX).unwrap();
        assert_eq!(encoding.store.used(), one_block);
    }
    drop(encoding.encoder);
    assert_eq!(encoding.store.used(), 0);
}

#[test]
fn blocks_that_exceed_the_memory_are_solved_once_with_a_scratch_file() {
    let probe = encoding(50_000, 256, 1, usize::MAX);
    probe.encode(Sbn(0), &[Esi(200)], usize::MAX).unwrap();
    let one_block = probe.store.used();
    // The second block is solved in several ranges of columns.
    for (memory, budget) in [(0, usize::MAX), (one_block, usize::MAX), (0, one_block / 3)] {
        let scratch = ScratchFile::new(tempfile::tempfile().unwrap(), 1 << 20);
        let store = SolvedStore::with_scratch(memory, Some(Arc::new(scratch)));
        let encoding = encoding_with(50_000, 256, 1, store);
        // Long visits read the rows together, short ones one by one.
        for (first, count) in [(98, 20), (200, 20), (900, 1), (95, 10)] {
            for sbn in [Sbn(0), Sbn(1)] {
                let esis: Vec<_> = (first..first + count).map(Esi).collect();
                let symbols = encoding.encode(sbn, &esis, budget).unwrap();
                assert!(symbols == encoding.expected(sbn, &esis), "{memory}, {budget}");
            }
        }
        let blocks = if memory == 0 { 2 } else { 1 };
        let on_disk = encoding.store.scratch_bytes();
        assert!((blocks * 25_000..blocks * 40_000).contains(&on_disk), "{on_disk}");
        assert_eq!(encoding.store.solved_bytes(), 196 * 256);
    }
}

#[test]
fn blocks_that_exceed_the_scratch_file_are_solved_again() {
    let scratch = ScratchFile::new(tempfile::tempfile().unwrap(), 40_000);
    let encoding =
        encoding_with(50_000, 256, 1, SolvedStore::with_scratch(0, Some(Arc::new(scratch))));
    for _ in 0..2 {
        for sbn in [Sbn(0), Sbn(1)] {
            let symbols = encoding.encode(sbn, &[Esi(200)], usize::MAX).unwrap();
            assert!(symbols == encoding.expected(sbn, &[Esi(200)]));
        }
    }
    assert_eq!(encoding.store.solved_bytes(), 3 * 98 * 256);
    assert_eq!(encoding.store.repair_bytes(), 4 * 256);
}

#[test]
fn a_block_that_is_solved_ahead_is_not_solved_again() {
    let encoding = encoding(50_000, 256, 1, usize::MAX);
    for is_new in [true, false] {
        assert_eq!(encoding.encoder.solve_ahead(Sbn(0), usize::MAX), Ok(is_new));
    }
    let symbols = encoding.encode(Sbn(0), &[Esi(200)], usize::MAX).unwrap();
    assert!(symbols == encoding.expected(Sbn(0), &[Esi(200)]));
    assert_eq!(encoding.store.solved_bytes(), 98 * 256);
    assert_eq!(encoding.encoder.solve_ahead(Sbn(0), usize::MAX), Ok(false));
    assert!(encoding.encoder.solve_ahead(Sbn(2), usize::MAX).is_err());
}

#[test]
fn no_block_is_solved_ahead_that_has_no_room_or_was_written_to() {
    let full = encoding(50_000, 256, 1, 0);
    assert_eq!(full.encoder.solve_ahead(Sbn(0), usize::MAX), Ok(false));
    assert_eq!(full.store.solved_bytes(), 0);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, [1; 25_600]).unwrap();
    let mut files = SourceFiles::default();
    files.add(&path).unwrap();
    let (files, layout) = (Arc::new(files.allowing_growth()), raptorq(25_600, 256, 1, 1));
    let source = ObjectSource::new(files, layout, whole_file(25_600)).unwrap();
    let (plans, store) = (Arc::new(PlanCache::new(1)), SolvedStore::new(usize::MAX));
    let encoder = ObjectEncoder::new(Arc::new(source), plans, store.clone());
    fs::write(&path, [1; 30_000]).unwrap();
    assert_eq!(encoder.solve_ahead(Sbn(0), usize::MAX), Ok(false));
    assert_eq!(store.used(), 0);
}

#[test]
fn a_cached_block_is_not_sent_after_its_file_changed() {
    let encoding = encoding(50_000, 256, 1, usize::MAX);
    encoding.encode(Sbn(0), &[Esi(200)], usize::MAX).unwrap();
    let path = encoding._dir.path().join("f");
    until_changed(&path, || fs::write(&path, &encoding.bytes).unwrap());
    let error = encoding.encode(Sbn(0), &[Esi(200)], usize::MAX).unwrap_err();
    assert!(matches!(error, EncodeError::Source(SourceError::Changed { .. })));
}

#[test]
fn a_visit_examines_the_files_that_it_reads_or_a_few_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = SourceFiles::default();
    let paths: Vec<_> = (0..100).map(|number| dir.path().join(number.to_string())).collect();
    for path in &paths {
        fs::write(path, [7; 256]).unwrap();
    }
    let added: Vec<_> = paths.iter().map(|path| files.add(path).unwrap()).collect();
    let extents = added.into_iter().map(|file| Extent { file, offset: 0, length: 256 });
    let extents = Extents::new(extents).unwrap();
    let layout = raptorq(25_600, 256, 1, 1);
    let source = ObjectSource::new(Arc::new(files), layout, extents).unwrap();
    let (plans, store) = (Arc::new(PlanCache::new(1)), SolvedStore::new(usize::MAX));
    let encoder = ObjectEncoder::new(Arc::new(source), plans, store);
    let encode = |esi| encoder.encode(Sbn(0), &[Esi(esi)], usize::MAX, &mut [0; 256]);
    encode(100).unwrap();
    fs::write(&paths[90], [8; 300]).unwrap();
    encode(3).unwrap();
    assert!(encode(90).is_err());
    assert_eq!((101..150).take_while(|&esi| encode(esi).is_ok()).count(), 11);
}

#[test]
fn symbols_that_do_not_exist_are_refused() {
    let encoding = encoding(5_000, 256, 1, 0);
    let refused = |sbn, esi| {
        matches!(
            encoding.encode(sbn, &[Esi(0), Esi(esi)], 0),
            Err(EncodeError::Source(SourceError::Geometry(_)))
        )
    };
    assert!(!refused(Sbn(1), (1 << 24) - 1));
    assert!(refused(Sbn(1), 1 << 24));
    assert!(refused(Sbn(2), 0));
    let out = &mut [0; 511];
    let size = GeometryError::Size { expected: 512, actual: 511 };
    assert_eq!(
        encoding.encoder.encode(Sbn(0), &[Esi(0), Esi(1)], 0, out),
        Err(EncodeError::Source(SourceError::Geometry(size)))
    );
}

#[test]
fn a_block_without_a_code_has_no_repair_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "0123456789").unwrap();
    let mut files = SourceFiles::default();
    files.add(&path).unwrap();
    let source = ObjectSource::new(Arc::new(files), no_code(10, 4, 2), whole_file(10)).unwrap();
    let plans = Arc::new(PlanCache::new(1));
    let encoder = ObjectEncoder::new(Arc::new(source), plans, SolvedStore::new(0));
    let mut out = [9; 4];
    encoder.encode(Sbn(1), &[Esi(0)], 0, &mut out).unwrap();
    assert_eq!(&out, b"89\0\0");
    assert!(encoder.encode(Sbn(1), &[Esi(1)], 0, &mut out).is_err());
}

#[test]
fn bytes_in_memory_are_read_like_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, b"on the disk").unwrap();
    let mut files = SourceFiles::default();
    let held = files.add_bytes("header", b"in memory ".to_vec());
    let file = files.add(&path).unwrap();
    let extents =
        [(held, 3, 7), (file, 0, 11)].map(|(file, offset, length)| Extent { file, offset, length });
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 8 });
    let layout = Oti { transfer_length: 18, symbol_size: 8, scheme }.layout().unwrap();
    let object =
        ObjectSource::new(Arc::new(files), layout, Extents::new(extents).unwrap()).unwrap();
    let mut bytes = [0; 18];
    object.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"memory on the disk");
    object.check_unchanged(Sbn(0)).unwrap();
}
