//! Versions of real folders.

use super::*;
use fontana_store::Filter;
use fontana_testing::noise;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const SYMBOL: usize = 256;
const BLOCK: usize = 10 * SYMBOL;

/// A folder, and its versions.
struct Folder {
    directory: tempfile::TempDir,
    filter: Filter,
    versions: u64,
    base: Option<VersionBase>,
}

impl Folder {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("folder")).unwrap();
        Self { directory, filter: Filter::default(), versions: 0, base: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("folder").join(name)
    }

    fn write(&self, name: &str, bytes: usize, seed: u64) {
        fs::write(self.path(name), noise(bytes, seed)).unwrap();
    }

    /// The next version.
    fn version(&mut self) -> Content {
        // Longer than the resolution of the times of files.
        std::thread::sleep(std::time::Duration::from_millis(10));
        self.versions += 1;
        let files = [self.path("")];
        let options = ContentOptions {
            files: &files,
            in_memory: &[],
            parts: &[],
            name: None,
            filter: &self.filter,
            code: Code::RaptorQ,
            symbol_size: SYMBOL as u16,
            block_symbols: 10,
            version: self.versions,
            content_encoding: fontana_wire::ContentEncoding::Null,
            plain: false,
            signed: true,
            verifies: true,
            copies: None,
            workers: 1,
        };
        let tree = Tree::scan(&files, &self.filter).unwrap();
        let files = VersionFiles { tree, held: Vec::new(), unsettled: Vec::new() };
        let base = self.base.as_ref();
        let (content, base) = Content::version(&options, files, base, &mut Vec::new()).unwrap();
        self.base = Some(base);
        content
    }
}

/// The objects of a version and their hashes.
fn objects(content: &Content) -> BTreeSet<(u32, Hash)> {
    content.manifest.objects().iter().map(|object| (object.toi, object.hash())).collect()
}

/// Bytes of a file, read from the objects of a version.
fn bytes(content: &Content, path: &Path) -> Option<Vec<u8>> {
    let name = format!("folder/{}", path.file_name()?.to_str()?);
    let file = content.manifest.files().find(|file| file.path.to_string() == name)?;
    let mut bytes = Vec::new();
    for segment in &file.segments {
        let fontana_wire::Segment::Extent { toi, object_offset, length } = *segment else {
            panic!("a hole");
        };
        let object = content.objects.iter().find(|o| o.toi == Toi::from(toi)).unwrap();
        let mut part = vec![0; length as usize];
        object.source.read_at(object_offset, &mut part).unwrap();
        bytes.extend(part);
    }
    Some(bytes)
}

#[test]
fn a_new_file_is_a_new_object_and_all_others_stay() {
    let mut folder = Folder::new();
    for number in 0..300 {
        folder.write(&format!("{number}"), 100, number);
    }
    folder.write("large", 3 * BLOCK, 1);
    let first = folder.version();
    assert_eq!(first.first, None, "receivers have no version before");
    assert_eq!(first.objects.len(), 2);
    folder.write("new", 200, 7);
    let second = folder.version();
    assert!(objects(&second).is_superset(&objects(&first)));
    assert_eq!(second.objects.len(), 3);
    let new = second.manifest.objects().iter();
    let new = new.filter(|object| first.manifest.object(object.toi).is_none());
    let blocks: Vec<_> =
        new.map(|object| BlockId { toi: object.toi.into(), sbn: Sbn(0) }).collect();
    assert_eq!((second.first, blocks.len()), (Some(blocks), 1));
    // Nothing has changed, and the folder is the same after a restart.
    assert_eq!(objects(&folder.version()), objects(&folder.version()));
    folder.base = None;
    let (one, other) = (folder.version(), folder.version());
    assert_eq!(objects(&one), objects(&other));
    assert_eq!((one.first, other.first), (None, Some(vec![])));
}

#[test]
fn one_changed_byte_is_one_block() {
    let mut folder = Folder::new();
    folder.write("large", 20 * BLOCK, 1);
    let before = folder.version();
    let file = fs::OpenOptions::new().write(true).open(folder.path("large")).unwrap();
    file.write_all_at(b"x", 7 * BLOCK as u64 + 5).unwrap();
    let after = folder.version();
    let toi = after.objects[0].toi;
    assert_ne!(toi, before.objects[0].toi);
    assert_eq!(after.first, Some(vec![BlockId { toi, sbn: Sbn(7) }]));
}

#[test]
fn a_changed_file_leaves_its_bundle_and_only_its_blocks_are_new() {
    let mut folder = Folder::new();
    for number in 10..60 {
        folder.write(&format!("{number}"), 1_000, number);
    }
    let before = folder.version();
    assert_eq!(before.objects.len(), 1);
    folder.write("30", 900, 99);
    fs::remove_file(folder.path("31")).unwrap();
    let after = folder.version();
    assert_eq!(after.objects.len(), 2);
    let bundle = &after.objects[0];
    assert_eq!(bundle.source.layout().oti().transfer_length, 48_000);
    assert_eq!(after.first, Some(vec![BlockId { toi: after.objects[1].toi, sbn: Sbn(0) }]));
    assert_eq!(bytes(&after, &folder.path("30")), Some(noise(900, 99)));
    assert_eq!(bytes(&after, &folder.path("31")), None);
}

#[test]
fn a_file_that_has_grown_can_be_served_as_it_was_and_others_cannot() {
    let mut folder = Folder::new();
    for name in ["log", "other"] {
        folder.write(name, 2_000, 1);
    }
    folder.write("long", 3 * BLOCK, 2);
    folder.version();
    let append = |name: &str| {
        let mut file = fs::OpenOptions::new().append(true).open(folder.path(name)).unwrap();
        std::io::Write::write_all(&mut file, b"more").unwrap();
    };
    let base = folder.base.as_ref().unwrap();
    let verify = |name: &str| base.verify(&RelativePath::new(name.as_bytes()).unwrap()).is_ok();
    for name in ["log", "long"] {
        append(name);
        assert!(verify(&format!("folder/{name}")), "{name}");
        append(name);
        assert!(verify(&format!("folder/{name}")), "{name}");
    }
    let file = fs::OpenOptions::new().write(true).open(folder.path("long")).unwrap();
    file.write_all_at(b"x", 2 * BLOCK as u64).unwrap();
    assert!(!verify("folder/long"));
    file.set_len(10).unwrap();
    assert!(!verify("folder/long"));
    assert!(verify("folder/log"), "it is in another object");
    assert!(verify("folder/unknown"), "it is in no object");
}

#[test]
fn in_a_random_history_every_byte_is_in_one_object_and_objects_stay_few() {
    for seed in 0..4 {
        let mut folder = Folder::new();
        let random = noise(400, seed);
        let mut present = BTreeSet::new();
        let mut last: Option<Content> = None;
        for (step, bytes_of_step) in random.chunks_exact(4).enumerate().take(60) {
            let [action, which, size, more] = bytes_of_step[..] else { continue };
            let name = format!("{}", if action < 160 { step + 100 } else { which as usize % 90 });
            if action > 220 {
                let _ = fs::remove_file(folder.path(&name));
                present.remove(&name);
            } else {
                let large = if more < 40 { 5 * BLOCK } else { 0 };
                folder.write(&name, large + usize::from(size) + 1, step as u64);
                present.insert(name.clone());
            }
            let version = folder.version();
            for name in &present {
                let path = folder.path(name);
                assert_eq!(bytes(&version, &path), Some(fs::read(&path).unwrap()), "{name}");
            }
            let files = version.manifest.content_length();
            assert_eq!(version.manifest.transfer_length(), files, "no byte twice");
            if let Some(last) = last {
                let new = objects(&version).difference(&objects(&last)).count();
                assert!(new <= 3, "{new} new objects");
            }
            let large = version.objects.iter();
            let large = large.filter(|o| o.source.layout().block_count() > 4).count();
            assert!(version.objects.len() - large <= 3 * 8, "{}", version.objects.len());
            last = Some(version);
        }
    }
}
