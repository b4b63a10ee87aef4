//! FCAST: compound objects and carousel instances.

use crate::{flips, hex, truncations};
use fontana_wire::{
    CarouselInstance, Compound, CompoundHeader, CompoundMetadata, ContentEncoding, Equivalence,
    FcastError, FdtContentEncoding, InternetChecksum, Slice, Toi,
};
use proptest::prelude::*;
use std::io::Write;

const VECTORS: &str = include_str!("../data/fcast.txt");

fn vector(name: &str) -> Vec<u8> {
    let line = VECTORS.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
    hex(line.rsplit(' ').next().unwrap())
}

fn named(location: &str) -> CompoundMetadata {
    CompoundMetadata { content_location: Some(location.to_owned()), ..CompoundMetadata::default() }
}

/// Metadata with all fields of an object.
pub(crate) fn full() -> CompoundMetadata {
    CompoundMetadata {
        content_location: Some("a/b%20c".to_owned()),
        content_type: Some("text/plain".to_owned()),
        content_length: Some(u64::MAX),
        content_encoding: Some(FdtContentEncoding::Known(ContentEncoding::Gzip)),
        sha1: Some([1; 20]),
        sha256: Some([2; 32]),
        slice: Some(Slice { count: u32::MAX, index: u32::MAX - 1, offset: u64::MAX }),
        ..CompoundMetadata::default()
    }
}

/// A header made by the test, with a right checksum over the header alone.
fn header(flags: u8, encoding: u8, metadata: &[u8]) -> Vec<u8> {
    let length = (8 + metadata.len() as u32).to_be_bytes();
    let mut header = [&[flags, encoding, 0, 0], &length[..], metadata].concat();
    let mut sum = InternetChecksum::default();
    sum.add(&header);
    header[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    header
}

fn read(text: &str) -> Result<CompoundMetadata, FcastError> {
    Compound::parse(&header(0, 0, text.as_bytes())).map(|c| c.header.metadata().clone())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn toi(range: std::ops::RangeInclusive<u128>) -> std::ops::RangeInclusive<Toi> {
    Toi(*range.start())..=Toi(*range.end())
}

fn list(text: &str) -> Result<CarouselInstance, FcastError> {
    CarouselInstance::parse(&CompoundMetadata::default(), text.as_bytes())
}

#[test]
fn the_examples_of_the_rfc_are_read_and_written() {
    let object = vector("rfc6968-A.1-metadata+hello");
    let compound = Compound::parse(&object).unwrap();
    assert_eq!(compound.header, CompoundHeader::Object(named("example_1.txt")));
    // 8 bytes, 33 of metadata (the appendix on NORM says 32), 3 of padding.
    assert_eq!((compound.data_offset, &object[44..]), (44, &b"hello world\n"[..]));
    assert_eq!(compound.header.with_data(b"hello world\n"), object);

    let descriptor = vector("rfc6968-A.2-CID");
    let compound = Compound::parse(&descriptor).unwrap();
    let CompoundHeader::Descriptor(metadata) = &compound.header else { panic!("no descriptor") };
    let instance = CarouselInstance::parse(metadata, &descriptor[compound.data_offset..]).unwrap();
    let objects = [1..=1, 2..=2, 3..=3, 100..=104, 200..=203, 299..=299].map(toi).to_vec();
    let expected = CarouselInstance { is_complete: true, objects, ..CarouselInstance::default() };
    assert_eq!(instance, expected);
    assert_eq!(instance.emit(), descriptor);
}

#[test]
fn a_checksum_over_the_header_alone_says_nothing_of_the_data() {
    let mut object = vector("header-only-checksum");
    let compound = Compound::parse(&object).unwrap();
    assert_eq!((compound.sum, compound.data_offset), (None, 44));
    *object.last_mut().unwrap() ^= 1;
    assert!(Compound::parse(&object).is_ok());
    object[20] ^= 1;
    assert_eq!(Compound::parse(&object), Err(FcastError::Checksum));
}

#[test]
fn an_empty_instance_is_legal() {
    let object = vector("empty-CID");
    let compound = Compound::parse(&object).unwrap();
    let CompoundHeader::Descriptor(metadata) = &compound.header else { panic!("no descriptor") };
    let instance = CarouselInstance::parse(metadata, &[]).unwrap();
    assert_eq!(instance, CarouselInstance { id: Some(7), ..CarouselInstance::default() });
    assert_eq!(compound.data_offset, object.len(), "no padding without data");
}

#[test]
fn a_global_checksum_detects_every_flipped_bit() {
    let object = CompoundHeader::Object(full()).with_data(b"some bytes");
    for flipped in flips(&object) {
        // The reserved bits are ignored, but part of the checksum.
        assert!(Compound::parse(&flipped).is_err() || flipped[0] & 0x02 == 0);
    }
    for short in truncations(&object) {
        assert!(Compound::parse(short).is_err());
    }
}

#[test]
fn all_metadata_are_read_back() {
    for metadata in [CompoundMetadata::default(), named("x"), full()] {
        for data in [&b""[..], b"x", b"four"] {
            let header = CompoundHeader::Object(metadata.clone());
            let object = header.with_data(data);
            let compound = Compound::parse(&object).unwrap();
            assert_eq!((compound.header, &object[compound.data_offset..]), (header, data));
        }
    }
}

#[test]
fn a_value_cannot_smuggle_in_another_entry() {
    let object = CompoundHeader::Object(named("x\r\nContent-Length: 5")).with_data(b"");
    let metadata = Compound::parse(&object).unwrap().header.metadata().clone();
    assert_eq!(metadata, named("x  Content-Length: 5"));
}

#[test]
fn entries_come_in_any_order_and_case_and_unknown_ones_are_skipped() {
    let text = "content-length:  7\r\nX-Other: y\nCONTENT-LOCATION:\tname \r\n\r\n";
    let expected = CompoundMetadata { content_length: Some(7), ..named("name") };
    assert_eq!(read(text), Ok(expected));
    assert_eq!(read("Content-Location: name\0"), Ok(named("name")));
}

#[test]
fn entries_that_contradict_themselves_are_refused() {
    let refused = [
        "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: \r\n",
        "no colon\r\n",
        "Content-Location: a\rb\r\n",
        "Content-Location: a\u{1b}[2J\r\n",
        "Fcast-CID-Complete: 2\r\n",
        "Fcast-Obj-Digest-SHA256: AAAA\r\n",
        "Fcast-Obj-Digest-SHA1: ?\r\n",
        "Fcast-Obj-Slice-Nb: 2\r\n",
        "Fcast-Obj-Slice-Idx: 0\r\nFcast-Obj-Slice-Offset: 0\r\n",
        "Fcast-Obj-Slice-Nb: 2\r\nFcast-Obj-Slice-Idx: 2\r\nFcast-Obj-Slice-Offset: 9\r\n",
        "Fcast-Obj-Slice-Nb: 0\r\nFcast-Obj-Slice-Idx: 0\r\nFcast-Obj-Slice-Offset: 0\r\n",
        "Fcast-Obj-Slice-Nb: 4294967296\r\n",
    ];
    for text in refused {
        let error = read(text).unwrap_err();
        assert!(!error.to_string().contains(char::is_control), "{text:?}: {error}");
    }
    // One slice of one is the whole file.
    assert_eq!(read("Fcast-Obj-Slice-Nb: 1\r\n").unwrap().slice, None);
}

#[test]
fn other_versions_and_formats_are_refused() {
    assert_eq!(Compound::parse(&header(0x20, 0, b"")), Err(FcastError::Version(1)));
    assert_eq!(Compound::parse(&header(0, 0x10, b"")), Err(FcastError::Format(1)));
    assert_eq!(Compound::parse(&header(0, 0x02, b"")), Err(FcastError::Encoding(2)));
    // Reserved bits are ignored.
    assert!(Compound::parse(&header(0x1C, 0, b"")).is_ok());
    assert_eq!(Compound::parse(&header(0, 0, b"a:\xFF")), Err(FcastError::Utf8));
}

#[test]
fn compressed_metadata_are_read_and_bombs_are_not() {
    let text = "Content-Location: name\r\n";
    let with = |text: &str| Compound::parse(&header(0, 1, &gzip(text.as_bytes())));
    assert_eq!(*with(text).unwrap().header.metadata(), named("name"));
    assert!(matches!(with(&" ".repeat(1 << 24)), Err(FcastError::ContentEncoding { .. })));
    assert!(Compound::parse(&header(0, 1, b"")).is_ok());
    assert!(Compound::parse(&header(0, 1, b"not gzip")).is_err());
}

#[test]
fn a_header_has_a_length_that_fits_the_object_and_the_limit() {
    let size = |length: u32, object_size| {
        let start = [&[0, 0, 0, 0], &length.to_be_bytes()[..]].concat();
        Compound::header_size(&start, object_size)
    };
    assert_eq!(size(7, 100), Err(FcastError::HeaderLength(7)));
    assert_eq!(size(8, 8), Ok(8));
    assert!(matches!(size(9, 8), Err(FcastError::Truncated { .. })));
    assert_eq!(size(9, 9), Ok(9), "without data there is no padding");
    assert!(matches!(size(9, 11), Err(FcastError::Truncated { expected: 12, actual: 11 })));
    assert_eq!(size(9, 12), Ok(12));
    let longest = Compound::MAX_HEADER_SIZE;
    assert_eq!(size(longest as u32, u64::MAX), Ok(longest));
    for length in [longest as u32 + 1, u32::MAX] {
        assert!(matches!(size(length, u64::MAX), Err(FcastError::Limit { .. })));
    }
    assert!(Compound::header_size(&[0; 7], 100).is_err());
}

#[test]
fn the_list_of_the_rfc_has_ranges_and_equivalences() {
    let text = "97,98,99,(100=10/2),(101=11/2),(102=12/2),(103=13/2),(104=14/2)";
    let instance = list(text).unwrap();
    let equivalence =
        |n: u128| Equivalence { toi: Toi(100 + n), first_toi: Toi(10 + n), first_instance: 2 };
    assert_eq!(instance.equivalences, (0..5).map(equivalence).collect::<Vec<_>>());
    let short = list(&text.replace("97,98,99", "97-99")).unwrap();
    for n in 90..110 {
        assert_eq!(instance.lists(Toi(n)), (97..=104).contains(&n), "{n}");
        assert_eq!(short.lists(Toi(n)), instance.lists(Toi(n)));
    }
    // An object may be listed under its new number and as equivalent.
    assert!(list("97-104,(100=10/2)").is_ok());
}

#[test]
fn a_list_that_wraps_is_sorted() {
    let text = format!("{}-{},0-4", Toi::MAX.0 - 1, Toi::MAX.0);
    assert_eq!(list(&text).unwrap().objects, [toi(0..=4), toi(Toi::MAX.0 - 1..=Toi::MAX.0)]);
    assert!(list(&format!("{}", Toi::MAX.0 + 1)).is_err());
}

#[test]
fn invalid_lists_are_refused() {
    for text in [
        ",",
        "1,",
        ",1",
        "1,,2",
        " 1",
        "1 ",
        "+1",
        "-1",
        "1-",
        "1-1",
        "2-1",
        "1-2-3",
        "a",
        "(1=2)",
        "(1=2/)",
        "(1/2=3)",
        "(1=2/3",
        "1=2/3",
        "()",
        "(1=2/18446744073709551616)",
        "1\n",
        "0x1",
    ] {
        assert!(matches!(list(text), Err(FcastError::Element { .. })), "{text:?}");
    }
    for text in ["1,1", "1-5,5", "5,1-9", "1-5,3-4", "(1=2/3),(1=4/5)"] {
        assert!(matches!(list(text), Err(FcastError::RepeatedToi(_))), "{text:?}");
    }
    assert_eq!(list("1\0").unwrap().objects, [toi(1..=1)]);
}

#[test]
fn a_list_with_more_elements_than_the_limit_is_refused() {
    let of = |count: usize| {
        let all: Vec<_> = (0..count).map(|n| (2 * n).to_string()).collect();
        list(&all.join(","))
    };
    assert_eq!(of(CarouselInstance::MAX_ELEMENTS).unwrap().objects.len(), 100_000);
    assert!(matches!(of(CarouselInstance::MAX_ELEMENTS + 1), Err(FcastError::Limit { .. })));
    let blanks = vec![b' '; Compound::MAX_LIST_SIZE + 1];
    let long = CarouselInstance::parse(&CompoundMetadata::default(), &blanks);
    assert!(matches!(long, Err(FcastError::Limit { .. })));
}

#[test]
fn a_compressed_list_is_read_and_a_bomb_is_not() {
    let compressed = |encoding, bytes: &[u8]| {
        let metadata =
            CompoundMetadata { content_encoding: Some(encoding), ..CompoundMetadata::default() };
        CarouselInstance::parse(&metadata, bytes)
    };
    let known = || FdtContentEncoding::Known(ContentEncoding::Gzip);
    let instance = compressed(known(), &gzip(b"1-3")).unwrap();
    assert_eq!(instance.objects, [toi(1..=3)]);
    assert_eq!(compressed(known(), b"").unwrap(), CarouselInstance::default());
    for bytes in [gzip(&vec![b'1'; 1 << 24]), b"1-3".to_vec()] {
        assert!(matches!(compressed(known(), &bytes), Err(FcastError::ContentEncoding { .. })));
    }
    assert!(compressed(FdtContentEncoding::Unknown("br".to_owned()), b"1-3").is_err());
}

#[test]
fn a_range_of_all_numbers_costs_no_more_than_one_number() {
    let instance = list(&format!("0-{}", Toi::MAX.0)).unwrap();
    assert!(instance.lists(Toi(0)) && instance.lists(Toi::MAX));
}

/// RFC 1071 verbatim: sixteen bits at a time, the last byte padded.
fn reference(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let sum = bytes.chunks(2).map(word).fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xFFFF) + (sum >> 16)
    });
    !(sum as u16)
}

proptest! {
    #[test]
    fn the_checksum_is_that_of_rfc_1071_however_the_bytes_come(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
    ) {
        let whole = pieces.concat();
        let (mut at_once, mut in_pieces) = (InternetChecksum::default(), InternetChecksum::default());
        let mut joined = InternetChecksum::default();
        at_once.add(&whole);
        for piece in &pieces {
            in_pieces.add(piece);
            let mut sum = InternetChecksum::default();
            sum.add(piece);
            joined = joined.followed_by(sum);
        }
        for sum in [at_once, in_pieces, joined] {
            prop_assert_eq!(sum.checksum(), reference(&whole));
        }
    }

    #[test]
    fn instances_are_read_as_they_were_written(
        is_complete: bool,
        id: Option<u64>,
        mut numbers in prop::collection::btree_set(0..=Toi::MAX.0, 0..20),
        equivalences in prop::collection::btree_map(0..=Toi::MAX.0, (0..=Toi::MAX.0, any::<u64>()), 0..5),
    ) {
        let mut objects = Vec::new();
        while let Some(first) = numbers.pop_first() {
            let last = if first % 2 == 0 { numbers.pop_first() } else { None };
            objects.push(toi(first..=last.unwrap_or(first)));
        }
        let equivalences = equivalences
            .into_iter()
            .map(|(toi, (first, first_instance))| Equivalence {
                toi: Toi(toi),
                first_toi: Toi(first),
                first_instance,
            })
            .collect();
        let instance = CarouselInstance { is_complete, id, objects, equivalences };
        let object = instance.emit();
        let compound = Compound::parse(&object).unwrap();
        let read =
            CarouselInstance::parse(compound.header.metadata(), &object[compound.data_offset..]);
        prop_assert_eq!(read, Ok(instance));
    }
}
