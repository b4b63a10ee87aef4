//! Lists of symbol digests, their symbols, and what an attacker sends beside both, in any order.

use crate::fuzz::{SEQUENCES, advance, settle, small_config};
use crate::support::world::{Content, ReceiverDriver, SenderDriver, Setup, sender, source};
use bolero::check;
use fontana_proto::{Expectation, Instant};
use fontana_testing::Script;
use fontana_wire::{DigestList, Packet, SecretKey, Toi};
use std::time::Duration;

/// Packets of the first milliseconds of a run that announces its symbols.
fn record(content: &Content, seed: u64, signer: &SecretKey) -> Vec<Vec<u8>> {
    let control_symbol = DigestList::MAX_SIZE as u16;
    let (round_symbols, digests) = (64, true);
    let setup = Setup { seed, control_symbol, round_symbols, digests, ..Setup::default() };
    let sender = sender(content, &setup, Some(signer));
    let mut driver = SenderDriver::with_digests(sender, content);
    (0..60).flat_map(|ms| driver.poll(Instant::ZERO + Duration::from_millis(ms))).collect()
}

#[test]
fn lists_and_symbols_of_any_runs() {
    let key = SecretKey::from_seed(&[7; 32]);
    let stranger = SecretKey::from_seed(&[8; 32]);
    let content = Content::new(&[(6_000, 2), (700, 1)], 5);
    // Two runs of the publisher, and one of a host that is not.
    let runs =
        [record(&content, 1, &key), record(&content, 2, &key), record(&content, 3, &stranger)];
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut config = small_config();
        config.expectation =
            Expectation { publisher: Some(key.public_key()), ..Expectation::default() };
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let (mut now, mut places, mut current) = (Instant::ZERO, [0; 3], 0);
        settle(&mut receiver, now);
        let skips_lists = script.once_in(4);
        for _ in 0..2 * Script::STEPS {
            now = advance(&mut script, now);
            if script.once_in(12) {
                current = usize::from(script.below(3));
            }
            let from = source(if script.once_in(8) { script.below(9) } else { 1 });
            let change = script.below(12);
            for _ in 0..1 + script.below(16) {
                places[current] = (places[current] + 1) % runs[current].len();
                let mut datagram = runs[current][places[current]].clone();
                let toi = Packet::parse(&datagram).unwrap().header.toi.unwrap();
                match change {
                    // Forged symbols, lists and heads.
                    0..3 => *datagram.last_mut().unwrap() ^= script.u8() | 1,
                    3 => {
                        let at = usize::from(script.u16()) % datagram.len();
                        datagram[at] ^= script.u8() | 1;
                    }
                    4 => datagram.truncate(script.u8().into()),
                    _ if skips_lists && toi == Toi::DIGESTS && script.once_in(2) => continue,
                    _ => {}
                }
                receiver.hear(now, from, &datagram);
            }
            settle(&mut receiver, now);
        }
        for &toi in receiver.committed() {
            assert_eq!(receiver.object(toi), **content.objects[&toi].1, "wrong bytes of {toi}");
        }
    });
}
