//! Receivers that share, and a stranger who sends anything in any name: when it stops, members that
//! have everything between them complete.

use crate::fuzz::SEQUENCES;
use crate::support::site::{STRANGER, Site, address};
use bolero::check;
use fontana_proto::share::SiteTurn;
use fontana_testing::Script;
use fontana_wire::{MissingSymbols, ShareBody, ShareRequest, ShareSymbol};
use std::time::Duration;

/// The time that members have from the last message of the stranger. One sequence in a thousand
/// takes more than 30 s: blocks rest for up to 15 s after each round of requests in vain.
const LIVENESS: Duration = Duration::from_secs(90);

fn esi(script: &mut Script<'_>, k: u32) -> u32 {
    match script.below(8) {
        0 => *script.pick(&[k - 1, k, 1 << 23, (1 << 24) - 1, 1 << 24, u32::MAX - 1, u32::MAX]),
        1 => (1 << 23) + u32::from(script.u8()),
        _ => u32::from(script.u8()) % (2 * k),
    }
}

/// A message of this content, whatever it says.
fn message(script: &mut Script<'_>, site: &Site) -> Vec<u8> {
    let blocks = site.blocks();
    let block = *script.pick(&blocks);
    let k = site.source_symbols(block);
    let member = script.below(6).into();
    if script.once_in(2) {
        let bytes = match script.below(8) {
            0 => script.take(usize::from(script.clone().below(70))),
            _ => script.take(64),
        };
        let symbol = ShareSymbol {
            has_block: script.once_in(2),
            to: script.below(5).into(),
            echo_us: if script.once_in(2) { 0 } else { script.u32() },
            esi: esi(script, k),
            bytes: &bytes,
        };
        return site.message(member, block, ShareBody::Symbol(symbol));
    }
    let missing = script.once_in(2).then(|| {
        let first = esi(script, k).min((1 << 24) - 1);
        let span = u32::from(script.u8());
        MissingSymbols::of(first..=first.saturating_add(span)).unwrap()
    });
    let request = ShareRequest {
        clock_us: script.u32(),
        round_trip_us: script.magnitude() as u32,
        read_us: script.magnitude() as u32,
        lacking: (script.magnitude() as u32).max(1),
        missing,
    };
    site.request(member, block, request)
}

/// The address of a member or of another host.
fn sender(script: &mut Script<'_>) -> std::net::SocketAddr {
    match script.below(3) {
        0 => address(1 + script.below(4), 7_702),
        1 => address(STRANGER + script.below(40), script.u16()),
        _ => address(STRANGER, script.u16()),
    }
}

#[test]
fn any_messages_of_a_stranger() {
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| play(bytes));
}

fn play(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let sizes: Vec<_> = (0..1 + script.below(3)).map(|_| 1 + u32::from(script.below(30))).collect();
    let mut site = Site::new(script.u16().into(), &sizes);
    site.loss = f64::from(script.below(3)) * 0.05;
    let turns = [SiteTurn::BesideSession, SiteTurn::BeforeSender, SiteTurn::AfterSender];
    site.turn = *script.pick(&turns);
    let count = 2 + script.below(3);
    let loss = 1 + script.below(3);
    // Each lacks others, or what chance decides.
    let is_in_turn = script.once_in(2);
    for place in 0..count {
        let is_complete = script.once_in(6);
        let noise = script.u16().to_be_bytes();
        let mut random = Script::new(&noise).skip(2);
        let turn = is_in_turn.then_some(u32::from(place));
        site.join(|_, esi| match turn {
            Some(turn) => is_complete || esi % u32::from(count) != turn,
            None => is_complete || !random.once_in(2 + loss),
        });
    }
    for _ in 0..Script::STEPS {
        match script.below(16) {
            0 if script.once_in(4) => {
                let place = usize::from(script.below(count));
                site.kill(place);
            }
            1..=4 => {
                let pause = Duration::from_micros(u64::from(script.u16()) * 20);
                site.run(pause);
            }
            5 if !site.recorded.is_empty() => {
                let recorded = site.recorded.clone();
                let (from, datagram) = script.pick(&recorded).clone();
                let from = if script.once_in(2) { from } else { sender(&mut script) };
                site.send_as(from, &datagram);
            }
            6 => {
                let recorded = site.recorded.clone();
                if let Some((from, datagram)) = recorded.last() {
                    let mut datagram = datagram.clone();
                    let at = usize::from(script.u16()) % datagram.len();
                    datagram[at] ^= script.u8().max(1);
                    site.send_as(*from, &datagram);
                }
            }
            _ => {
                let datagram = message(&mut script, &site);
                site.send_as(sender(&mut script), &datagram);
            }
        }
    }
    site.run(Duration::from_millis(1));
    let is_possible = site.has_everything();
    let is_complete = site.run_until_complete(LIVENESS);
    assert!(is_complete || !is_possible, "{}", site.summary());
    for member in site.members.iter().flatten() {
        let is_right = member.driver.complete_at.is_none() || member.driver.has(&site.content);
        assert!(is_right, "a wrong byte was called complete");
    }
}
