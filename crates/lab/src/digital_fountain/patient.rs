//! `df.patient`: decoding after each packet, or when it is likely to succeed.

use super::carousel::shuffle;
use super::tornado::{SOURCE_SYMBOLS, graph};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::timing::{median, seconds};
use fontana_fec::study::tornado::Graph;
use fontana_proto::SplitMix64;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Packets that a patient receiver waits for: 1.06 k.
const PATIENCE: usize = SOURCE_SYMBOLS as usize * 106 / 100;

/// Bytes of a packet, in words.
const WORDS: usize = 1024 / 8;

type Packet = [u64; WORDS];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.patient",
    paper: "digital fountain, section VII",
    what: "Tornado Z with packets of 1024 bytes in random order, decoded as in the paper from left \
           to right of its layers: incrementally, as far as it goes after each packet, and \
           patiently, when 1.06 k packets are there and after each one more. Processor time of all \
           decoding, alternating; packets, exclusive-ors, and source packets reconstructed in vain, \
           counted. 101 receptions (quick: 15).",
    sweep: &SweepOf { name: "df.patient", kind: Kind::Timed, cases: |_| 1, run },
    claims,
    exhibits: |_| Vec::new(),
};

const INCREMENTAL: &str = "incremental";
const PATIENT: &str = "patient";

/// A decoding of a reception.
#[derive(Serialize, Deserialize)]
struct Decoding {
    trial: u32,
    way: String,
    packets: u64,
    xors: u64,
    /// Source packets that were reconstructed and then arrived.
    in_vain: u32,
    seconds: f64,
}

fn run(case: &Case) -> Vec<Decoding> {
    let mut random = case.stream(0);
    let graph = graph(SOURCE_SYMBOLS);
    let packets = encode(&graph, &mut random);
    let mut decoder = Decoder::new(graph);
    let mut order: Vec<u32> = (0..2 * SOURCE_SYMBOLS).collect();
    let mut rows = Vec::new();
    for trial in 0..case.scale.pick(15, 101) {
        shuffle(&mut order, &mut random);
        let mut ways = [(INCREMENTAL, 0), (PATIENT, PATIENCE)];
        // The second decoder runs with the caches that the first one filled.
        ways.rotate_left(trial as usize % 2);
        for (way, patience) in ways {
            decoder.reset();
            let mut used = 0;
            let seconds = seconds(|| used = decoder.receive(&order, &packets, patience));
            let right =
                decoder.values[..SOURCE_SYMBOLS as usize] == packets[..SOURCE_SYMBOLS as usize];
            let seconds = if right { seconds } else { f64::NAN };
            let (xors, in_vain) = (decoder.xors, decoder.in_vain);
            let (way, packets) = (way.into(), used as u64);
            rows.push(Decoding { trial, way, packets, xors, in_vain, seconds });
        }
    }
    rows
}

fn claims() -> Vec<Claim> {
    let k = f64::from(SOURCE_SYMBOLS);
    vec![
        Claim::shape(
            "speed",
            "time of patient over incremental decoding of the same reception, median",
            quote("with little loss of decoding speed", "section VII-C"),
            Target::AtMost(1.1),
            |rows: &[Decoding]| {
                let of = |way: &str| rows.numbers(|row| row.way == way, |row| row.seconds);
                let pairs = of(PATIENT).into_iter().zip(of(INCREMENTAL));
                median(pairs.map(|(patient, incremental)| patient / incremental).collect())
            },
        ),
        Claim::shape(
            "redundant",
            "incremental decoding: source packets that were reconstructed and then arrive, mean",
            quote("reconstructed source data may later arrive intact", "section VII-C"),
            Target::AtLeast(1.0),
            |rows: &[Decoding]| average(rows, INCREMENTAL, |row| row.in_vain.into()),
        ),
        Claim::own(
            "patience",
            "what waiting costs: packets that a patient receiver has received beyond those that an \
             incremental one needs, mean, over k (1.06 is one standard deviation above the mean of \
             figure 2, 1.0536)",
            Target::AtMost(0.015),
            0.0,
            move |rows: &[Decoding]| {
                let packets = |way| average(rows, way, |row| row.packets as f64);
                packets(PATIENT).minus(packets(INCREMENTAL)).times(1.0 / k)
            },
        ),
    ]
}

fn average(rows: &[Decoding], way: &str, number: fn(&Decoding) -> f64) -> Estimate {
    Estimate::mean(&rows.numbers(|row| row.way == way, number))
}

/// Source packets of noise, and the redundant ones that follow.
fn encode(graph: &Graph, random: &mut SplitMix64) -> Vec<Packet> {
    let k = graph.source_symbols();
    let mut packets: Vec<Packet> =
        (0..k).map(|_| std::array::from_fn(|_| random.next_u64())).collect();
    for check in 0..graph.encoding_symbols() - k {
        packets.push(sum(graph.terms(check), &packets));
    }
    packets
}

fn sum(terms: &[u32], packets: &[Packet]) -> Packet {
    let mut sum = [0; WORDS];
    terms.iter().for_each(|&term| add(&mut sum, &packets[term as usize]));
    sum
}

fn add(sum: &mut Packet, packet: &Packet) {
    sum.iter_mut().zip(packet).for_each(|(sum, word)| *sum ^= word);
}

/// The paper's decoder, on bytes. It reconstructs a packet when all other packets of a redundant
/// packet that has arrived are known.
struct Decoder {
    graph: Arc<Graph>,
    /// The checks that each packet is part of.
    checks_of: Vec<Vec<u32>>,
    values: Vec<Packet>,
    known: Vec<bool>,
    /// For each check how many of its packets, itself included, are not known; and the exclusive-or
    /// of their numbers.
    missing: Vec<(u32, u32)>,
    untouched: Vec<(u32, u32)>,
    /// Known packets whose checks have not been processed.
    fresh: Vec<u32>,
    sources_known: u32,
    xors: u64,
    in_vain: u32,
}

impl Decoder {
    fn new(graph: Arc<Graph>) -> Self {
        let (k, n) = (graph.source_symbols(), graph.encoding_symbols());
        let mut checks_of = vec![Vec::new(); n as usize];
        let mut untouched = Vec::new();
        for check in 0..n - k {
            let members = || graph.terms(check).iter().copied().chain([k + check]);
            members().for_each(|member| checks_of[member as usize].push(check));
            untouched.push((members().count() as u32, members().fold(0, |sum, m| sum ^ m)));
        }
        Self {
            graph,
            checks_of,
            values: vec![[0; WORDS]; n as usize],
            known: vec![false; n as usize],
            missing: untouched.clone(),
            untouched,
            fresh: Vec::new(),
            sources_known: 0,
            xors: 0,
            in_vain: 0,
        }
    }

    fn reset(&mut self) {
        self.values.fill([0; WORDS]);
        self.known.fill(false);
        self.missing.copy_from_slice(&self.untouched);
        self.fresh.clear();
        (self.sources_known, self.xors, self.in_vain) = (0, 0, 0);
    }

    /// Receives in this order until the file is complete, and decodes after each packet from number
    /// `patience` on. Returns how many packets it took.
    fn receive(&mut self, order: &[u32], packets: &[Packet], patience: usize) -> usize {
        for (before, &esi) in order.iter().enumerate() {
            if self.known[esi as usize] {
                self.in_vain += u32::from(esi < self.graph.source_symbols());
            } else {
                self.values[esi as usize] = packets[esi as usize];
                self.learn(esi);
            }
            if before + 1 >= patience {
                self.advance();
                if self.sources_known == self.graph.source_symbols() {
                    return before + 1;
                }
            }
        }
        order.len()
    }

    fn learn(&mut self, esi: u32) {
        self.known[esi as usize] = true;
        self.sources_known += u32::from(esi < self.graph.source_symbols());
        self.fresh.push(esi);
    }

    /// Reconstructs all packets that follow from known ones.
    fn advance(&mut self) {
        while let Some(esi) = self.fresh.pop() {
            for index in 0..self.checks_of[esi as usize].len() {
                let check = self.checks_of[esi as usize][index];
                let (missing, numbers) = &mut self.missing[check as usize];
                (*missing, *numbers) = (*missing - 1, *numbers ^ esi);
                let last = *numbers;
                // From left to right only: a redundant packet is not made again.
                let own = self.graph.source_symbols() + check;
                if *missing == 1 && last != own && !self.known[last as usize] {
                    self.reconstruct(last, check, own);
                }
            }
        }
    }

    fn reconstruct(&mut self, last: u32, check: u32, own: u32) {
        let mut value = self.values[own as usize];
        let terms = self.graph.terms(check).iter().filter(|&&term| term != last);
        for &term in terms {
            add(&mut value, &self.values[term as usize]);
            self.xors += 1;
        }
        self.values[last as usize] = value;
        self.learn(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Esi;
    use fontana_fec::study::tornado::{Peeler, Peeling};

    #[test]
    fn it_needs_what_the_peeler_needs_and_patience_at_least_as_much() {
        let mut random = SplitMix64::new(1, 1);
        let graph = graph(1000);
        let packets = encode(&graph, &mut random);
        let mut peeler = Peeler::new(Arc::clone(&graph), Peeling::OneDirectional);
        let mut decoder = Decoder::new(graph);
        let mut order: Vec<u32> = (0..2000).collect();
        for _ in 0..5 {
            shuffle(&mut order, &mut random);
            peeler.reset();
            let needed = 1 + order
                .iter()
                .position(|&esi| {
                    peeler.push(Esi(esi)).unwrap();
                    peeler.is_complete()
                })
                .unwrap();
            for patience in [0, 1060, 1500] {
                decoder.reset();
                assert_eq!(decoder.receive(&order, &packets, patience), needed.max(patience));
                assert!(decoder.values[..1000] == packets[..1000]);
            }
        }
    }
}
