use super::interleaved::weight;
use super::turn::share;
use super::*;
use fontana_wire::BlockHasher;
use proptest::prelude::*;

fn shapes(lengths: &[u32], stretch_factor: Option<u32>) -> Vec<BlockShape> {
    let shape = |(object, &k): (u32, &u32)| BlockShape {
        object: object / 2,
        source_symbols: k,
        encoding_symbols: stretch_factor.map(|stretch_factor| stretch_factor * k),
    };
    (0..).zip(lengths).map(shape).collect()
}

/// An order of rateless blocks, on one channel.
fn order(schedule: TransmissionSchedule, lengths: &[u32], limit: Option<u32>) -> Turns {
    Turns(Order::new(schedule, &shapes(lengths, None), 1, limit, 1))
}

#[derive(Clone)]
struct Turns(Order);

impl Turns {
    fn withdraw(&mut self, block: usize) {
        self.0.withdraw(block);
    }
}

impl Iterator for Turns {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        self.0.turn(0)
    }
}

const FCAST: Fcast = Fcast {
    organization: SymbolOrganization::Segments,
    object_order: ObjectOrder::Random,
    stretch_factor: 4,
    anticipated_layers: 0,
};

/// One schedule of each kind.
fn all_schedules() -> Vec<TransmissionSchedule> {
    let mut all = vec![
        TransmissionSchedule::EVEN,
        TransmissionSchedule::Sequential { repair_permille: 500 },
        TransmissionSchedule::Random,
        TransmissionSchedule::Cumulative,
    ];
    let orders =
        [ObjectOrder::Sequential, ObjectOrder::PartlyRandom { one_in: 8 }, ObjectOrder::Random];
    for organization in [SymbolOrganization::AllOnEach, SymbolOrganization::Segments] {
        for object_order in orders {
            let fcast = Fcast { organization, object_order, ..FCAST };
            all.push(TransmissionSchedule::Fcast(fcast));
        }
    }
    all.push(TransmissionSchedule::Fcast(Fcast { anticipated_layers: 2, ..FCAST }));
    all.push(TransmissionSchedule::Runs { length: 48, visits: None });
    all.push(TransmissionSchedule::Runs { length: 48, visits: Some(4) });
    all
}

proptest! {
    #[test]
    fn interleaved_blocks_progress_evenly(
        lengths in proptest::collection::vec(1_u32..200, 1..20),
        turns in 1_usize..4_000,
    ) {
        let total: u64 = lengths.iter().map(|&k| weight(k)).sum();
        let mut sent = vec![0_u64; lengths.len()];
        let order = order(TransmissionSchedule::EVEN, &lengths, None);
        for (n, turn) in order.take(turns).enumerate() {
            prop_assert_eq!(turn.i, sent[turn.block]);
            sent[turn.block] += 1;
            // Each block's share is within one of its symbols of the session's share, plus what the
            // other blocks round up.
            let done = (n + 1) as f64 / total as f64;
            for (&k, &s) in lengths.iter().zip(&sent) {
                let weight = weight(k) as f64;
                let slack = 1.0 + weight * lengths.len() as f64 / total as f64;
                prop_assert!((s as f64 - done * weight).abs() <= slack);
            }
        }
    }

    #[test]
    fn a_limit_gives_every_block_its_share_and_ends(
        lengths in proptest::collection::vec(0_u32..50, 0..10),
        permille in 0_u32..3_000,
        sequential in any::<bool>(),
    ) {
        let schedule = if sequential {
            TransmissionSchedule::Sequential { repair_permille: permille.saturating_sub(1000) }
        } else {
            TransmissionSchedule::EVEN
        };
        let mut sent = vec![0_u64; lengths.len()];
        for turn in order(schedule, &lengths, Some(permille)) {
            sent[turn.block] += 1;
        }
        for (&k, &s) in lengths.iter().zip(&sent) {
            prop_assert_eq!(s, (u64::from(k) * u64::from(permille)).div_ceil(1000));
        }
    }
}

/// With blocks of equal length and channels that take turns, each channel by itself sends all
/// blocks.
#[test]
fn every_channel_progresses_evenly_and_none_sends_what_another_has_sent() {
    let blocks = shapes(&[50; 8], None);
    let mut order = Order::new(TransmissionSchedule::EVEN, &blocks, 4, None, 1);
    let mut seen = std::collections::BTreeSet::new();
    let mut on_channel = [[0_u32; 8]; 4];
    for n in 0..4_000 {
        let turn = order.turn(n % 4).unwrap();
        assert!(seen.insert((turn.block, turn.i)));
        on_channel[n % 4][turn.block] += 1;
    }
    assert_eq!(on_channel, [[125; 8]; 4]);
}

#[test]
fn a_grain_is_sent_without_interruption_and_grains_progress_evenly() {
    let schedule = TransmissionSchedule::Interleaved { grain: 2 };
    let turns: Vec<_> = order(schedule, &[4, 4, 1], None).take(9).collect();
    let blocks: Vec<_> = turns.iter().map(|t| t.block).collect();
    assert_eq!(blocks, [0, 0, 1, 1, 2, 0, 0, 1, 1], "{turns:?}");
}

#[test]
fn a_run_has_at_most_a_200th_of_its_block() {
    let schedule = TransmissionSchedule::Runs { length: 48, visits: None };
    for (k, length) in [(10_000, 48), (401, 3), (200, 1), (1, 1)] {
        // A cycle has one run of each block.
        let turns: Vec<_> = order(schedule, &[k; 8], None).take(8 * length * 3).collect();
        let runs: Vec<_> = turns.chunks(length).collect();
        assert!(runs.iter().all(|run| run.iter().all(|turn| turn.block == run[0].block)), "{k}");
        let blocks: Vec<_> = runs.iter().map(|run| run[0].block).collect();
        assert_eq!(blocks, [0, 1, 2, 3, 4, 5, 6, 7].repeat(3), "{k}");
    }
}

#[test]
fn sequential_finishes_a_block_before_the_next() {
    let schedule = TransmissionSchedule::Sequential { repair_permille: 500 };
    let turns: Vec<_> = order(schedule, &[2, 4], None).take(12).collect();
    let blocks: Vec<_> = turns.iter().map(|t| t.block).collect();
    assert_eq!(blocks, [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    assert_eq!(turns[9], Turn { block: 0, i: 3 });
}

#[test]
fn a_withdrawn_block_has_no_more_turns() {
    for schedule in
        [TransmissionSchedule::EVEN, TransmissionSchedule::Sequential { repair_permille: 0 }]
    {
        let mut order = order(schedule, &[3, 3], None);
        order.next();
        order.withdraw(0);
        assert!(order.clone().take(10).all(|turn| turn.block == 1));
        order.withdraw(1);
        assert_eq!(order.next(), None);
    }
}

proptest! {
    #[test]
    fn any_order_on_any_channels_gives_every_block_its_share_and_ends(
        lengths in proptest::collection::vec(0_u32..40, 0..8),
        permille in 0_u32..5_000,
        which in 0_usize..13,
        stretch_factor in proptest::option::of(1_u32..5),
        turns in proptest::collection::vec(0_usize..4, 1..50),
    ) {
        let schedule = all_schedules()[which];
        let blocks = shapes(&lengths, stretch_factor);
        let mut order = Order::new(schedule, &blocks, 4, Some(permille), 3);
        let mut sent = vec![0_u64; lengths.len()];
        let mut over = [false; 4];
        for &queue in turns.iter().cycle() {
            let queue = queue.min(order.queue_count() - 1);
            match order.turn(queue) {
                Some(turn) => sent[turn.block] += 1,
                None => over[queue] = true,
            }
            if turns.iter().all(|&queue| over[queue.min(order.queue_count() - 1)]) {
                break;
            }
        }
        for (&k, &s) in lengths.iter().zip(&sent) {
            prop_assert_eq!(s, share(k, permille), "every channel has symbols of every block");
        }
    }
}

#[test]
fn a_withdrawn_block_has_no_turns_in_any_order() {
    for schedule in all_schedules() {
        let mut order = Order::new(schedule, &shapes(&[3, 9, 5], Some(4)), 4, None, 3);
        order.withdraw(1);
        let queues = order.queue_count();
        assert!((0..500).all(|n| order.turn(n % queues).unwrap().block != 1), "{schedule:?}");
        (0..3).for_each(|block| order.withdraw(block));
        assert!((0..queues).all(|queue| order.turn(queue).is_none()));
    }
}

#[test]
fn drawn_blocks_have_turns_in_proportion_to_their_length_and_fresh_symbols() {
    let lengths = [10, 30, 60];
    let mut sent = [0_u64; 3];
    for turn in order(TransmissionSchedule::Random, &lengths, None).take(100_000) {
        assert_eq!(turn.i, sent[turn.block]);
        sent[turn.block] += 1;
    }
    for (sent, k) in sent.iter().zip(lengths) {
        assert!(sent.abs_diff(u64::from(k) * 1_000) < 1_000, "{sent}");
    }
    // Of a code with few symbols, any of them is drawn.
    let mut order = Order::new(TransmissionSchedule::Random, &shapes(&[4], Some(2)), 1, None, 1);
    let drawn: std::collections::BTreeSet<u64> =
        (0..200).map(|_| order.turn(0).unwrap().i).collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
}

/// The seed of an experiment determines the orders, so they must not change.
#[test]
fn orders_do_not_change() {
    let blocks = shapes(&[32, 32, 20, 7], Some(4));
    let digests: Vec<String> = all_schedules()
        .into_iter()
        .map(|schedule| {
            let mut order = Order::new(schedule, &blocks, 6, None, 7);
            let mut hasher = BlockHasher::new();
            for n in 0..3_000 {
                let turn = order.turn(n % order.queue_count()).unwrap();
                hasher.update(&(turn.block as u32).to_be_bytes());
                hasher.update(&turn.i.to_be_bytes());
            }
            hasher.finalize().to_string().chars().take(8).collect()
        })
        .collect();
    assert_eq!(digests, FROZEN);
}

const FROZEN: [&str; 13] = [
    "855a3e7d", "fe34c099", "5cb623d7", "ed2fbce1", "ae856a94", "8694ad7e", "9ad41058", "bdbcce3f",
    "c4d79ba0", "de3647b2", "9d78f81c", "855a3e7d", "a19b26f1",
];
