//! `df.patient`: decoding after each packet, or when it is likely to succeed, as the product's
//! receiver does it.

use super::tornado::{SOURCE_SYMBOLS, graph};
use crate::bytes::{ByteRunner, Originals, Pump};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::session::{LISTENERS_FIRST, Session};
use crate::timing::{median, seconds};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::study::tornado::{Peeler, Peeling};
use fontana_fec::{Esi, FecScheme, Oti};
use fontana_proto::{
    Datagram, DatagramBatch, DecodePolicy, Driver, Ecn, Effect, Endpoint, Fcast, Finished, Instant,
    JobRunner, ObjectOrder, Port, ReceiveDone, ReceiveJob, ReceiverEvent, SplitMix64,
    SubscriptionLimits, SymbolOrganization, TransmissionSchedule,
};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Packets beyond k that a patient receiver waits for: 1.06 k.
const MARGIN: u32 = SOURCE_SYMBOLS * 6 / 100;

/// Bytes of a symbol.
const SYMBOL: u16 = 1024;
/// Any rate: the session is not run in real time.
const RATE: u64 = 100_000_000;
/// Several times what a reception takes at this rate.
const LIMIT: Duration = Duration::from_secs(2);

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.patient",
    paper: "digital fountain, section VII",
    what: "Tornado Z with packets of 1024 bytes in random order, from the real sender to the real receiver, \
           which decodes by the policy `Incremental`, after each packet from k on, or `Patient`, when 1.06 k \
           packets are there and after each one more. Processor time of all decoding and of the hash that \
           verifies it, alternating; packets and attempts, counted; and the source packets that the paper's \
           decoder would have reconstructed before they arrive. 101 receptions (quick: 15).",
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
    /// Attempts to decode, the last of which succeeded.
    attempts: u32,
    /// Source packets that arrive when the paper's decoder has reconstructed them.
    in_vain: u32,
    seconds: f64,
}

fn run(case: &Case) -> Vec<Decoding> {
    let mut random = case.stream(0);
    let Some(mut file) = File::draw(SOURCE_SYMBOLS, &mut random) else { return Vec::new() };
    let mut rows = Vec::new();
    for trial in 0..case.scale.pick(15, 101) {
        let mut ways = [
            (INCREMENTAL, DecodePolicy::Incremental),
            (PATIENT, DecodePolicy::Patient { margin: MARGIN }),
        ];
        // The second receiver runs with the caches that the first one filled.
        ways.rotate_left(trial as usize % 2);
        for (way, policy) in ways {
            let Some(Reception { arrived, attempts, seconds }) = file.receive(policy, trial.into())
            else {
                continue;
            };
            let patience = if way == PATIENT { SOURCE_SYMBOLS + MARGIN } else { 0 };
            let in_vain = in_vain(SOURCE_SYMBOLS, &arrived, patience as usize);
            let (way, packets) = (way.into(), arrived.len() as u64);
            rows.push(Decoding { trial, way, packets, attempts, in_vain, seconds });
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
            "incremental decoding as in the paper: source packets that were reconstructed and then arrive, mean",
            quote("reconstructed source data may later arrive intact", "section VII-C"),
            Target::AtLeast(1.0),
            |rows: &[Decoding]| average(rows, INCREMENTAL, |row| row.in_vain.into()),
        ),
        Claim::own(
            "attempts",
            "what waiting saves: attempts of a patient receiver over those of an incremental one, means",
            Target::AtMost(0.25),
            0.0,
            |rows: &[Decoding]| {
                let attempts = |way| average(rows, way, |row| row.attempts.into());
                attempts(PATIENT).over(attempts(INCREMENTAL))
            },
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

/// Of the packets that arrived, those source packets that a decoder has reconstructed before. It is
/// the paper's, which peels from left to right only, after each packet from number `patience` on.
fn in_vain(source_symbols: u32, arrived: &[Esi], patience: usize) -> u32 {
    let mut peeler = Peeler::new(graph(source_symbols), Peeling::OneDirectional);
    let mut in_vain = 0;
    for (before, &esi) in arrived.iter().enumerate() {
        in_vain += u32::from(before >= patience && esi.0 < source_symbols && peeler.knows(esi));
        // All of these are encoding symbols of the block.
        let _ = peeler.push(esi);
    }
    in_vain
}

/// A file in one block of Tornado Z, sent in random order.
struct File {
    session: Session,
    originals: Arc<Originals>,
    pump: Pump,
}

/// A reception of the file.
struct Reception {
    /// Distinct symbols, in the order of their arrival.
    arrived: Vec<Esi>,
    attempts: u32,
    /// Processor time of decoding; `NAN` if the result is wrong.
    seconds: f64,
}

impl File {
    fn draw(source_symbols: u32, random: &mut SplitMix64) -> Option<Self> {
        let scheme = FecScheme::Tornado(Tornado {
            max_source_block_length: source_symbols,
            code: TornadoCode::Z,
        });
        let transfer_length = u64::from(source_symbols) * u64::from(SYMBOL);
        let oti = Oti { transfer_length, symbol_size: SYMBOL, scheme };
        let (originals, objects) = Originals::draw(&[oti], random)?;
        let schedule = TransmissionSchedule::Fcast(Fcast {
            organization: SymbolOrganization::AllOnEach,
            object_order: ObjectOrder::Random,
            stretch_factor: 2,
            anticipated_layers: 0,
        });
        let session = Session::of(objects, RATE, random.next_u64())?;
        let session = Session { schedule, manifest_is_known: true, ..session };
        let originals = Arc::new(originals);
        Some(Self { session, pump: Pump::new(Arc::clone(&originals)), originals })
    }

    /// A reception without losses; each `number` has an order of its own. `None` if it does not
    /// end.
    fn receive(&mut self, policy: DecodePolicy, number: u64) -> Option<Reception> {
        const SENDER: SocketAddr =
            SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7701);
        let session = Session { policy, ..self.session.clone() };
        let mut sender = Driver::new(session.sender(number)?, session.runner());
        let receiver = session.receiver(SubscriptionLimits::default());
        let mut receiver = Driver::new(receiver, Decoder::new(&self.originals));
        let (mut at, mut packet) = (Instant::ZERO + LISTENERS_FIRST, Vec::new());
        let mut arrived = Vec::new();
        while at < Instant::ZERO + LIMIT {
            if receiver.endpoint.poll_timeout().is_some_and(|due| due <= at) {
                receiver.endpoint.handle_timeout(at);
            }
            sender.endpoint.handle_timeout(at);
            while let Some(effect) = sender.poll(at, &DatagramBatch::EMPTY).ok()? {
                let Effect::Transmit { symbol, .. } = effect else { continue };
                packet.clear();
                packet.extend_from_slice(sender.header());
                if let Some(symbol) = symbol {
                    self.pump.write(&symbol, &mut packet);
                    arrived.push(symbol.esi);
                }
                let datagram = Datagram {
                    from: SENDER,
                    port: Port::BASE,
                    ecn: Ecn::NotEct,
                    dropped_before: 0,
                    payload: 0..packet.len() as u32,
                };
                let batch = DatagramBatch::one(&packet, &datagram);
                receiver.endpoint.handle_datagrams(at, &batch);
                while let Some(effect) = receiver.poll(at, &batch).ok()? {
                    if matches!(effect, Effect::Event(ReceiverEvent::Complete)) {
                        let decoder = receiver.runner;
                        let is_right = decoder.runner.has_everything();
                        let seconds = if is_right { decoder.seconds } else { f64::NAN };
                        return Some(Reception { arrived, attempts: decoder.attempts, seconds });
                    }
                }
            }
            at = sender.endpoint.poll_timeout()?.max(at);
        }
        None
    }
}

/// Runs a receiver's jobs on bytes, and takes the time of those that decode.
struct Decoder {
    runner: ByteRunner,
    attempts: u32,
    seconds: f64,
}

impl Decoder {
    fn new(originals: &Arc<Originals>) -> Self {
        Self { runner: ByteRunner::new(Arc::clone(originals)), attempts: 0, seconds: 0.0 }
    }
}

impl JobRunner<ReceiveJob> for Decoder {
    type Done = ReceiveDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, &'static str> {
        match &job {
            ReceiveJob::Solve { .. } => self.attempts += 1,
            ReceiveJob::Recover { .. } => {}
            _ => return self.runner.run(now, job, batch),
        }
        let mut finished = Ok(None);
        self.seconds += seconds(|| finished = self.runner.run(now, job, batch));
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_needs_what_the_peeler_needs_and_patience_at_least_as_much() {
        const K: u32 = 1000;
        let mut file = File::draw(K, &mut SplitMix64::new(1, 1)).unwrap();
        for number in 0..5 {
            let incremental = file.receive(DecodePolicy::Incremental, number).unwrap();
            let mut peeler = Peeler::new(graph(K), Peeling::Joint);
            let complete = incremental.arrived.iter().position(|&esi| {
                peeler.push(esi).unwrap();
                peeler.is_complete()
            });
            // With the last packet, and not before.
            let needed = incremental.arrived.len();
            assert_eq!(complete, Some(needed - 1));
            assert_eq!(incremental.attempts as usize, needed + 1 - K as usize);
            assert!(incremental.seconds > 0.0);
            for margin in [60, 120] {
                let patient = file.receive(DecodePolicy::Patient { margin }, number).unwrap();
                let waited = K as usize + margin as usize;
                assert_eq!(patient.arrived.len(), needed.max(waited));
                assert_eq!(patient.attempts as usize, 1 + needed.saturating_sub(waited));
                assert!(patient.arrived.starts_with(&incremental.arrived));
                assert!(patient.seconds > 0.0);
            }
        }
    }

    #[test]
    fn what_was_reconstructed_and_then_arrives_is_in_vain() {
        let k = 1000;
        let mut all: Vec<Esi> = (k..2 * k).chain(0..k).map(Esi).collect();
        // All checks together recover nothing; with source packets, most of the others.
        let among_first = in_vain(k, &all, 0);
        assert!((1..k).contains(&among_first), "{among_first}");
        assert_eq!(in_vain(k, &all, all.len()), 0);
        all.truncate(k as usize);
        assert_eq!(in_vain(k, &all, 0), 0);
    }
}
