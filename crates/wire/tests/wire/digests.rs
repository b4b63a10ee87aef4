//! Lists of symbol digests: an independent vector, round trips, and what is refused.

use crate::{flips, hex, truncations};
use fontana_fec::{Esi, Sbn};
use fontana_wire::{
    DigestGroup, DigestKey, DigestList, DigestListError, GroupNumber, HeadRecords, InstanceId,
    SecretKey, SymbolDigest, Toi,
};

pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed(&[9; 32])
}

pub(crate) fn instance() -> InstanceId {
    InstanceId(std::array::from_fn(|i| i as u8))
}

fn digests(count: u32) -> Vec<SymbolDigest> {
    let digest =
        |esi| SymbolDigest::of(Toi(1), Sbn(0), Esi(esi), format!("symbol {esi}").as_bytes());
    (0..count).map(digest).collect()
}

/// Lists of so many symbols in all, `per_list` in each.
pub(crate) fn lists(symbols: u32, per_list: usize) -> Vec<Vec<u8>> {
    let number = GroupNumber(3);
    DigestGroup::new(&key(), instance(), number, &digests(symbols), per_list).into_lists()
}

/// Made with hashlib of Python 3.13 and cryptography 48.
#[test]
fn lists_are_those_of_another_implementation() {
    let digest = digests(5)[4];
    assert_eq!(digest.0.as_slice(), hex("c031e59e46eff538508bf566"));
    let start = "00 01 02 03 04 05 06 07 00 00 00 00 00 00 00 03 03";
    let signature = "19 9a 91 1e f2 48 cc bb 17 b6 c9 72 96 a7 f4 13 ea df 81 b5 d5 43 29 d6 9b 75
        0d 15 11 c2 e0 10 52 63 9d 48 af 35 fa 2d b4 ec 10 af f5 0e ef 53 77 a9 ff 29 38 aa fe 00
        50 37 81 f7 ad ae 17 09";
    let ends = [
        "97 d5 ea e1 7a 79 d0 58 e6 b8 49 b2 8c 9a 3e 03 5a e4 5f b4 e2 07 66 e6
         cf a7 1e 49 72 e4 37 1d 33 34 f9 16 a7 dc 9c d6 db 40 70 df e6 20 b2 9d",
        "91 72 19 8e 21 bf dd ed 99 47 cc f3 8c 9a 3e 03 5a e4 5f b4 e2 07 66 e6
         37 3e b7 62 f1 4e 37 a8 6e 77 a7 48 6a a2 a0 10 35 c3 1a 50 09 3c 52 c0",
        "00 00 00 00 00 00 00 00 00 00 00 00 6c f1 d0 4a fb 67 df 1c 2e 62 32 8c
         c0 31 e5 9e 46 ef f5 38 50 8b f5 66",
    ];
    let lists = lists(5, 2);
    assert_eq!(lists.len(), ends.len());
    for (index, (list, end)) in lists.iter().zip(ends).enumerate() {
        assert_eq!(*list, hex(&format!("{start} {index:02x} {signature} {end}")), "{index}");
    }
}

#[test]
fn every_list_proves_itself() {
    let public = key().public_key();
    for (symbols, per_list, count) in [(1, 96, 1), (97, 96, 2), (200, 5, 40), (6_144, 96, 64)] {
        let lists = lists(symbols, per_list);
        assert_eq!(lists.len(), count);
        let mut received = Vec::new();
        for (index, bytes) in lists.iter().enumerate() {
            let list = DigestList::parse(bytes).unwrap();
            let numbers = (list.group(), usize::from(list.lists()), usize::from(list.index()));
            assert_eq!(numbers, (GroupNumber(3), count, index));
            assert!(list.is_of(instance()) && list.verifies(&public, instance(), list.root()));
            assert!(bytes.len() <= DigestList::MAX_SIZE);
            received.extend(list.digests());
        }
        assert_eq!(received, digests(symbols));
    }
}

#[test]
fn nothing_of_a_list_can_be_changed() {
    let public = key().public_key();
    for bytes in &lists(11, 4) {
        for changed in flips(bytes) {
            let Ok(list) = DigestList::parse(&changed) else { continue };
            assert!(!list.verifies(&public, instance(), list.root()));
        }
        for cut in truncations(bytes) {
            let Ok(list) = DigestList::parse(cut) else { continue };
            assert!(!list.verifies(&public, instance(), list.root()), "{}", cut.len());
        }
        let list = DigestList::parse(bytes).unwrap();
        let other = InstanceId([1; 16]);
        // The first half of it, which lists have, and the second, which they do not.
        let mut similar = instance();
        similar.0[15] ^= 1;
        assert!(!list.is_of(other) && list.is_of(similar));
        assert!(!list.verifies(&public, other, list.root()));
        assert!(!list.verifies(&public, similar, list.root()));
        let stranger = SecretKey::from_seed(&[8; 32]).public_key();
        assert!(!list.verifies(&stranger, instance(), list.root()));
    }
}

#[test]
fn a_digest_depends_on_the_place_of_the_symbol_and_each_of_its_bytes() {
    let all = [
        SymbolDigest::of(Toi(1), Sbn(2), Esi(3), b"symbol"),
        SymbolDigest::of(Toi(2), Sbn(2), Esi(3), b"symbol"),
        SymbolDigest::of(Toi(1), Sbn(3), Esi(3), b"symbol"),
        SymbolDigest::of(Toi(1), Sbn(2), Esi(2), b"symbol"),
        SymbolDigest::of(Toi(1), Sbn(2), Esi(3), b"symbol\0"),
    ];
    for (at, digest) in all.iter().enumerate() {
        assert!(!all[..at].contains(digest));
    }
}

#[test]
fn numbers_that_no_list_has_are_refused() {
    let good = lists(1, 96).remove(0);
    let parse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        DigestList::parse(&bytes).map(|_| ())
    };
    assert_eq!(parse(&|_| {}), Ok(()));
    let numbers =
        |lists, index| parse(&move |bytes: &mut Vec<u8>| (bytes[16], bytes[17]) = (lists, index));
    for (lists, index) in [(0, 0), (1, 1), (65, 0), (255, 255)] {
        assert_eq!(numbers(lists, index), Err(DigestListError::Number { lists, index }));
    }
    // A path of six nodes, of which there is one digest.
    assert!(matches!(numbers(64, 0), Err(DigestListError::Truncated { .. })));
    let more = |count: usize| parse(&move |bytes: &mut Vec<u8>| bytes.resize(82 + count, 7));
    assert_eq!(more(12 * 96), Ok(()));
    for bytes in [0, 11, 13, 12 * 97] {
        assert_eq!(more(bytes), Err(DigestListError::Digests { bytes }));
    }
}

#[test]
fn a_list_fits_the_size_that_it_is_made_for() {
    let longest = |count: usize| lists(64 * count as u32, count).pop().unwrap().len();
    for (bytes, digests) in [(0, 0), (165, 0), (166, 1), (1_305, 95), (1_306, 96), (9_000, 96)] {
        assert_eq!(DigestList::digests_in(bytes), digests, "{bytes}");
        assert!(digests == 0 || longest(digests) <= bytes);
    }
    assert_eq!(longest(96), DigestList::MAX_SIZE);
}

#[test]
fn a_head_has_the_key_in_a_record() {
    let key = DigestKey(key().public_key());
    let schedule = HeadRecords::new([(1, vec![1])]).unwrap();
    for records in [HeadRecords::default(), schedule.clone()] {
        let with_key = key.add_to(&records).unwrap();
        assert_eq!(with_key.get(1), records.get(1));
        assert_eq!(DigestKey::of(&with_key), Some(key));
        assert_eq!(DigestKey::of(&records), None);
        assert_eq!(key.add_to(&with_key), None);
    }
    let with_key = key.add_to(&schedule).unwrap();
    assert_eq!(with_key.size(), schedule.size() + DigestKey::RECORD_BYTES);
    // Not a point of the curve, of small order, of another length.
    let mut small = vec![0; 32];
    small[0] = 1;
    for value in [vec![2; 32], small, vec![7; 31], Vec::new()] {
        let records = HeadRecords::new([(2, value)]).unwrap();
        assert_eq!(DigestKey::of(&records), None);
    }
}
