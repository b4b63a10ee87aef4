//! Presets: the shards of the originals, live or by digests of `tests/originals`, and recovery from
//! any erasures. `PROPTEST_CASES=100000` makes as many cases as the originals' programs.

use crate::block::Random;
use fontana_fec::presets::{MAX_SHARDS, Preset, ShardCode, ShardCountError, ShardError};
use proptest::prelude::*;
use reed_solomon_erasure::galois_8::ReedSolomon;

/// Cases of a test: 1 000 unless the environment says more.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(1_000)
}

/// Random data shards of `width` bytes.
fn data(k: usize, width: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    (0..k).map(|_| random.bytes(width)).collect()
}

/// The group without `count` shards, drawn at random.
fn lossy(group: &[Vec<u8>], count: usize, random: &mut Random) -> Vec<Option<Vec<u8>>> {
    let mut shards: Vec<_> = group.iter().cloned().map(Some).collect();
    let mut lost = 0;
    while lost < count {
        let shard = &mut shards[random.below(group.len() as u32) as usize];
        lost += usize::from(shard.take().is_some());
    }
    shards
}

fn assert_equal(shards: &[Option<Vec<u8>>], group: &[Vec<u8>]) {
    assert!(shards.iter().map(Option::as_ref).eq(group.iter().map(Some)), "{} shards", group.len());
}

/// Both programs encode the same, and each recovers what the other has encoded.
fn compare_with_reed_solomon_erasure(k: usize, parity: usize, width: usize, seed: u64) {
    let (ours, theirs) = (
        ShardCode::new(Preset::Backblaze, k, parity).unwrap(),
        ReedSolomon::new(k, parity).unwrap(),
    );
    let mut group = data(k, width, seed);
    let made = ours.encode(&group).unwrap();
    group.resize(k + parity, vec![0; width]);
    theirs.encode(&mut group).unwrap();
    assert!(group[k..] == made, "{k} + {parity}");
    let mut random = Random(seed);
    let count = random.below(parity as u32 + 1) as usize;
    let shards = lossy(&group, count, &mut random);
    let (mut by_us, mut by_them) = (shards.clone(), shards);
    ours.reconstruct(&mut by_us).unwrap();
    theirs.reconstruct(&mut by_them).unwrap();
    assert_equal(&by_us, &group);
    assert_equal(&by_them, &group);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn backblaze_is_the_code_of_reed_solomon_erasure(
        (k, parity) in prop_oneof![
            40 => (1_usize..=24, 1_usize..=24),
            1 => (1_usize..=255).prop_flat_map(|k| (Just(k), 1..=256 - k)),
        ],
        width in prop::sample::select(&[1_usize, 63, 64, 320, 333][..]),
        seed: u64,
    ) {
        compare_with_reed_solomon_erasure(k, parity, width, seed);
    }
}

#[test]
fn the_groups_of_solana_are_32_and_32() {
    (0..20).for_each(|seed| compare_with_reed_solomon_erasure(32, 32, 1_139, seed));
}

/// Shards that are longer than the columns that are computed at a time.
#[test]
fn long_shards_are_computed_in_parts() {
    for (k, parity, width) in [(1, 1, 131_199), (1, 1, 131_201), (3, 2, 100_003), (200, 56, 700)] {
        compare_with_reed_solomon_erasure(k, parity, width, 1);
    }
}

/// FNV-1a of the parity of the cases of `tests/originals`, after 1 000 and 100 000.
fn assert_digests(preset: Preset, after_1_000: u64, after_100_000: u64) {
    let mut random = Random(1);
    let mut digest = 0xCBF2_9CE4_8422_2325_u64;
    let mut add = |octet: u8| {
        digest = (digest ^ u64::from(octet)).wrapping_mul(0x100_0000_01B3);
        digest
    };
    let mut last = 0;
    for case in 1..=cases().min(100_000) {
        let most = if case % 32 == 0 { 255 } else { [10, 20, 40, 64][case as usize % 4] };
        let k = 1 + random.next() % most;
        let parity = 1 + random.next() % most.min(256 - k);
        let (width, seed) = (1 + random.next() % 8, random.next() | 1);
        let bytes = (1..=k * width).map(|at| (seed.wrapping_mul(at) >> 56) as u8);
        let bytes: Vec<u8> = bytes.collect();
        let mut group: Vec<Vec<u8>> = bytes.chunks(width as usize).map(<[u8]>::to_vec).collect();
        let code = ShardCode::new(preset, k as usize, parity as usize).unwrap();
        group.extend(code.encode(&group).unwrap());
        group[k as usize..].iter().flatten().for_each(|&octet| last = add(octet));
        if preset == Preset::IsaLVandermonde && k <= 64 {
            last = add(recovers_from_last(&code, &group).into());
        }
        match case {
            1_000 => assert_eq!(last, after_1_000, "{preset:?}: {last:#018x}"),
            100_000 => assert_eq!(last, after_100_000, "{preset:?}: {last:#018x}"),
            _ => {}
        }
    }
}

/// True if the last `k` shards recover the group.
fn recovers_from_last(code: &ShardCode, group: &[Vec<u8>]) -> bool {
    let mut shards: Vec<_> = group.iter().cloned().map(Some).collect();
    shards[..code.parity_shards()].fill(None);
    match code.reconstruct(&mut shards) {
        Ok(()) => assert_equal(&shards, group),
        Err(error) => {
            assert_eq!(error, ShardError::Undetermined { available: code.data_shards() });
            assert!(shards[..code.parity_shards()].iter().all(Option::is_none), "unchanged");
        }
    }
    shards.iter().all(Option::is_some)
}

#[test]
fn backblaze_is_the_default_of_klauspost() {
    assert_digests(Preset::Backblaze, 0xCCDD_70E6_1ADC_B008, 0x4F7E_C884_1976_22F2);
}

#[test]
fn zfec_is_zfec() {
    assert_digests(Preset::Zfec, 0x91F6_29F5_DA85_66DA, 0xD1CE_B464_C73E_DB53);
}

#[test]
fn isa_l_cauchy_is_cauchy1_of_isa_l() {
    assert_digests(Preset::IsaLCauchy, 0x1B23_3708_B9DC_A627, 0x7E15_4A90_9010_76FD);
}

#[test]
fn isa_l_vandermonde_is_rs_of_isa_l_and_fails_where_that_fails() {
    assert_digests(Preset::IsaLVandermonde, 0xBC9C_436D_EEF6_F69F, 0x034D_45B2_7CCC_A4A1);
}

#[test]
fn as_many_shards_as_data_recover_a_group() {
    let mut random = Random(3);
    for round in 0..400 {
        let preset = [Preset::Backblaze, Preset::Zfec, Preset::IsaLCauchy][round % 3];
        let most = if round % 20 == 0 { 255 } else { 40 };
        let k = 1 + random.below(most);
        let parity = 1 + random.below(most.min(256 - k));
        let code = ShardCode::new(preset, k as usize, parity as usize).unwrap();
        let mut group = data(k as usize, 65, random.next());
        group.extend(code.encode(&group).unwrap());
        let mut shards = lossy(&group, parity as usize, &mut random);
        code.reconstruct(&mut shards).unwrap();
        assert_equal(&shards, &group);
        let mut shards = lossy(&group, parity as usize + 1, &mut random);
        let too_few = ShardError::TooFew { needed: k as usize, available: k as usize - 1 };
        assert_eq!(code.reconstruct(&mut shards), Err(too_few));
    }
}

/// Where the first parity shards do not determine the data, others do.
#[test]
fn isa_l_vandermonde_uses_the_parity_shards_that_help() {
    let mut random = Random(7);
    let code = ShardCode::new(Preset::IsaLVandermonde, 60, 60).unwrap();
    let mut group = data(60, 8, 1);
    group.extend(code.encode(&group).unwrap());
    for _ in 0..300 {
        let mut shards = lossy(&group, 40, &mut random);
        code.reconstruct(&mut shards).unwrap();
        assert_equal(&shards, &group);
    }
}

#[test]
fn groups_have_1_to_256_shards() {
    for preset in Preset::ALL {
        for (data, parity, fits) in [
            (0, 1, false),
            (1, 0, false),
            (1, 1, true),
            (1, 255, true),
            (255, 1, true),
            (128, MAX_SHARDS - 128, true),
            (128, MAX_SHARDS - 127, false),
            (usize::MAX, 1, false),
        ] {
            let code = ShardCode::new(preset, data, parity);
            let refused = code.as_ref().err().copied();
            assert_eq!(refused, (!fits).then_some(ShardCountError { data, parity }));
            let counts = code.map(|code| (code.data_shards(), code.parity_shards()));
            assert!(counts.is_err() || counts == Ok((data, parity)));
        }
    }
}

#[test]
fn wrong_shards_are_refused_and_unchanged() {
    let code = ShardCode::new(Preset::Zfec, 2, 1).unwrap();
    let count = |expected, actual| Err(ShardError::Count { expected, actual });
    let size = Err(ShardError::Size { expected: 2, actual: 1 });
    assert_eq!(code.encode(&[[1, 2]]).map(drop), count(2, 1));
    assert_eq!(code.encode(&[&[1, 2][..], &[3]]).map(drop), size);
    assert_eq!(code.reconstruct(&mut [Some(vec![1, 2]), None]), count(3, 2));
    let mut shards = [Some(vec![1, 2]), None, Some(vec![3])];
    assert_eq!(code.reconstruct(&mut shards), size.map(drop));
    assert_eq!(shards, [Some(vec![1, 2]), None, Some(vec![3])]);
    let none: [Option<Vec<u8>>; 3] = [None, None, None];
    let too_few = Err(ShardError::TooFew { needed: 2, available: 0 });
    assert_eq!(code.reconstruct(&mut none.clone()), too_few);
    // Shards without bytes are shards.
    let mut shards = [Some(Vec::new()), None, Some(Vec::new())];
    assert_eq!(code.reconstruct(&mut shards), Ok(()));
    assert_eq!(shards[1], Some(Vec::new()));
}
