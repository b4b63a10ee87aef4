//! `bm.protocol`: every packet of a short session with three receivers.

use super::missing::Repair;
use super::packet::{BmtpData, BmtpStatus, PAYLOAD_BYTES, UDP_IP_BYTES};
use super::rate::PacketRate;
use super::resends::ResendShare;
use super::run::{BmtpHost, BmtpHosts, MOST_WEIGHT};
use super::sender::BmtpParameters;
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, smallest};
use fontana_proto::Instant;
use fontana_sim::{
    HostEvent, LinkConfig, LossModel, NodeId, Observer, Packet, QueueLength, Simulation,
    SimulationConfig, Topology,
};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::time::Duration;

/// A tenth of the paper's intervals.
const CONTROL_MS: u64 = 1_000;
const CONTROL_INTERVAL: Duration = Duration::from_millis(CONTROL_MS);
/// The table is of one seed, whatever that of the other experiments.
const SEED: u64 = 3;
const SECONDS: u64 = 8;
const THERE: Duration = Duration::from_millis(50);
/// Shorter than the way there, so that no status packet arrives when another packet is sent.
const BACK: Duration = Duration::from_millis(45);
const BEGINS: Instant = Instant::from_nanos(1_000_000);

/// The table, which was checked by hand against sections 3 to 5.
const TABLE: &str = include_str!("trace.txt");

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.protocol",
    paper: "BMTP, sections 3 to 5",
    what: "Every packet that the sender sends and receives in a session of 24 payloads at 10 packets a second, \
           with a control interval of 1 s, N = 1 at the beginning, and three receivers: A loses nothing, B the \
           fourth packet, and C, which receives 5 packets a second from a queue of two, every second one.",
    sweep: &SweepOf {
        name: "bm.protocol",
        kind: Kind::Counted,
        cases: |_| 1,
        run: |_: &Case| trace().unwrap_or_default(),
    },
    claims,
    exhibits: |_| Vec::new(),
};

/// A packet that the sender sends or receives. `NAN`: it has no such field.
#[derive(Clone, Serialize, Deserialize)]
struct TraceRow {
    ms: f64,
    /// Where it is from: `sender`, or a receiver.
    from: String,
    /// `data`, `resend`, `empty`, `status` or `nak`.
    kind: String,
    /// N.
    divisor: f64,
    /// Packet number.
    packet: f64,
    /// Number of the payload that is sent or requested.
    payload: f64,
    /// Counts of a status packet.
    interval: f64,
    received: f64,
    lost: f64,
}

/// Records the packets of the sender.
struct TraceLog {
    sender: NodeId,
    next_payload: u64,
    rows: Vec<TraceRow>,
}

impl TraceLog {
    fn row(now: Instant, from: &str, kind: &str) -> TraceRow {
        TraceRow {
            ms: now.saturating_since(BEGINS).as_micros() as f64 / 1e3,
            from: from.into(),
            kind: kind.into(),
            divisor: f64::NAN,
            packet: f64::NAN,
            payload: f64::NAN,
            interval: f64::NAN,
            received: f64::NAN,
            lost: f64::NAN,
        }
    }
}

impl<Event: HostEvent> Observer<Event> for TraceLog {
    fn on_transmit(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let Some((header, _)) = BmtpData::parse(&packet.header).filter(|_| node == self.sender)
        else {
            return;
        };
        let kind = match header.data {
            _ if packet.symbol_bytes == 0 => "empty",
            data if data < self.next_payload => "resend",
            _ => "data",
        };
        self.next_payload += u64::from(kind == "data");
        self.rows.push(TraceRow {
            divisor: header.divisor.into(),
            packet: header.packet as f64,
            payload: header.data as f64,
            ..Self::row(now, "sender", kind)
        });
    }

    fn on_deliver(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let status = (node == self.sender).then(|| BmtpStatus::parse(&packet.header)).flatten();
        let Some(BmtpStatus { interval_ms, received, lost, nak }) = status else { return };
        let from = NAMES.iter().find(|(node, _)| *node == packet.source).map_or("", |name| name.1);
        self.rows.push(TraceRow {
            payload: nak.map_or(f64::NAN, |nak| nak as f64),
            interval: interval_ms.into(),
            received: received as f64,
            lost: lost as f64,
            ..Self::row(now, from, if nak.is_some() { "nak" } else { "status" })
        });
    }
}

/// The receivers' nodes: the sender's is 0, the router's 1.
const NAMES: [(NodeId, &str); 3] = [(NodeId(2), "A"), (NodeId(3), "B"), (NodeId(4), "C")];

fn trace() -> Option<Vec<TraceRow>> {
    let mut topology = Topology::new();
    let [sender, router] = [(); 2].map(|()| topology.add_node());
    topology.add_link(sender, router, LinkConfig::default());
    topology.add_link(router, sender, LinkConfig::wire(BACK));
    let wire = LinkConfig::wire(THERE);
    let packet_bytes = UDP_IP_BYTES + BmtpData::BYTES as u32 + u32::from(PAYLOAD_BYTES);
    let paths = [
        wire.clone(),
        wire.clone().with_loss(LossModel::Periodic { period: 1_000, first: 3 }),
        LinkConfig {
            rate_bytes_per_second: Some(u64::from(5 * packet_bytes)),
            queue: QueueLength::Packets(2),
            ..wire
        },
    ];
    let receivers = topology.add_nodes(paths.len() as u32);
    for (&receiver, path) in receivers.iter().zip(paths) {
        topology.add_link(router, receiver, path);
        topology.add_link(receiver, router, LinkConfig::default());
    }
    let log = TraceLog { sender, next_payload: 0, rows: Vec::new() };
    let mut run: Simulation<BmtpHost, TraceLog> =
        Simulation::new(topology, SimulationConfig::new(SEED), log);
    let parameters = BmtpParameters {
        control_interval: CONTROL_INTERVAL,
        first_rate: PacketRate::per_second(10),
        first_divisor: 1,
        share: ResendShare::Half,
        repair: Repair::Plain,
        payloads: Some(24),
    };
    let hosts = BmtpHosts {
        sender,
        receivers: &receivers,
        begins: BEGINS,
        parameters,
        most_weight: MOST_WEIGHT,
        seed: SEED,
    };
    hosts.attach(&mut run);
    run.run_until(Instant::ZERO + Duration::from_secs(SECONDS)).ok()?;
    Some(run.observer().rows.clone())
}

/// The line of the table for a row.
fn line(row: &TraceRow) -> String {
    let mut line = format!("{:9.2} {:6} {:6}", row.ms, row.from, row.kind);
    for number in [row.divisor, row.packet, row.payload, row.interval, row.received, row.lost] {
        // Writing to a string does not fail.
        let _ = match number {
            none if none.is_nan() => write!(line, " {:>5}", "-"),
            number => write!(line, " {number:5}"),
        };
    }
    line
}

/// Lines that differ from the table, are not in it, or lack.
fn lines_that_differ(rows: &[TraceRow]) -> f64 {
    let expected: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
    let differ = rows.iter().zip(&expected).filter(|(row, expected)| line(row) != **expected);
    (differ.count() + rows.len().abs_diff(expected.len())) as f64
}

/// What each announced divisor, at its first packet, is off by from what arrived in the two control
/// intervals before: the largest difference.
fn divisor_off(rows: &[TraceRow]) -> f64 {
    let sent: Vec<&TraceRow> = rows.iter().filter(|row| row.from == "sender").collect();
    let changes = sent.windows(2).filter(|pair| pair[0].divisor != pair[1].divisor);
    largest(changes.map(|pair| {
        let control = CONTROL_MS as f64;
        let until = (pair[1].ms / control).floor() * control;
        let from = until - 2.0 * control;
        let within = |row: &&TraceRow| (from..until).contains(&row.ms);
        let answers = rows.iter().filter(within).filter(|row| row.from != "sender").count();
        let of_sender = rows.iter().filter(within).filter(|row| row.from == "sender");
        let per_weight: f64 = of_sender.map(|row| 1.0 / row.divisor).sum();
        let divisor = match answers {
            0 => pair[0].divisor / 2.0,
            answers => answers as f64 / per_weight,
        };
        (pair[1].divisor - divisor).abs()
    }))
}

/// The least time from when a payload was sent first to a request for it.
fn least_wait(rows: &[TraceRow]) -> f64 {
    smallest(rows.iter().filter(|row| row.kind == "nak").map(|nak| {
        let is_sent = |row: &TraceRow| row.kind == "data" && row.payload == nak.payload;
        nak.ms - rows.number(is_sent, |row| row.ms)
    }))
}

/// Payloads that are sent again without a request since they were sent before.
fn unasked(rows: &[TraceRow]) -> f64 {
    let is_unasked = |&(index, row): &(usize, &TraceRow)| {
        let of_payload = rows[..index].iter().rev().filter(|before| before.payload == row.payload);
        let requests = of_payload.take_while(|before| before.from != "sender");
        row.kind == "resend" && requests.count() == 0
    };
    rows.iter().enumerate().filter(is_unasked).count() as f64
}

/// Packets per second of the data after the first reports.
fn later_rate(rows: &[TraceRow]) -> f64 {
    let reported = rows.number(|row| row.from == "C" && row.interval > 0.0, |row| row.ms);
    let is_later =
        |row: &TraceRow| row.from == "sender" && row.kind != "empty" && row.ms > reported;
    let times = rows.numbers(is_later, |row| row.ms);
    let spacing = |pair: &[f64]| pair[1] - pair[0];
    1_000.0 / smallest(times.windows(2).map(spacing))
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::own(
            "table",
            "packets that differ from the table that was checked by hand",
            Target::Equal(0.0),
            0.0,
            lines_that_differ,
        ),
        Claim::own(
            "divisor",
            "a new N is the status packets of two control intervals over the sum of 1/N, or half of N without any: \
             largest difference",
            Target::AtMost(0.5),
            0.0,
            divisor_off,
        ),
        Claim::shape(
            "wait",
            "milliseconds from when a packet was sent to the first request for it, the least",
            quote("wait for a control interval before sending a NAK", "section 4"),
            Target::AtLeast(1_000.0),
            least_wait,
        ),
        Claim::own(
            "asked",
            "packets that are sent again without a new request",
            Target::Equal(0.0),
            0.0,
            unasked,
        ),
        Claim::own(
            "rate",
            "packets per second after the first report of the slowest receiver, the most: 105 % of the 11 \
             packets that it counts in 2 s",
            Target::Equal(5.775),
            0.001,
            later_rate,
        ),
    ]
}
