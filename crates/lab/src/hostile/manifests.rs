//! Manifests and tables of a hostile publisher, whose key or hash the receiver trusts: only the
//! checks of names and numbers refuse them.

use super::report::BenchError;
use super::world::{ReceiverHost, SENDER, SYMBOL_BYTES, TSI, at};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{EncodingId, Esi, FecScheme, Oti, Sbn};
use fontana_proto::{Expectation, MetadataMode, SplitMix64};
use fontana_wire::{
    CongestionControl, ContentEncoding, ContentKind, Entry, FdtExtension, FluteVersion,
    HeadRecords, HeaderFields, InstanceId, Manifest, ManifestLimits, ObjectRef, SessionHead, Toi,
    emit_payload_id, encode, manifest_hash,
};
use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::num::NonZeroU64;

/// Makes the manifest of a class.
pub(super) type Make = fn(&mut SplitMix64) -> Vec<u8>;

/// What variants did to their receivers.
#[derive(Default)]
pub(super) struct Reception {
    pub(super) variants: u64,
    pub(super) log_bytes: u64,
    /// A manifest that must not be accepted was.
    pub(super) is_harmed: bool,
}

/// Sends `variants` manifests, each to a receiver that expects it.
pub(super) fn receive(
    make: Make,
    variants: u32,
    memory: usize,
    seed: u64,
) -> Result<Reception, BenchError> {
    let mut random = SplitMix64::new(seed, 301);
    let mut reception = Reception::default();
    for _ in 0..variants {
        let manifest = make(&mut random);
        let hash = manifest_hash(&manifest);
        let expectation =
            Expectation { tsi: Some(TSI), manifest: Some(hash), ..Expectation::default() };
        let mut receiver = ReceiverHost::new(expectation, MetadataMode::Manifest, memory, None);
        receiver.handle_timeout(at(0))?;
        for mut packet in packets(&manifest) {
            receiver.handle_datagram(at(1), SENDER, &mut packet)?;
        }
        receiver.handle_timeout(at(2))?;
        reception.variants += 1;
        reception.log_bytes = reception.log_bytes.max(receiver.log_bytes);
        reception.is_harmed |= receiver.is_accepted && !is_harmless(&manifest);
    }
    Ok(reception)
}

/// Head and manifest of a session.
fn packets(manifest: &[u8]) -> Vec<Vec<u8>> {
    let symbols = manifest.len().div_ceil(SYMBOL_BYTES.into()).max(1) as u32;
    let oti = |length: usize, symbols: u32| Oti {
        transfer_length: length as u64,
        symbol_size: SYMBOL_BYTES,
        scheme: FecScheme::NoCode(NoCode { max_source_block_length: symbols }),
    };
    let manifest_oti = oti(manifest.len(), symbols);
    let head = SessionHead {
        instance: InstanceId([9; 16]),
        manifest_version: 1,
        kind: ContentKind::Manifest,
        manifest: ObjectRef {
            toi: Toi::MANIFEST.0 as u32,
            oti: manifest_oti,
            hash: manifest_hash(manifest),
        },
        expires_unix_seconds: None,
        rate_bytes_per_second: NonZeroU64::new(1_000_000),
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    };
    let mut head = head.emit(None);
    head.resize(SYMBOL_BYTES.into(), 0);
    let fields = |toi: Toi| HeaderFields::new(TSI, Some(toi));
    let mut packets = vec![packet(&fields(Toi::HEAD), oti(head.len(), 1), 0, &head)];
    for (esi, symbol) in (0..).zip(manifest.chunks(SYMBOL_BYTES.into())) {
        packets.push(packet(&fields(Toi::MANIFEST), manifest_oti, esi, symbol));
    }
    packets
}

fn packet(fields: &HeaderFields, oti: Oti, esi: u32, symbol: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    HeaderFields { codepoint: EncodingId::NO_CODE.0, fti: Some(oti), ..*fields }.emit(&mut packet);
    emit_payload_id(EncodingId::NO_CODE, Sbn(0), Esi(esi), &mut packet);
    packet.extend(symbol);
    packet
}

/// Whether a manifest that was accepted leads nowhere: checked on its parts, not by the parser's
/// rules.
fn is_harmless(manifest: &[u8]) -> bool {
    let Ok(manifest) = Manifest::parse(manifest, &ManifestLimits::default()) else { return false };
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    let mut without_children: BTreeSet<&[u8]> = BTreeSet::new();
    manifest.entries().iter().all(|entry| {
        let path = entry.path().as_bytes();
        let parents =
            path.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(at, _)| &path[..at]);
        let is_below_a_link = parents.into_iter().any(|parent| without_children.contains(parent));
        let mode = match entry {
            Entry::File(file) => file.metadata.mode,
            Entry::Directory(directory) => directory.metadata.mode,
            Entry::Symlink(_) => 0,
        };
        if !matches!(entry, Entry::Directory(_)) {
            without_children.insert(path);
        }
        let components = || path.split(|&byte| byte == b'/');
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
        let shown = entry.path().to_string();
        seen.insert(path)
            && !is_below_a_link
            && mode <= 0o777
            && components().all(is_name)
            && !shown.chars().any(is_dangerous_to_show)
    })
}

/// Control characters, and those that change the direction of text.
fn is_dangerous_to_show(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A manifest in pieces.
struct Draft {
    objects: Vec<Vec<u8>>,
    entries: Vec<Vec<u8>>,
    /// What is claimed instead of the number of entries.
    claimed: Option<u64>,
}

impl Draft {
    /// One with these entries and an honest one, in any order or the right one.
    fn of(mut entries: Vec<Vec<u8>>, random: &mut SplitMix64) -> Self {
        entries.push(entry(0, b"honest", 0o644, &[0]));
        if random.below(8) > 0 {
            entries.sort_by(|a, b| components(a).cmp(&components(b)));
        }
        Self { objects: Vec::new(), entries, claimed: None }
    }

    fn emit(&self, random: &mut SplitMix64) -> Vec<u8> {
        let mut out = b"FONTMAN\x01".to_vec();
        varint(1, &mut out);
        sized(b"gift", &mut out);
        varint(self.objects.len() as u64, &mut out);
        out.extend(self.objects.iter().flatten());
        varint(self.claimed.unwrap_or(self.entries.len() as u64), &mut out);
        out.extend(self.entries.iter().flatten());
        // Some are damaged as well.
        if random.below(16) == 0 {
            let at = random.below(out.len() as u32) as usize;
            if let Some(byte) = out.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        out
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend(bytes);
}

/// An entry: kind, path, mode, time, then numbers.
fn entry(kind: u8, path: &[u8], mode: u64, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![kind];
    sized(path, &mut out);
    for &number in [mode, 0, 0].iter().chain(numbers) {
        varint(number, &mut out);
    }
    out
}

fn link(path: &[u8], target: &[u8]) -> Vec<u8> {
    let mut out = vec![2];
    sized(path, &mut out);
    sized(target, &mut out);
    out
}

/// The components of an entry's path, if its length has one byte.
fn components(entry: &[u8]) -> Vec<&[u8]> {
    let length = entry.get(1).map_or(0, |&length| usize::from(length));
    let path = entry.get(2..2 + length).unwrap_or_default();
    path.split(|&byte| byte == b'/').collect()
}

fn one_of<'a>(random: &mut SplitMix64, words: &[&'a [u8]]) -> &'a [u8] {
    words.get(random.below(words.len() as u32) as usize).copied().unwrap_or_default()
}

/// Several words, joined by slashes.
fn path_of(random: &mut SplitMix64, words: &[&[u8]]) -> Vec<u8> {
    let count = 1 + random.below(4);
    let parts: Vec<&[u8]> = (0..count).map(|_| one_of(random, words)).collect();
    parts.join(&b'/')
}

/// An entry of any kind with this path.
fn any_entry(random: &mut SplitMix64, path: &[u8]) -> Vec<u8> {
    match random.below(3) {
        0 => entry(0, path, 0o644, &[0]),
        1 => entry(1, path, 0o755, &[]),
        _ => link(path, b"elsewhere"),
    }
}

pub(super) fn hostile_names(random: &mut SplitMix64) -> Vec<u8> {
    const WORDS: [&[u8]; 22] = [
        b"..",
        b".",
        b"",
        b"/",
        b"a",
        b"..\\x",
        b"C:",
        b"CON",
        b"nul.txt",
        b"LPT1.a",
        b"a ",
        b"a.",
        b"a\0b",
        b"\0",
        b"...",
        b".fontana-flute-10-0-0-7-5",
        b"~root",
        b"-rf",
        b"\xc0\xae\xc0\xae",
        b"\xef\xbc\x8e\xef\xbc\x8e",
        b"desktop.ini",
        b"a::$DATA",
    ];
    let mut path = path_of(random, &WORDS);
    match random.below(12) {
        0 => path = vec![b'x'; 200 + random.below(4_000) as usize],
        1 => path = vec!["d"; 20 + random.below(400) as usize].join("/").into_bytes(),
        _ => {}
    }
    let entries = vec![any_entry(random, &path)];
    Draft::of(entries, random).emit(random)
}

pub(super) fn endless_manifests(random: &mut SplitMix64) -> Vec<u8> {
    let count = random.below(40);
    let entries = (0..count).map(|number| entry(0, format!("{number:02}").as_bytes(), 0o644, &[0]));
    let entries = entries.collect();
    let mut draft = Draft::of(entries, random);
    let claims = [10_000_000, 1 << 32, u64::MAX, 1_000_001, u64::from(count) + 2];
    draft.claimed = claims.get(random.below(6) as usize).copied();
    draft.emit(random)
}

pub(super) fn repeated_paths(random: &mut SplitMix64) -> Vec<u8> {
    const WORDS: [&[u8]; 3] = [b"a", b"b", b"a-b"];
    let paths: Vec<_> = (0..2 + random.below(6)).map(|_| path_of(random, &WORDS)).collect();
    let entries = paths.iter().map(|path| any_entry(random, path)).collect();
    Draft::of(entries, random).emit(random)
}

pub(super) fn names_that_differ_in_case(random: &mut SplitMix64) -> Vec<u8> {
    const WORDS: [&[u8]; 8] =
        [b"A", b"a", b"\xc3\xa9", b"e\xcc\x81", b"\xc3\x89", b"SS", b"\xc3\x9f", b"\xe1\xba\x9e"];
    let paths: Vec<_> = (0..2 + random.below(4)).map(|_| path_of(random, &WORDS)).collect();
    let entries = paths.iter().map(|path| any_entry(random, path)).collect();
    Draft::of(entries, random).emit(random)
}

pub(super) fn links_and_what_is_below(random: &mut SplitMix64) -> Vec<u8> {
    const TARGETS: [&[u8]; 7] = [b"/", b"..", b".", b"/tmp", b"../../x", b"", b"a\0b"];
    const BELOW: [&[u8]; 4] = [b"b", b"b/c", b"tmp/x", b"etc/passwd"];
    let target = one_of(random, &TARGETS);
    let below = [b"a/", one_of(random, &BELOW)].concat();
    let entries = vec![link(b"a", target), any_entry(random, &below)];
    Draft::of(entries, random).emit(random)
}

pub(super) fn hard_links(random: &mut SplitMix64) -> Vec<u8> {
    // The format has no hard links: a kind beyond the last one, with a target outside.
    const TARGETS: [&[u8]; 3] = [b"/etc/passwd", b"../secret", b"/proc/self/mem"];
    let mut hard = link(b"a", one_of(random, &TARGETS));
    if let Some(kind) = hard.first_mut() {
        *kind = 3 + random.below(253) as u8;
    }
    Draft::of(vec![hard], random).emit(random)
}

pub(super) fn devices(random: &mut SplitMix64) -> Vec<u8> {
    // File types in the mode (character and block device, FIFO, socket), and unknown kinds.
    const TYPES: [u64; 5] = [0o020_000, 0o060_000, 0o010_000, 0o140_000, 0o100_000];
    let kind = random.below(8) as u8;
    let at = random.below(TYPES.len() as u32) as usize;
    let mode = TYPES.get(at).copied().unwrap_or_default() | u64::from(random.below(0o1000));
    let special = entry(kind, b"a", mode, &[1, 3]);
    Draft::of(vec![special], random).emit(random)
}

pub(super) fn special_modes(random: &mut SplitMix64) -> Vec<u8> {
    let mode = match random.below(4) {
        0 => 0o4755,
        1 => 0o2755,
        2 => 0o1777,
        _ => u64::from(random.next_u64() as u32),
    };
    let kind = random.below(2) as u8;
    let special = entry(kind, b"a", mode, if kind == 0 { &[0] } else { &[] });
    Draft::of(vec![special], random).emit(random)
}

pub(super) fn contradictory_segments(random: &mut SplitMix64) -> Vec<u8> {
    let number = |random: &mut SplitMix64| match random.below(6) {
        0 => 0,
        1 => 1,
        2 => 4_096,
        3 => u64::MAX,
        4 => i64::MAX as u64,
        _ => random.next_u64() >> random.below(64),
    };
    let mut object = vec![1, EncodingId::NO_CODE.0];
    let length = if random.below(4) == 0 { number(random) } else { 8_192 };
    object.extend(length.to_be_bytes());
    object.extend(1_024_u16.to_be_bytes());
    object.extend(8_u32.to_be_bytes());
    object.push(0);
    object.extend([7; 32]);
    let count = 1 + random.below(5);
    let mut segments = vec![u64::from(count)];
    for _ in 0..count {
        let toi = u64::from(random.below(3));
        segments.push(toi);
        if toi > 0 {
            segments.push(number(random));
        }
        segments.push(number(random));
    }
    let entries = vec![entry(0, b"a", 0o644, &segments)];
    let mut draft = Draft::of(entries, random);
    draft.objects.push(object);
    draft.emit(random)
}

pub(super) fn names_that_control_terminals(random: &mut SplitMix64) -> Vec<u8> {
    const WORDS: [&[u8]; 12] = [
        b"\n",
        b"\r",
        b"a\tb",
        b"\x1b[2J",
        b"\x1b]0;title\x07",
        b"\x7f",
        b"\x08",
        b"\xc2\x9b2J",
        b"\xe2\x80\xaegpj.exe",
        b"\xe2\x81\xa6x",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
    ];
    let mut path = path_of(random, &WORDS);
    if random.below(2) == 0 {
        path.extend((0..1 + random.below(8)).map(|_| (random.next_u64() as u8).max(1)));
    }
    let entries = vec![any_entry(random, &path)];
    Draft::of(entries, random).emit(random)
}

/// Sends `variants` compressed file delivery tables that are small and unpack to megabytes, each to
/// a receiver of plain FLUTE.
pub(super) fn receive_tables(
    variants: u32,
    memory: usize,
    seed: u64,
) -> Result<Reception, BenchError> {
    let mut random = SplitMix64::new(seed, 302);
    let bombs = bombs()?;
    let mut reception = Reception::default();
    for number in 0..variants {
        let at_bomb = random.below(bombs.len() as u32) as usize;
        let Some((encoding, bomb)) = bombs.get(at_bomb) else { continue };
        let mut table = bomb.clone();
        if number as usize >= bombs.len() {
            let at = random.below(table.len() as u32) as usize;
            match random.below(3) {
                0 => table.truncate(at + 1),
                _ => table.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 4),
            }
        }
        let expectation = Expectation { tsi: Some(TSI), ..Expectation::default() };
        let mut receiver = ReceiverHost::new(expectation, MetadataMode::Flute, memory, None);
        receiver.handle_timeout(at(0))?;
        let symbols = table.len().div_ceil(SYMBOL_BYTES.into()) as u32;
        let oti = Oti {
            transfer_length: table.len() as u64,
            symbol_size: SYMBOL_BYTES,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: symbols }),
        };
        let version = FluteVersion::V2.number();
        let instance_id = number & FdtExtension::MAX_INSTANCE_ID;
        let fields = HeaderFields {
            fdt: Some(FdtExtension { version, instance_id }),
            content_encoding: Some(*encoding),
            ..HeaderFields::new(TSI, Some(Toi::FDT))
        };
        for (esi, symbol) in (0..).zip(table.chunks(SYMBOL_BYTES.into())) {
            let mut packet = packet(&fields, oti, esi, symbol);
            receiver.handle_datagram(at(1), SENDER, &mut packet)?;
        }
        receiver.handle_timeout(at(2))?;
        reception.variants += 1;
        reception.log_bytes = reception.log_bytes.max(receiver.log_bytes);
    }
    Ok(reception)
}

/// Compressed tables of 1 to 4 MiB.
fn bombs() -> Result<Vec<(ContentEncoding, Vec<u8>)>, BenchError> {
    const START: &[u8] = b"<?xml version=\"1.0\"?><FDT-Instance Expires=\"4000000000\">";
    const LINE: &[u8] = b"<File TOI=\"1\" Content-Location=\"a\"/>";
    let mut bombs = Vec::new();
    for encoding in [ContentEncoding::Zlib, ContentEncoding::Deflate, ContentEncoding::Gzip] {
        for filler in [&b" "[..], LINE] {
            for size in [1_u64 << 20, 4 << 20] {
                let text = filler.repeat((size / filler.len() as u64) as usize);
                let mut table = Vec::new();
                encode(encoding, &mut Cursor::new(START).chain(Cursor::new(text)), &mut table)
                    .map_err(|_| BenchError("a table cannot be compressed"))?;
                bombs.push((encoding, table));
            }
        }
    }
    Ok(bombs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_draft_is_accepted_and_a_name_that_leads_elsewhere_is_not() {
        let receive_one = |make: Make| receive(make, 1, 32 << 20, 1).unwrap();
        let honest = |_: &mut SplitMix64| {
            let entries = vec![entry(0, b"honest", 0o644, &[0])];
            let draft = Draft { objects: Vec::new(), entries, claimed: None };
            let mut quiet = SplitMix64::new(1, 1);
            while quiet.clone().below(16) == 0 {
                quiet.next_u64();
            }
            draft.emit(&mut quiet)
        };
        assert!(is_harmless(&honest(&mut SplitMix64::new(1, 1))));
        let expectation = |manifest: &[u8]| Expectation {
            manifest: Some(manifest_hash(manifest)),
            ..Expectation::default()
        };
        let manifest = honest(&mut SplitMix64::new(1, 1));
        let mut receiver =
            ReceiverHost::new(expectation(&manifest), MetadataMode::Manifest, 32 << 20, None);
        receiver.handle_timeout(at(0)).unwrap();
        for mut packet in packets(&manifest) {
            receiver.handle_datagram(at(1), SENDER, &mut packet).unwrap();
        }
        assert!(receiver.is_accepted);
        assert!(!receive_one(links_and_what_is_below).is_harmed);
    }
}
