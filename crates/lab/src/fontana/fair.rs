//! `fo.fair`: sessions with congestion control that share a bottleneck with TCP or with each other.
//! To compare, Reno, to which the RFCs of that time are fair, shares it with CUBIC, today's TCP.

use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::scene::Peer;
use crate::session::{HEADER_BYTES, LISTENERS_FIRST, SYMBOL_BYTES, Session};
use crate::statistics::mean;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{Driver, Instant, SubscriptionLimits, presets};
use fontana_sim::{
    Dumbbell, Either, FlowId, HostConfig, LinkConfig, NodeId, NodePair, Simulation,
    SimulationConfig, TcpConfig, TcpVariant, Traffic,
};
use fontana_wire::{CongestionControl, LayerRates};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// 20 Mbit/s.
const BOTTLENECK: u64 = 2_500_000;
const QUEUE: Duration = Duration::from_millis(100);
/// Delay of joins on each hop. Leaves take ten times as long.
const GRAFT: Duration = Duration::from_millis(5);
/// Seconds until measurements start.
const SETTLED: u32 = 120;
/// An object that no receiver completes during a run.
const ENDLESS_SYMBOLS: u32 = 5_000_000;

const CONTROLS: [&str; 4] = ["webrc", "webrc_fast", "rlc", "flid_sl"];
/// Rivals of one session at the bottleneck: name, number of other sessions, and variants of TCP.
const RIVALS: [Rival; 3] = [
    Rival { name: "TCP CUBIC", sessions: 0, tcp: &[TcpVariant::Cubic] },
    Rival { name: "TCP Reno", sessions: 0, tcp: &[TcpVariant::Reno] },
    Rival { name: "7 of its kind", sessions: 7, tcp: &[] },
];
/// The last case, without a session.
const TCP_ALONE: (&str, Rival) = (
    "TCP Reno",
    Rival { name: "TCP CUBIC", sessions: 0, tcp: &[TcpVariant::Reno, TcpVariant::Cubic] },
);

#[derive(Clone, Copy, Debug)]
struct Rival {
    name: &'static str,
    sessions: u32,
    tcp: &'static [TcpVariant],
}

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fo.fair",
    paper: "digital fountain, section VII-A; RFC 3738",
    what: "A bottleneck of 20 Mbit/s with a queue of 100 ms and a round trip of 60 ms, shared for 1 800 s \
           of virtual time (quick: 480 s, or 240): a session of each congestion control and one TCP flow (models of \
           CUBIC and Reno), or eight sessions; and a flow of Reno beside one of CUBIC. After 120 s: the \
           session's throughput over the flow's (none among sessions: 0), Jain's index, the share of the \
           bottleneck that is used, and what it drops; and when the sessions first had half of their fair \
           share over 10 s (never, or no session: the whole run).",
    sweep: &SweepOf {
        name: "fo.fair",
        kind: Kind::Counted,
        cases: |_| (CONTROLS.len() * RIVALS.len()) as u32 + 1,
        run: |case| share(case).into_iter().collect(),
    },
    claims,
    exhibits: |_| Vec::new(),
};

fn congestion(name: &str) -> Option<CongestionControl> {
    let packet = SYMBOL_BYTES + HEADER_BYTES;
    // A quarter of a Mbit/s, doubled up to 32: every session could have the bottleneck to itself.
    let layers = LayerRates::geometric(31_250, 512, 8).ok()?;
    Some(match name {
        "webrc" => CongestionControl::Webrc(presets::webrc(BOTTLENECK as u32, packet).ok()?),
        "webrc_fast" => {
            CongestionControl::Webrc(presets::webrc_fast(BOTTLENECK as u32, packet).ok()?)
        }
        "rlc" => CongestionControl::Rlc(presets::rlc(layers)),
        _ => CongestionControl::FlidSl(presets::flid_sl(layers)),
    })
}

/// A run, and bytes on the wire that each party has received by each second.
struct Sharing {
    run: Simulation<Peer>,
    sessions: Vec<NodeId>,
    flows: Vec<FlowId>,
    received: Vec<Vec<f64>>,
}

impl Sharing {
    /// `congestion` is that of the sessions; without it there are none.
    fn new(case: &Case, congestion: Option<&CongestionControl>, rival: Rival) -> Option<Self> {
        let symbols = u64::from(ENDLESS_SYMBOLS);
        let oti = Oti {
            transfer_length: symbols * u64::from(SYMBOL_BYTES),
            symbol_size: SYMBOL_BYTES,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: 50_000 }),
        };
        let sessions = congestion.map_or(0, |_| 1 + rival.sessions);
        let link = LinkConfig { graft: GRAFT, prune: 10 * GRAFT, ..LinkConfig::default() };
        let bottleneck = LinkConfig {
            graft: GRAFT,
            prune: 10 * GRAFT,
            ..LinkConfig::bottleneck(BOTTLENECK, QUEUE, Duration::from_millis(10))
        };
        // A little noise, without which regular traffic at a full queue synchronizes.
        let access = LinkConfig {
            delay: Duration::from_millis(10),
            jitter: Duration::from_micros(200),
            ..link
        };
        let Dumbbell { topology, pairs, .. } =
            Dumbbell::new(sessions + rival.tcp.len() as u32, bottleneck, access);
        let mut random = case.stream(0);
        let config = SimulationConfig::new(random.next_u64());
        let mut run = Simulation::new(topology, config, ());
        let (of_sessions, of_flows) = pairs.split_at(sessions as usize);
        for &NodePair { from: near, to: far } in of_sessions {
            let session = Session::new(&[oti], BOTTLENECK, random.next_u64())?;
            let session = session.with_congestion(congestion?.clone());
            // Sessions do not begin together.
            let start = Duration::from_millis(u64::from(random.below(5_000)));
            let sends = HostConfig::sender(session.cap())
                .starting_at(Instant::ZERO + LISTENERS_FIRST + start);
            let sender = Driver::new(session.sender(0)?, session.runner());
            run.attach(near, Either::Left(sender), sends);
            let receiver = session.receiver(SubscriptionLimits::default());
            let receiver = Driver::new(receiver, session.runner());
            let listens = HostConfig::receiver([near]).starting_at(Instant::ZERO + start);
            run.attach(far, Either::Right(receiver), listens);
        }
        let flows = of_flows.iter().zip(rival.tcp).filter_map(|(&pair, &variant)| {
            let traffic = Traffic::Tcp(TcpConfig::new(variant));
            run.add_flow(pair, traffic, Instant::ZERO, Instant::from_nanos(u64::MAX))
        });
        let flows = flows.collect();
        let sessions = of_sessions.iter().map(|pair| pair.to).collect();
        Some(Self { run, sessions, flows, received: Vec::new() })
    }

    /// Bytes on the wire so far: of the sessions, then of the flows.
    fn bytes(&self) -> Vec<f64> {
        let session = |&node: &NodeId| {
            let stats = self.run.host(node)?.right()?.endpoint.stats();
            Some((stats.payload_bytes + 28 * stats.datagrams) as f64)
        };
        let flow = |&flow: &FlowId| {
            let segment = TcpConfig::new(TcpVariant::Reno).segment_bytes;
            Some(self.run.flow(flow)?.delivered as f64 * f64::from(segment))
        };
        let sessions = self.sessions.iter().filter_map(session);
        sessions.chain(self.flows.iter().filter_map(flow)).collect()
    }

    fn run_for(&mut self, seconds: u32) -> Option<()> {
        for second in 0..=u64::from(seconds) {
            self.run.run_until(Instant::ZERO + Duration::from_secs(second)).ok()?;
            self.received.push(self.bytes());
        }
        Some(())
    }

    /// Bytes per second of each between two seconds.
    fn rates(&self, from: usize, until: usize) -> Vec<f64> {
        let (Some(before), Some(after)) = (self.received.get(from), self.received.get(until))
        else {
            return Vec::new();
        };
        let span = (until - from) as f64;
        before.iter().zip(after).map(|(before, after)| (after - before) / span).collect()
    }

    /// The first second at which the sessions together had half their fair share over ten seconds;
    /// the last one if they never had.
    fn convergence(&self) -> u32 {
        let parties = self.sessions.len() + self.flows.len();
        let fair = BOTTLENECK as f64 * self.sessions.len() as f64 / parties as f64;
        let has_half = |second: &usize| {
            let rates = self.rates(second.saturating_sub(10), *second);
            let sum = rates.iter().take(self.sessions.len()).sum::<f64>();
            sum > 0.0 && sum >= fair / 2.0
        };
        let last = self.received.len().saturating_sub(1);
        (10..last).find(has_half).unwrap_or(last) as u32
    }
}

/// A bottleneck, and how it was shared.
#[derive(Serialize, Deserialize)]
struct Shared {
    control: String,
    against: String,
    seconds: u32,
    /// Throughput of the session over that of the flow; 0 without a flow.
    ratio: f64,
    jain: f64,
    used: f64,
    dropped: f64,
    convergence_seconds: u32,
}

fn share(case: &Case) -> Option<Shared> {
    let index = case.index as usize;
    let control = CONTROLS.get(index / RIVALS.len()).copied();
    let (control, rival, congestion) = match control {
        Some(control) => (control, RIVALS[index % RIVALS.len()], Some(congestion(control)?)),
        None => (TCP_ALONE.0, TCP_ALONE.1, None),
    };
    // Eight sessions take ten times as long to simulate as one.
    let quick = if rival.sessions > 0 { 240 } else { 480 };
    let seconds = case.scale.pick(quick, 1_800);
    let mut sharing = Sharing::new(case, congestion.as_ref(), rival)?;
    sharing.run_for(seconds)?;
    let rates = sharing.rates(SETTLED as usize, seconds as usize);
    // Near to far: the first link of a dumbbell.
    let link = sharing.run.link(fontana_sim::LinkId(0))?.stats();
    let ratio = if sharing.flows.is_empty() { 0.0 } else { rates.first()? / rates.last()? };
    let square = mean(&rates.iter().map(|rate| rate * rate).collect::<Vec<_>>());
    Some(Shared {
        control: control.into(),
        against: rival.name.into(),
        seconds,
        ratio,
        jain: mean(&rates).powi(2) / square,
        used: rates.iter().sum::<f64>() / BOTTLENECK as f64,
        dropped: link.queue_drops as f64 / link.offered as f64,
        convergence_seconds: sharing.convergence(),
    })
}

fn claims() -> Vec<Claim> {
    let of = |number: fn(&Shared) -> f64, control: &'static str, against: &'static str| {
        move |rows: &[Shared]| {
            rows.number(|row| row.control == control && row.against == against, number)
        }
    };
    let ratio_of = move |control, against| of(|row| row.ratio, control, against);
    let mut claims = Vec::new();
    for control in ["webrc", "webrc_fast"] {
        let ratio = ratio_of(control, "TCP CUBIC");
        claims.push(Claim::own(
            format!("{control}@cubic"),
            format!(
                "throughput of {control} beside one TCP CUBIC flow: the larger over the smaller"
            ),
            Target::AtMost(2.0),
            0.0,
            move |rows| {
                let ratio = ratio(rows);
                ratio.max(1.0 / ratio)
            },
        ));
        let (ratio, renos) = (ratio_of(control, "TCP Reno"), ratio_of("TCP Reno", "TCP CUBIC"));
        claims.push(Claim::own(
            format!("{control}@reno"),
            format!(
                "throughput of {control} over that of one TCP Reno flow, over what it is for a flow of CUBIC \
                "
            ),
            Target::AtMost(1.0),
            0.0,
            move |rows| ratio(rows) * renos(rows),
        ));
        claims.push(Claim::own(
            format!("{control}@jain"),
            format!("Jain's index of eight sessions of {control}"),
            Target::AtLeast(0.9),
            0.0,
            of(|row| row.jain, control, "7 of its kind"),
        ));
        claims.push(Claim::own(
            format!("{control}@dropped"),
            format!("what the bottleneck drops, of {control} and one CUBIC flow"),
            Target::AtMost(0.05),
            0.0,
            of(|row| row.dropped, control, "TCP CUBIC"),
        ));
    }
    claims
}
