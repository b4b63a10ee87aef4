//! Lists of several senders, and symbols that they have announced or not.

use super::budget::MAX_CHECKS_AT_ONCE;
use super::*;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{DigestGroup, GroupNumber, SecretKey, Toi};
use std::time::Duration;

fn key() -> SecretKey {
    SecretKey::from_seed(&[5; 32])
}

fn signer(run: u8) -> DigestSigner {
    DigestSigner { instance: InstanceId([run; 16]), key: key().public_key() }
}

fn digest(number: u32) -> SymbolDigest {
    SymbolDigest::of(Toi(1), Sbn(0), Esi(number), b"symbol")
}

/// A group of 64 lists of 96 symbols.
fn group(run: u8, number: u64) -> Vec<Vec<u8>> {
    let first = number as u32 * 6_144;
    let digests: Vec<_> = (first..first + 6_144).map(digest).collect();
    let instance = InstanceId([run; 16]);
    DigestGroup::new(&key(), instance, GroupNumber(number), &digests, 96).into_lists()
}

/// A receiver that has the first `lists` lists of group 0.
fn receiver(lists: usize) -> SymbolDigests {
    let mut digests = SymbolDigests::default();
    for list in group(1, 0).iter().take(lists) {
        assert_eq!(digests.on_list(Instant::ZERO, &[signer(1)], list), ListFate::Proven);
    }
    digests
}

#[test]
fn a_list_counts_once_and_if_its_sender_is_certified() {
    let mut digests = SymbolDigests::default();
    let (lists, now) = (group(1, 0), Instant::ZERO);
    assert_eq!(digests.on_list(now, &[signer(2)], &lists[0]), ListFate::Invalid);
    assert_eq!(digests.on_list(now, &[], &lists[0]), ListFate::Invalid);
    assert_eq!(digests.on_list(now, &[signer(2), signer(1)], &lists[3]), ListFate::Proven);
    // The key is known now.
    assert_eq!(digests.on_list(now, &[], &lists[0]), ListFate::Proven);
    assert_eq!(digests.on_list(now, &[], &lists[0]), ListFate::Known);
    let announced = |number| digests.is_announced(digest(number));
    assert!(announced(0) && announced(95) && !announced(96) && announced(3 * 96));
}

#[test]
fn signatures_are_checked_400_times_a_second_at_most() {
    let mut digests = receiver(0);
    let forged = |number: u64| {
        let other = SecretKey::from_seed(&[6; 32]);
        let instance = InstanceId([1; 16]);
        DigestGroup::new(&other, instance, GroupNumber(number), &[digest(0)], 1).into_lists()
    };
    let (mut checked, mut number) = (0, 0);
    for millis in 0..1_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for _ in 0..2 {
            number += 1;
            let fate = digests.on_list(now, &[signer(1)], &forged(number)[0]);
            checked += u32::from(fate == ListFate::Invalid);
            assert!(matches!(fate, ListFate::Invalid | ListFate::Unchecked));
        }
    }
    assert!((400..=400 + MAX_CHECKS_AT_ONCE).contains(&checked), "{checked}");
    // A pause does not make up for more.
    let now = Instant::ZERO + Duration::from_secs(100);
    let fates = (0..100).map(|_| digests.on_list(now, &[signer(1)], &forged(1)[0]));
    let checked = fates.filter(|&fate| fate == ListFate::Invalid).count();
    assert_eq!(checked, MAX_CHECKS_AT_ONCE as usize);
}

#[test]
fn the_last_groups_of_the_last_senders_are_held() {
    let mut digests = SymbolDigests::default();
    let now = |number| Instant::ZERO + Duration::from_secs(number);
    for number in [0, 1, 2, 4] {
        let fate = digests.on_list(now(number), &[signer(1)], &group(1, number)[0]);
        assert_eq!(fate, ListFate::Proven);
    }
    // Group 0 is forgotten, 3 is newer than the oldest that is held.
    assert_eq!(digests.on_list(now(5), &[], &group(1, 0)[1]), ListFate::Known);
    assert_eq!(digests.on_list(now(5), &[], &group(1, 3)[0]), ListFate::Proven);
    let held = |digests: &SymbolDigests, number: u32| digests.is_announced(digest(number * 6_144));
    assert!(!held(&digests, 0) && !held(&digests, 1));
    assert!(held(&digests, 2) && held(&digests, 3) && held(&digests, 4));
    for run in 2..10 {
        let fate = digests.on_list(now(10), &[signer(run)], &group(run, 0)[0]);
        assert_eq!(fate, ListFate::Proven);
    }
    assert_eq!(digests.senders.len(), MAX_SENDERS);
    assert!(!held(&digests, 4), "the sender whose last list is the oldest is forgotten");
    let slots = digests.senders.iter().flat_map(|sender| &sender.groups);
    let bytes: usize = slots.map(|group| group.digests.slots.len() * SymbolDigest::SIZE).sum();
    assert!(bytes <= 200_000 * MAX_SENDERS, "{bytes}");
}

#[test]
fn eight_symbols_that_are_not_announced_raise_the_alarm() {
    let mut digests = receiver(64);
    for number in 0..7 {
        assert!(digests.admits(&[signer(1)], || digest(1_000_000 + number)), "{number}");
        assert!(digests.admits(&[signer(1)], || digest(number)));
    }
    // Each announced one has refuted a sixteenth of one.
    assert!(digests.admits(&[signer(1)], || digest(2_000_000)) && !digests.takes_announced_only());
    assert!(!digests.admits(&[signer(1)], || digest(2_000_001)) && digests.takes_announced_only());
    for number in 0..ALARM_SYMBOLS {
        assert!(digests.admits(&[signer(1)], || digest(number % 6_144)), "{number}");
    }
    assert!(!digests.takes_announced_only());
}

#[test]
fn a_row_of_symbols_whose_list_is_missing_is_evidence_once() {
    let mut digests = SymbolDigests::default();
    for (index, list) in group(1, 0).iter().enumerate() {
        if index % 2 == 0 {
            digests.on_list(Instant::ZERO, &[signer(1)], list);
        }
    }
    for number in 0..3_000 {
        assert!(digests.admits(&[signer(1)], || digest(number)), "{number}");
    }
    assert!(!digests.takes_announced_only());
    // Between them they are evidence nevertheless.
    let mut forged = 10_000_000;
    while !digests.takes_announced_only() && forged < 10_000_100 {
        forged += 1;
        digests.admits(&[signer(1)], || digest(forged));
        digests.admits(&[signer(1)], || digest(0));
    }
    assert!(digests.takes_announced_only());
}

/// A mirror begins, or its head has just arrived: its lists are those of later symbols.
#[test]
fn a_further_sender_is_judged_when_its_lists_have_come() {
    let mut digests = receiver(64);
    let of_mirror = |number| digest(1_000_000 + number);
    for number in 0..PATIENCE {
        assert!(digests.admits(&[signer(2)], || of_mirror(number)), "{number}");
        assert!(digests.admits(&[signer(1)], || digest(number)));
    }
    assert!(!digests.takes_announced_only() && digests.evidence == 0);
    for (at, list) in group(2, 0).iter().enumerate().take(LEAST_LISTS as usize) {
        assert_eq!(digests.on_list(Instant::ZERO, &[signer(2)], list), ListFate::Proven, "{at}");
    }
    let taken = (0..100).filter(|&number| digests.admits(&[signer(2)], || of_mirror(number)));
    assert!(taken.count() < 10 && digests.takes_announced_only());
}

/// An attacker repeats heads of earlier runs, whose lists no sender sends.
#[test]
fn patience_with_senders_that_send_no_lists_ends() {
    let mut digests = receiver(64);
    let mut taken = 0;
    for run in 2..100 {
        for number in 0..2 * PATIENCE {
            let forged = || digest(1_000_000 + number);
            taken += u32::from(digests.admits(&[signer(run)], forged));
        }
    }
    let first = MAX_SENDERS as u32 * PATIENCE;
    assert!((first..first + 16).contains(&taken), "{taken}");
    // The session of a sender whose lists have come is judged, whatever else it certifies.
    let mut digests = receiver(64);
    for number in 0..100 {
        digests.admits(&[signer(1), signer(2)], || digest(1_000_000 + number));
    }
    assert!(digests.takes_announced_only());
}

#[test]
fn few_lists_judge_nothing() {
    let mut digests = receiver(LEAST_LISTS as usize - 1);
    for number in 0..10_000 {
        assert!(digests.admits(&[signer(1)], || digest(1_000_000 + number)));
    }
    assert!(!digests.takes_announced_only());
}

#[test]
fn one_symbol_in_sixteen_is_checked_in_peace() {
    let mut digests = receiver(64);
    let mut checked = 0;
    for number in 0..40_000 {
        digests.admits(&[signer(1)], || {
            checked += 1;
            digest(number % 6_144)
        });
    }
    let sampled = checked - CLOSE_LOOK;
    assert!((2_200..2_800).contains(&sampled), "{sampled}");
}
