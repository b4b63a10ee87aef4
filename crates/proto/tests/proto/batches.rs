//! A batch of datagrams gives the same outputs as its datagrams one by one, except that consecutive
//! symbols may be placed together.

use crate::support::world::{
    Content, PACKET_BYTES, SenderDriver, Setup, datagram, receiver_config, sender, source,
};
use fontana_proto::{
    Datagram, DatagramBatch, Endpoint, Instant, Output, Port, ReceiveDone, ReceiveJob, Receiver,
    Saved, Subscription, SubscriptionLimits, presets,
};
use fontana_wire::{CongestionControl, LayerRates, SecretKey};
use proptest::prelude::*;
use std::time::Duration;

/// The datagrams that are sent in 400 ms, in one slab: a session, and another one with other
/// content under the same TSI.
struct Traffic {
    slab: Vec<u8>,
    datagrams: Vec<Datagram>,
}

impl Traffic {
    fn new(congestion: Option<CongestionControl>) -> Self {
        let (content, other) = (Content::new(&[(20_000, 2)], 1), Content::new(&[(3_000, 1)], 2));
        let setup = Setup { rate: 400_000, congestion, ..Setup::default() };
        let mut drivers = [
            SenderDriver::new(sender(&content, &setup, None), &content),
            SenderDriver::new(
                sender(&other, &setup, Some(&SecretKey::from_seed(&[1; 32]))),
                &other,
            ),
        ];
        let (mut slab, mut datagrams) = (Vec::new(), Vec::new());
        for millis in 0..400 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for (number, driver) in (1..).zip(&mut drivers) {
                for (channel, bytes) in driver.poll_channels(now) {
                    let start = slab.len() as u32;
                    slab.extend(bytes);
                    datagrams.push(datagram(source(number), channel, start..slab.len() as u32));
                }
            }
        }
        Self { slab, datagrams }
    }
}

fn controls() -> Vec<Option<CongestionControl>> {
    let layers = || LayerRates::geometric(50_000, 512, 4).unwrap();
    vec![
        None,
        Some(CongestionControl::FixedLayers(layers())),
        Some(CongestionControl::Rlc(presets::rlc(layers()))),
        Some(CongestionControl::Webrc(presets::webrc_fast(400_000, PACKET_BYTES).unwrap())),
    ]
}

/// All outputs of a receiver for these datagrams in batches of these sizes, at one time: from the
/// beginning, or after its objects were opened. A run of symbols counts as one output for each of
/// them; the second result is the length of the longest.
fn outputs(
    Traffic { slab, datagrams }: &Traffic,
    is_open: bool,
    chosen: &[usize],
    sizes: impl Iterator<Item = usize>,
) -> (Vec<String>, u32) {
    let subscription = Subscription::Declared(SubscriptionLimits::default());
    let mut receiver = Receiver::new(receiver_config(), subscription);
    let now = Instant::ZERO + Duration::from_secs(1);
    let (mut outputs, mut longest) = (Vec::new(), 0);
    let mut poll = |receiver: &mut Receiver| {
        let mut opening = None;
        while let Some(output) = receiver.poll_output(now, &mut Vec::new()) {
            if let Output::Job(ReceiveJob::Place(run)) = &output {
                longest = longest.max(run.count);
                for ((esi, to), symbol) in run.ids().zip(run.symbols(slab)) {
                    let block = run.block;
                    outputs.push(format!("Job(Place {block:?} {esi:?} {to:?} {symbol:?}"));
                }
                continue;
            }
            outputs.push(format!("{output:?}"));
            if let Output::Job(ReceiveJob::Open(opened)) = output {
                opening = Some(opened.scope());
            }
        }
        opening
    };
    let mut opening = poll(&mut receiver);
    for datagram in datagrams.iter().filter(|_| is_open) {
        if let Some(scope) = opening {
            let saved = Saved::default();
            receiver.handle_done(now, ReceiveDone::Opened { scope, saved });
            break;
        }
        let datagram = Datagram { port: Port::BASE, dropped_before: 0, ..datagram.clone() };
        receiver.handle_datagrams(now, &DatagramBatch::one(slab, &datagram));
        opening = poll(&mut receiver);
    }
    let chosen: Vec<_> = chosen.iter().map(|&index| datagrams[index].clone()).collect();
    let mut rest = &chosen[..];
    for size in sizes {
        let (batch, after) = rest.split_at(size.min(rest.len()));
        receiver.handle_datagrams(now, &DatagramBatch { slab, datagrams: batch });
        poll(&mut receiver);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    outputs.push(format!("{:?} {:?}", receiver.stats(), receiver.poll_timeout()));
    (outputs, longest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Some datagrams are lost, some come twice, some are truncated.
    #[test]
    fn batches_of_any_sizes_lead_to_the_outputs_of_single_datagrams(
        control in 0..4_usize,
        is_open: bool,
        loss in 0..4_u32,
        seed: u64,
        sizes in prop::collection::vec(0..40_usize, 1..20),
    ) {
        let mut random = fontana_proto::SplitMix64::new(seed, 1);
        let mut traffic = Traffic::new(controls().swap_remove(control));
        let mut chosen = Vec::new();
        for (index, datagram) in traffic.datagrams.iter_mut().enumerate() {
            if random.below(8) >= loss {
                chosen.push(index);
                chosen.extend((random.below(16) == 0).then_some(index));
            }
            datagram.dropped_before = u64::from(random.below(16) == 0);
            if random.below(64) == 0 {
                datagram.payload.end -= random.below(datagram.payload.len() as u32);
            }
        }
        let (single, _) = outputs(&traffic, is_open, &chosen, std::iter::repeat(1));
        let (batched, _) = outputs(&traffic, is_open, &chosen, sizes.into_iter().chain(std::iter::repeat(64)));
        prop_assert_eq!(single, batched);
    }
}

/// The outputs that the tests compare include opened objects, joined channels, placed symbols and
/// solved blocks.
#[test]
fn the_compared_outputs_are_of_every_kind() {
    for control in controls() {
        let has_layers = matches!(control, Some(CongestionControl::FixedLayers(_)));
        let traffic = Traffic::new(control);
        let all: Vec<_> = (0..traffic.datagrams.len()).collect();
        let (outputs, _) = outputs(&traffic, true, &all, std::iter::repeat(64));
        let has = |what: &str| outputs.iter().any(|output| output.starts_with(what));
        for kind in ["Job(Open", "Job(Place", "Job(Solve", "Event(Accepted", "Join"] {
            assert!(has(kind), "{kind}: {outputs:?}");
        }
        assert_eq!(has("Join(ChannelId(1))"), has_layers);
    }
}
