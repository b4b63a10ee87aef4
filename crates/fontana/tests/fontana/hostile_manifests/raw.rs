//! Manifests that no honest writer makes: any bytes in the form of `wire/src/manifest.rs`.

/// A manifest in pieces.
pub(crate) struct Raw {
    magic: &'static [u8],
    version: Vec<u8>,
    label: Vec<u8>,
    objects: Counted,
    entries: Counted,
    end: &'static [u8],
}

/// Items, and the number that the manifest declares.
struct Counted {
    count: u64,
    bytes: Vec<u8>,
}

impl Raw {
    /// One with these entries beside an honest one, and without objects.
    pub(crate) fn of<const N: usize>(entries: [Vec<u8>; N]) -> Self {
        let honest = file(b"honest");
        // The honest one is first in the order of paths, or last.
        let mut all = vec![honest];
        all.extend(entries);
        all.sort_by(|a, b| path_of(a).cmp(path_of(b)));
        Self::in_this_order(all)
    }

    fn in_this_order(entries: Vec<Vec<u8>>) -> Self {
        Self {
            magic: b"FONTMAN\x01",
            version: varint(1),
            label: sized(b"gift"),
            objects: Counted { count: 0, bytes: Vec::new() },
            entries: Counted { count: entries.len() as u64, bytes: entries.concat() },
            end: b"",
        }
    }

    pub(crate) fn emit(&self) -> Vec<u8> {
        let Self { magic, version, label, objects, entries, end } = self;
        let counted = |items: &Counted| [varint(items.count), items.bytes.clone()].concat();
        [&magic[..], version, label, &counted(objects), &counted(entries), &end[..]].concat()
    }
}

fn path_of(entry: &[u8]) -> &[u8] {
    // Names of the tests are shorter than 128 bytes where the order matters.
    let length = usize::from(entry[1]);
    entry.get(2..2 + length).unwrap_or_default()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A file, or directory, with a mode and nanoseconds.
fn entry(kind: u8, path: &[u8], mode: u64, nanoseconds: u64) -> Vec<u8> {
    [vec![kind], sized(path), varint(mode), varint(0), varint(nanoseconds)].concat()
}

pub(crate) fn file(path: &[u8]) -> Vec<u8> {
    file_of(path, &[])
}

/// A file with segments as they are: TOI, offset and length, or 0 and the length of a hole.
fn file_of(path: &[u8], segments: &[&[u64]]) -> Vec<u8> {
    let numbers = segments.iter().copied().flatten().flat_map(|&number| varint(number));
    let count = varint(segments.len() as u64);
    [entry(0, path, 0o644, 0), count, numbers.collect()].concat()
}

pub(crate) fn directory(path: &[u8]) -> Vec<u8> {
    entry(1, path, 0o755, 0)
}

pub(crate) fn link(path: &[u8], target: &[u8]) -> Vec<u8> {
    [vec![2], sized(path), sized(target)].concat()
}

/// A description of each contradiction, and its manifest.
pub(crate) fn contradictions() -> Vec<(&'static str, Vec<u8>)> {
    let of = |entries: &[Vec<u8>]| Raw::in_this_order(entries.to_vec());
    let change = |change: &dyn Fn(&mut Raw)| {
        let mut raw = Raw::of([]);
        change(&mut raw);
        raw
    };
    let counted = |count| move |raw: &mut Raw| raw.entries.count = count;
    let objects = |count| move |raw: &mut Raw| raw.objects.count = count;
    let half = u64::MAX / 2 + 1;
    let cases = [
        ("twice the same", of(&[file(b"a"), file(b"a")])),
        ("a file and a directory of one name", of(&[file(b"a"), directory(b"a")])),
        ("a link and a file of one name", of(&[link(b"a", b"/tmp"), file(b"a")])),
        ("in no order", of(&[file(b"b"), file(b"a")])),
        ("an order by bytes instead of components", of(&[file(b"a-b"), file(b"a/b")])),
        ("a file below a link upwards", of(&[link(b"a", b".."), file(b"a/b")])),
        ("a file below a link to the root", of(&[link(b"a", b"/"), file(b"a/tmp/b")])),
        ("a file below a link to the target", of(&[link(b"a", b"."), file(b"a/b")])),
        ("a directory below a link", of(&[link(b"a", b"/tmp"), directory(b"a/b")])),
        ("a link below a link", of(&[link(b"a", b"/tmp"), link(b"a/b", b"/etc")])),
        ("deep below a link", of(&[link(b"a", b"/"), file(b"a/b/c/d")])),
        ("a file below a file", of(&[file(b"a"), file(b"a/b")])),
        ("a directory below a file", of(&[file(b"a"), directory(b"a/b")])),
        ("a link to nothing", of(&[link(b"a", b"")])),
        ("a link with a zero byte", of(&[link(b"a", b"b\0c")])),
        ("a link of a page", of(&[link(b"a", &[b'x'; 4096])])),
        ("set-user-id", of(&[[entry(0, b"a", 0o4755, 0), varint(0)].concat()])),
        ("set-group-id", of(&[entry(1, b"a", 0o2755, 0)])),
        ("sticky", of(&[entry(1, b"a", 0o1777, 0)])),
        ("a mode with a file type", of(&[[entry(0, b"a", 0o100_644, 0), varint(0)].concat()])),
        ("a second of nanoseconds", of(&[entry(1, b"a", 0o755, 1_000_000_000)])),
        ("a device", of(&[entry(3, b"a", 0o666, 0)])),
        ("a kind that is none", of(&[entry(255, b"a", 0o666, 0)])),
        ("bytes of an object that is not there", of(&[file_of(b"a", &[&[1, 0, 9]])])),
        ("an empty hole", of(&[file_of(b"a", &[&[0, 0]])])),
        ("a hole longer than a file can be", of(&[file_of(b"a", &[&[0, half]])])),
        ("two holes in a row", of(&[file_of(b"a", &[&[0, 9], &[0, 9]])])),
        ("holes that are endless together", {
            of(&[file_of(b"a", &[&[0, half - 1]]), file_of(b"b", &[&[0, half - 1]])])
        }),
        ("no magic", change(&|raw| raw.magic = b"FONTMAP\x01")),
        ("another format", change(&|raw| raw.magic = b"FONTMAN\x02")),
        ("a number longer than it need be", change(&|raw| raw.version = vec![0x81, 0])),
        ("a number beyond 64 bits", change(&|raw| raw.version = vec![0xFF; 11])),
        ("a label that is no text", change(&|raw| raw.label = sized(b"\xff"))),
        ("a label longer than all", change(&|raw| raw.label = varint(1 << 40))),
        ("one entry more", change(&counted(2))),
        ("one entry fewer", change(&counted(0))),
        ("ten million entries", change(&counted(10_000_000))),
        ("2^32 entries", change(&counted(1 << 32))),
        ("2^64 - 1 entries", change(&counted(u64::MAX))),
        ("an object that is not there", change(&objects(1))),
        ("2^32 objects", change(&objects(1 << 32))),
        ("2^64 - 1 objects", change(&objects(u64::MAX))),
        ("bytes behind the end", change(&|raw| raw.end = b"x")),
    ];
    let mut cases: Vec<_> = cases.into_iter().map(|(what, raw)| (what, raw.emit())).collect();
    cases.push(("nothing", Vec::from(*b"F")));
    cases
}

/// Manifests of megabytes.
pub(crate) fn huge(kind: &str) -> Vec<u8> {
    let (count, last) = match kind {
        "ten million" => (10_000_000, None),
        "more than a million" => (1_000_001, None),
        // Before all others in the order of paths.
        "a million and a lie" => (999_999, Some(link(b"!", b"t"))),
        _ => unreachable!("{kind}"),
    };
    let name = |number: u32| -> [u8; 4] {
        let digit = |place: u32| b'0' + (number / 64_u32.pow(place) % 64) as u8;
        // The 64 characters from 0 on contain no slash.
        [digit(3), digit(2), digit(1), digit(0)]
    };
    let mut entries: Vec<u8> = Vec::with_capacity(count as usize * 8);
    (0..count).for_each(|number| entries.extend(link(&name(number), b"t")));
    entries.extend(last.clone().unwrap_or_default());
    let mut raw = Raw::in_this_order(Vec::new());
    raw.entries = Counted { count: u64::from(count) + u64::from(last.is_some()), bytes: entries };
    raw.emit()
}
