//! Receivers that share, on bytes: what others send them, right or wrong.

use crate::support::site::{STRANGER, Site, SiteKey, address, forged};
use fontana_proto::share::SiteTurn;
use fontana_proto::{BlockId, SplitMix64};
use fontana_wire::{MissingSymbols, ShareBody, ShareRequest, ShareSymbol};
use std::collections::BTreeMap;
use std::time::Duration;

/// The ids at the ends of what a message can carry.
const EXTREME: [u32; 6] = [0, 1 << 23, (1 << 24) - 1, 1 << 24, u32::MAX - 1, u32::MAX];

#[test]
fn no_symbol_id_ends_a_receiver() {
    for size in [0, 1, 63, 64, 256] {
        let mut site = Site::new(1, &[12]);
        let blocks = site.blocks();
        site.join(|_, _| false);
        for esi in EXTREME {
            for &block in &blocks {
                site.send(STRANGER, &forged(&site, block, esi, true, size));
            }
        }
        site.run(Duration::from_secs(1));
        site.join(|_, _| true);
        assert!(site.run_until_complete(Duration::from_secs(30)), "{size} bytes");
    }
}

/// A forged symbol in the name of the only member that has everything: its symbols wait, until no
/// other host brings any.
#[test]
fn one_forged_symbol_in_the_name_of_a_member_does_not_silence_it() {
    for count in [1, 3, 40] {
        let mut site = Site::new(2, &[40, 30, 40]);
        let blocks = site.blocks();
        site.join(|_, esi| esi % 10 != 0);
        site.join(|_, _| true);
        let from = address(2, 7_702);
        for esi in 0..count {
            for &block in &blocks {
                let datagram = forged(&site, block, 5_000 + esi, true, 64);
                site.send_as(from, &datagram);
            }
        }
        assert!(site.run_until_complete(Duration::from_secs(30)), "{count} forged symbols");
    }
}

/// A stranger that forges symbols from its own address, at a tenth of the members' rate, delays
/// a member that lacks a part of one block, and does not stop it.
#[test]
fn forged_symbols_from_an_address_delay_a_member_by_seconds() {
    let bytes_of_a_symbol = 64;
    let time = |per_second: u64| {
        let mut site = Site::new(3, &[600]);
        let block = site.blocks()[0];
        site.join(|_, esi| esi % 10 != 3);
        site.join(|_, _| true);
        let mut number = 0;
        for _ in 0..3_000 {
            site.run(Duration::from_millis(10));
            if site.is_complete() {
                break;
            }
            let due = site.now.as_nanos() * per_second / 1_000_000_000;
            while number < due {
                number += 1;
                let esi = 9_000_000 + number as u32;
                let datagram =
                    forged(&site, block, esi, number.is_multiple_of(2), bytes_of_a_symbol);
                site.send(STRANGER, &datagram);
            }
        }
        assert!(site.is_complete(), "{per_second} a second: {}", site.summary());
        Duration::from_nanos(site.now.as_nanos())
    };
    let alone = time(0);
    assert!(alone < Duration::from_secs(3), "{alone:?}");
    for per_second in [5, 50, 390] {
        let with = time(per_second);
        assert!(with < alone * 3 / 2 + Duration::from_secs(10), "{per_second}: {with:?}");
    }
}

/// What the session still brings is not taken from others: a forged symbol would take its place.
#[test]
fn nothing_is_taken_from_others_while_the_session_brings_symbols() {
    let mut site = Site::new(4, &[80]);
    let block = site.blocks()[0];
    site.join(|_, _| false);
    for esi in 0..80 {
        let datagram = forged(&site, block, 79 - esi, true, 64);
        site.send(STRANGER, &datagram);
        site.run(Duration::from_millis(100));
        let symbol = site.symbol(block, fontana_fec::Esi(esi));
        let (now, member) = (site.now, site.members[0].as_mut().unwrap());
        member.driver.pull(now, block, esi, &symbol);
    }
    site.run(Duration::from_millis(1));
    assert!(site.is_complete(), "{}", site.summary());
    assert_eq!(site.members[0].as_ref().unwrap().driver.endpoint.stats().corrupt_blocks, 0);
}

/// A symbol of other content, which agrees with its others.
fn of_other_content(site: &Site, block: BlockId, number: u32) -> Vec<u8> {
    let bytes = vec![0; site.symbol_size.into()];
    let esi = 9_000_000 + number;
    let symbol = ShareSymbol { has_block: false, to: 1, echo_us: 5, esi, bytes: &bytes };
    site.message(9_999, block, ShareBody::Symbol(symbol))
}

/// More symbols of other content than members have right ones: these seem to be wrong, and no other
/// host has them.
#[test]
fn symbols_of_other_content_do_not_replace_what_sessions_have_brought() {
    let mut site = Site::new(8, &[6, 15, 70]);
    let blocks = site.blocks();
    site.join(|_, esi| esi % 2 == 0);
    site.join(|_, esi| esi % 2 == 1);
    for number in 0..3_000 {
        let block = blocks[number as usize % blocks.len()];
        site.send(STRANGER, &of_other_content(&site, block, number));
        site.run(Duration::from_millis(4));
    }
    assert!(site.run_until_complete(Duration::from_secs(30)), "{}", site.summary());
}

/// All symbols that a receiver has agree with each other, but not with the hash: those of a
/// stranger do not show that the hash is wrong.
#[test]
fn symbols_of_other_content_do_not_make_a_receiver_give_up() {
    let mut site = Site::new(9, &[10]);
    let block = site.blocks()[0];
    site.join(|_, _| false);
    for number in 0..1_000 {
        site.send(STRANGER, &of_other_content(&site, block, number));
        site.run(Duration::from_millis(10));
    }
    site.join(|_, _| true);
    assert!(site.run_until_complete(Duration::from_secs(30)), "{}", site.summary());
}

/// In the sender's name, a stranger has forged some of what a member has.
#[test]
fn forged_symbols_of_a_session_are_found_by_those_of_others() {
    for (wrong, right, seconds) in [(1, 8, 10), (1, 0, 90), (3, 2, 90)] {
        let mut site = Site::new(10, &[20]);
        let block = site.blocks()[0];
        let place = site.join(|_, esi| esi < right);
        site.join(|_, _| true);
        for esi in right..right + wrong {
            let forged = vec![7 + esi as u8; site.symbol_size.into()];
            let (now, member) = (site.now, site.members[place].as_mut().unwrap());
            assert_eq!(member.driver.pull(now, block, esi, &forged), 1);
        }
        let is_complete = site.run_until_complete(Duration::from_secs(seconds));
        assert!(is_complete, "{wrong} of {}: {}", wrong + right, site.summary());
    }
}

/// Bytes of a symbol, and per second of a member.
const SIZE: u16 = 1_344;
const RATE: u64 = 2_500_000;

/// What a stranger sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// Symbols that are wrong, in its own name, and in that of members.
    Forged,
    ForgedForMembers,
    /// Symbols that all have, as if of a member with all of the block.
    Promises,
    /// Requests for all symbols, all the time, and one each two seconds.
    Requests,
    RareRequests,
    /// What members have sent.
    Replays,
    All,
}

impl Attack {
    const KINDS: [Self; 6] = [
        Self::Forged,
        Self::ForgedForMembers,
        Self::Promises,
        Self::Requests,
        Self::RareRequests,
        Self::Replays,
    ];

    /// The next datagram, the `number`th one.
    fn send(self, site: &mut Site, number: u64) -> usize {
        let blocks = site.blocks();
        let block = blocks[number as usize % blocks.len()];
        let size = site.symbol_size.into();
        let own = address(STRANGER, 1_024 + number as u16 % 60_000);
        let (from, datagram) = match self {
            Self::Forged => (
                own,
                forged(site, block, 9_000_000 + number as u32, number.is_multiple_of(2), size),
            ),
            Self::ForgedForMembers => {
                let from = address(1 + (number % 4) as u8, 7_702);
                (
                    from,
                    forged(site, block, 9_000_000 + number as u32, number.is_multiple_of(2), size),
                )
            }
            Self::Promises => (own, forged(site, block, 0, true, size)),
            Self::Requests | Self::RareRequests => {
                let lacking = site.source_symbols(block);
                let missing =
                    (number.is_multiple_of(2)).then(|| MissingSymbols::of(0..lacking).unwrap());
                let (clock_us, round_trip_us, read_us) = (0, u32::MAX, u32::MAX);
                let request = ShareRequest { clock_us, round_trip_us, read_us, lacking, missing };
                (own, site.request(9_999, block, request))
            }
            Self::Replays => {
                let recorded = site.recorded.get(number as usize % site.recorded.len().max(1));
                let Some((_, datagram)) = recorded.cloned() else { return 100 };
                (own, datagram)
            }
            Self::All => return Self::KINDS[number as usize % 6].send(site, number / 6),
        };
        // With a key, a host without it can send messages as they are without one, under another
        // key, and those of members again.
        let datagram = match site.key {
            Some(_) if self != Self::Replays && number.is_multiple_of(2) => {
                SiteKey(5).seal(number as usize % 6, number, &datagram)
            }
            _ => datagram,
        };
        site.send_as(from, &datagram);
        datagram.len() + 28
    }
}

/// The site of four members that have everything between them, in three blocks.
fn four_members(seed: u64, key: Option<SiteKey>) -> Site {
    let mut site = Site::sized(seed, &[1_000; 3], SIZE, RATE);
    site.key = key;
    for place in 0..4 {
        site.join(|_, esi| esi % 4 != place);
    }
    site
}

/// The time that they take beside a stranger that sends at a tenth of a member's rate.
fn time_beside(attack: Option<Attack>, mut site: Site) -> Duration {
    let (mut number, mut bytes) = (0, 0);
    for _ in 0..12_000 {
        site.run(Duration::from_millis(10));
        if site.is_complete() {
            return Duration::from_nanos(site.now.as_nanos());
        }
        let Some(attack) = attack else { continue };
        let due = match attack {
            Attack::RareRequests => 1_000 * (1 + site.now.as_nanos() / 2_000_000_000),
            _ => site.now.as_nanos() * RATE / 10 / 1_000_000_000,
        };
        while bytes < due {
            let sent = attack.send(&mut site, number) as u64;
            bytes += if attack == Attack::RareRequests { 1_000 } else { sent };
            number += 1;
        }
    }
    panic!("{attack:?}: {}", site.summary());
}

/// How many times longer they take: symbols in the names of members are not told from theirs, as
/// long as no member has a block.
fn check_attack(attack: Attack, seed: u64) {
    let most = match attack {
        Attack::Requests | Attack::RareRequests => 2.5,
        Attack::Forged | Attack::Promises | Attack::Replays => 3.5,
        Attack::ForgedForMembers => 4.5,
        Attack::All => 6.0,
    };
    let time = |attack| time_beside(attack, four_members(seed, None));
    let (alone, with) = (time(None), time(Some(attack)));
    let ratio = with.as_secs_f64() / alone.as_secs_f64();
    println!("seed {seed}, {attack:?}: {with:?}, {alone:?} without");
    assert!(ratio <= most, "seed {seed}, {attack:?}: {ratio}");
}

#[test]
fn a_stranger_at_a_tenth_of_the_rate_delays_four_members() {
    [Attack::Forged, Attack::Promises, Attack::Requests].iter().for_each(|&it| check_attack(it, 1));
    [1, 4].iter().for_each(|&seed| check_attack(Attack::ForgedForMembers, seed));
}

/// With a key a stranger can only repeat what members have sent.
fn check_attack_without_the_key(attack: Attack, seed: u64) {
    let time = |attack| time_beside(attack, four_members(seed, Some(SiteKey(4))));
    let (alone, with) = (time(None), time(Some(attack)));
    println!("seed {seed}, {attack:?} without the key: {with:?}, {alone:?} without");
    assert!(with <= alone * 3 / 2 + Duration::from_secs(2), "seed {seed}, {attack:?}");
}

#[test]
fn a_stranger_without_the_key_does_not_delay_members() {
    for attack in Attack::KINDS.into_iter().chain([Attack::All]) {
        check_attack_without_the_key(attack, 1);
    }
}

/// What members have sent, again, also to members that have lost it, and to one that comes later.
#[test]
fn members_with_a_key_complete_each_other_beside_replays() {
    let mut site = Site::new(6, &[60, 40]);
    (site.key, site.loss) = (Some(SiteKey(4)), 0.1);
    site.join(|_, esi| esi % 3 != 0);
    site.join(|_, esi| esi % 3 != 1);
    for round in 0..3_000_u32 {
        site.run(Duration::from_millis(5));
        let recorded = site.recorded.get(round as usize % site.recorded.len().max(1)).cloned();
        if let Some((_, datagram)) = recorded {
            site.send(STRANGER, &datagram);
        }
        if round == 300 {
            site.join(|_, _| false);
        }
    }
    assert!(site.is_complete(), "{}", site.summary());
    let corrupt =
        |place: usize| site.members[place].as_ref().unwrap().driver.endpoint.stats().corrupt_blocks;
    assert_eq!([corrupt(0), corrupt(1), corrupt(2)], [0; 3]);
}

/// Any host can ask for ever.
#[test]
fn a_complete_member_answers_for_ten_times_its_stay_at_most() {
    let mut site = Site::new(5, &[40]);
    site.stays = Duration::from_secs(10);
    let block = site.blocks()[0];
    site.join(|_, _| true);
    let mut sent = Vec::new();
    for second in 0..150 {
        let missing = MissingSymbols::of(0..40);
        let request =
            ShareRequest { clock_us: 0, round_trip_us: 0, read_us: 0, lacking: 9, missing };
        site.send(STRANGER, &site.request(9_999, block, request));
        site.run(Duration::from_secs(1));
        sent.extend((second == 90 || second == 110 || second == 149).then_some(site.symbols));
    }
    assert!(sent[0] > 0 && sent[1] == sent[2], "{sent:?}");
    let driver = &site.members[0].as_ref().unwrap().driver;
    assert_eq!(driver.endpoint.phase(site.now), fontana_proto::ReceiverPhase::Over);
    assert_eq!(driver.endpoint.share_stats().symbols_sent, site.symbols, "it still knows");
}

/// A receiver without the key, and one with it, do not hear each other.
#[test]
fn members_with_a_key_and_without_do_not_mix() {
    let mut site = Site::new(7, &[40]);
    site.join(|_, esi| esi % 2 == 0);
    site.key = Some(SiteKey(4));
    site.join(|_, _| true);
    site.run(Duration::from_secs(20));
    let stats = |place: usize| site.members[place].as_ref().unwrap().driver.endpoint.share_stats();
    assert_eq!((stats(1).requests_heard, stats(0).symbols_heard), (0, 0));
}

#[test]
#[ignore = "two minutes: .ci/long share"]
fn a_stranger_that_sends_anything_in_any_name_delays_four_members() {
    for seed in 1..=5 {
        for attack in Attack::KINDS.into_iter().chain([Attack::All]) {
            check_attack(attack, seed);
            check_attack_without_the_key(attack, seed);
        }
    }
}

/// A site of members that leave, are killed or come at any step, and of strangers that do not have
/// its key, if it has one: each attacks in its own way, in its own name or in that of others, with
/// a pace of its own. After the last of this, members that have everything between them complete.
fn complete_after_strangers(seed: u64) {
    let mut random = SplitMix64::new(seed, 7);
    let blocks: Vec<_> = (0..1 + random.below(4)).map(|_| 1 + random.below(120)).collect();
    let mut site = Site::new(seed, &blocks);
    site.key = (random.below(3) == 0).then_some(SiteKey(4));
    site.loss = [0.0, 0.02, 0.1][random.below(3) as usize];
    if seed % 2 == 1 {
        site.turn = SiteTurn::AfterSender;
    }
    // Those that stay have everything between them: each has a part that no other has, or lacks
    // one.
    let (stay, has_little) = (2 + random.below(4), random.below(2) == 0);
    for place in 0..stay {
        site.join(|_, esi| (esi % stay == place) == has_little);
    }
    let during = u64::from(random.below(15_000));
    // Others come, and go.
    let mut steps: BTreeMap<u64, bool> = BTreeMap::new();
    for _ in 0..random.below(8) {
        steps.insert(u64::from(random.below(15_000)) % during.max(1), random.below(2) == 0);
    }
    let mut strangers: Vec<_> = (0..1 + random.below(3))
        .map(|_| {
            let attack = match random.below(7) as usize {
                6 => Attack::All,
                at => Attack::KINDS[at],
            };
            let every = match attack {
                Attack::RareRequests => 2_000,
                _ => 1 + u64::from(random.below(400)),
            };
            (attack, every, 0)
        })
        .collect();
    for millisecond in 0..during {
        match steps.get(&millisecond) {
            Some(true) => {
                let (is_complete, loss) = (random.below(3) == 0, random.unit());
                let mut dice = SplitMix64::new(random.next_u64(), 0);
                site.join(|_, _| is_complete || dice.unit() >= loss);
            }
            Some(false) if site.members.len() > stay as usize => {
                let others = site.members.len() as u32 - stay;
                site.kill((stay + random.below(others)) as usize);
            }
            _ => {}
        }
        for (attack, every, number) in &mut strangers {
            if millisecond.is_multiple_of(*every) {
                attack.send(&mut site, *number);
                *number += 1;
            }
        }
        site.run(Duration::from_millis(1));
    }
    // Members that came may still leave.
    (stay as usize..site.members.len()).for_each(|place| site.kill(place));
    let what = || format!("seed {seed}: {strangers:?}, key {:?}, blocks {blocks:?}", site.key);
    let what = what();
    // In the names of members, a stranger leaves symbols that wait, which are used in turn.
    let seconds = if site.key.is_some() { 30 } else { 150 };
    let done = site.run_until_complete(Duration::from_secs(seconds));
    assert!(done, "{what}: {}", site.summary());
    for member in site.members.iter().flatten() {
        assert!(member.driver.has(&site.content), "{what}: a wrong byte was called complete");
    }
}

#[test]
fn members_complete_whoever_goes_and_whatever_strangers_without_the_key_send() {
    (0..12).for_each(complete_after_strangers);
}

#[test]
#[ignore = "minutes: .ci/long share"]
fn members_complete_on_two_thousand_sites_with_strangers() {
    (0..2_000).for_each(complete_after_strangers);
}
