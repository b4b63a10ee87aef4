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
        let most = match case {
            _ if preset == Preset::Leopard16 && case % 1_000 == 0 => 3_000,
            _ if case % 32 == 0 => 255,
            _ => [10, 20, 40, 64][case as usize % 4],
        };
        let limit = preset.max_shards() as u64;
        let k = 1 + random.next() % most;
        let mut parity = 1 + random.next() % most.min(limit - k);
        let (mut width, seed) = (1 + random.next() % 8, random.next() | 1);
        if matches!(preset, Preset::Leopard8 | Preset::Leopard16) {
            while k + parity.next_power_of_two() > limit {
                parity /= 2;
            }
            // The original takes multiples of 64 bytes.
            width = 64 * (1 + width % 2);
        }
        if parity > 0 {
            let bytes = (1..=k * width).map(|at| (seed.wrapping_mul(at) >> 56) as u8);
            let bytes: Vec<u8> = bytes.collect();
            let mut group: Vec<_> = bytes.chunks(width as usize).map(<[u8]>::to_vec).collect();
            let code = ShardCode::new(preset, k as usize, parity as usize).unwrap();
            group.extend(code.encode(&group).unwrap());
            group[k as usize..].iter().flatten().for_each(|&octet| last = add(octet));
            if preset == Preset::IsaLVandermonde && k <= 64 {
                last = add(recovers_from_last(&code, &group).into());
            }
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
fn leopard8_is_the_leopard_of_klauspost_up_to_256_shards() {
    assert_digests(Preset::Leopard8, 0x2F24_2835_D39B_FE56, 0x9A3D_96A9_F7E1_E7DF);
}

#[test]
fn leopard16_is_the_leopard_of_klauspost_above_256_shards() {
    assert_digests(Preset::Leopard16, 0xFFAA_ED09_69D5_94CA, 0xBF3B_58B5_205F_FA61);
}

#[test]
fn as_many_shards_as_data_recover_a_group() {
    let presets =
        [Preset::Backblaze, Preset::Zfec, Preset::IsaLCauchy, Preset::Leopard8, Preset::Leopard16];
    let mut random = Random(3);
    for round in 0..600 {
        let preset = presets[round % presets.len()];
        let most = if round % 20 < presets.len() { 255 } else { 40 };
        let k = 1 + random.below(most);
        let parity = 1 + random.below(most.min(256 - k));
        let Ok(code) = ShardCode::new(preset, k as usize, parity as usize) else {
            assert_eq!(preset, Preset::Leopard8, "parity is rounded up");
            continue;
        };
        assert_recovers(&code, if preset == Preset::Leopard16 { 128 } else { 65 }, &mut random);
    }
}

/// Any `k` shards recover a group, and `k - 1` do not.
fn assert_recovers(code: &ShardCode, size: usize, random: &mut Random) {
    let (k, parity) = (code.data_shards(), code.parity_shards());
    let mut group = data(k, size, random.next());
    group.extend(code.encode(&group).unwrap());
    for lost in [parity, random.below(parity as u32 + 1) as usize] {
        let mut shards = lossy(&group, lost, random);
        code.reconstruct(&mut shards).unwrap();
        assert_equal(&shards, &group);
    }
    // Parity alone.
    let mut shards: Vec<_> = group.iter().cloned().map(Some).collect();
    shards[k + random.below(parity as u32) as usize] = None;
    code.reconstruct(&mut shards).unwrap();
    assert_equal(&shards, &group);
    let mut shards = lossy(&group, parity + 1, random);
    let too_few = ShardError::TooFew { needed: k, available: k - 1 };
    assert_eq!(code.reconstruct(&mut shards), Err(too_few));
}

/// Each number of passes of the transforms, from none to four, and both ends of a power of two.
#[test]
fn large_groups_recover() {
    let mut random = Random(5);
    for (data, parity) in [
        (1, 1),
        (257, 1),
        (255, 2),
        (300, 9),
        (511, 16),
        (1_000, 17),
        (4_096 - 512, 512),
        (4_097, 100),
        (300, 5_000),
        (32_768, 32_768),
    ] {
        let code = ShardCode::new(Preset::Leopard16, data, parity).unwrap();
        assert_recovers(&code, 64, &mut random);
    }
}

#[test]
fn parity_may_be_written_in_place() {
    for preset in Preset::ALL {
        for (k, m, size) in [(10, 4, 1_280), (32, 32, 192), (100, 20, 64)] {
            let code = ShardCode::new(preset, k, m).unwrap();
            let group = data(k, size, 9);
            let mut parity = vec![[0xAA; 1_280]; m];
            let mut slices: Vec<_> = parity.iter_mut().map(|shard| &mut shard[..size]).collect();
            code.encode_into(&group, &mut slices).unwrap();
            let made = code.encode(&group).unwrap();
            assert!(parity.iter().map(|shard| &shard[..size]).eq(made.iter()), "{preset:?}");
            let mut few = vec![vec![0; size]; m - 1];
            let count = ShardError::Count { expected: m, actual: m - 1 };
            assert_eq!(code.encode_into(&group, &mut few), Err(count));
            let mut short = vec![vec![7; size - 1]; m];
            let wrong = ShardError::Size { expected: size, actual: size - 1 };
            assert_eq!(code.encode_into(&group, &mut short), Err(wrong));
            assert!(short.iter().flatten().all(|&byte| byte == 7), "unchanged");
        }
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
    for preset in Preset::ALL.into_iter().filter(|&preset| preset != Preset::Leopard16) {
        let is_leopard = preset == Preset::Leopard8;
        for (data, parity, fits) in [
            (0, 1, false),
            (1, 0, false),
            (1, 1, true),
            (1, 255, !is_leopard),
            (128, 65, true),
            (129, 65, !is_leopard),
            (255, 1, true),
            (128, MAX_SHARDS - 128, true),
            (128, MAX_SHARDS - 127, false),
            (usize::MAX, 1, false),
            (1, usize::MAX, false),
        ] {
            assert_fits(preset, data, parity, fits);
        }
    }
}

#[test]
fn leopard16_has_up_to_65_536_shards() {
    for (data, parity, fits) in [
        (0, 1, false),
        (1, 0, false),
        (65_535, 1, true),
        (65_536, 1, false),
        (32_768, 32_768, true),
        (32_769, 32_768, false),
        (32_768, 16_385, true),
        (32_769, 16_385, false),
        (1, usize::MAX, false),
    ] {
        assert_fits(Preset::Leopard16, data, parity, fits);
    }
    let error = ShardCode::new(Preset::Leopard16, 32_769, 16_385).map(drop).unwrap_err();
    let text = "32769 data and 16385 parity shards, must be at least 1 of each and at most 65536, \
                with parity rounded up to a power of two";
    assert_eq!(error.to_string(), text);
}

fn assert_fits(preset: Preset, data: usize, parity: usize, fits: bool) {
    let code = ShardCode::new(preset, data, parity);
    let refused = code.as_ref().err().copied();
    let error = ShardCountError { preset, data, parity };
    assert_eq!(refused, (!fits).then_some(error), "{preset:?}, {data} + {parity}");
    let counts = code.map(|code| (code.data_shards(), code.parity_shards()));
    assert!(counts.is_err() || counts == Ok((data, parity)));
}

#[test]
fn shards_of_leopard16_are_multiples_of_64_bytes() {
    let code = ShardCode::new(Preset::Leopard16, 2, 1).unwrap();
    for size in [0, 64, 192] {
        assert_eq!(code.encode(&vec![vec![1; size]; 2]).unwrap()[0].len(), size);
    }
    for size in [1, 63, 65, 127] {
        let error = ShardError::Alignment { size, multiple: 64 };
        assert_eq!(code.encode(&vec![vec![1; size]; 2]), Err(error));
        let mut shards = vec![Some(vec![1; size]), None, Some(vec![1; size])];
        assert_eq!(code.reconstruct(&mut shards), Err(error));
        assert_eq!(shards[1], None);
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
