//! Rows of runs, and the sweep that table 1 and the figures show.

use super::packet::Class;
use super::run::{LiCounts, LiNetwork};
use super::setting::{FecUse, LiConfig, Protocol};
use crate::estimate::Estimate;
use crate::experiment::{Case, Kind, Scale, SweepOf};
use fontana_sim::Multicast;
use serde::{Deserialize, Serialize};

/// Networks of a run with all trials (section 4.2).
pub(super) const GRAPHS: u32 = 10;
/// Those of a quick run: the fewest that have a standard error.
pub(super) const QUICK_GRAPHS: u32 = 2;
/// Group sizes of figures 4 to 7, and those of a quick run.
pub(super) const GROUPS: [u32; 6] = [1, 7, 14, 28, 56, 112];
const QUICK_GROUPS: [u32; 5] = [1, 7, 14, 28, 112];
/// Segments of a quick run, and the least number of groups.
const QUICK_SEGMENTS: u32 = 224;
const LEAST_GROUPS: u32 = 4;

pub(super) const BROADCAST: &str = "broadcast";
pub(super) const PRUNED: &str = "pruned";
/// The protocol of runs without losses.
pub(super) const LOSSLESS: &str = "lossless";

pub(super) const OTERS: &str = Protocol::Oters.name(FecUse::Reactive);
pub(super) const OTERS_PRO: &str = Protocol::Oters.name(FecUse::Proactive);
pub(super) const TMTP: &str = Protocol::TmtpUni.name(FecUse::Reactive);
pub(super) const TMTP_PRO: &str = Protocol::TmtpUni.name(FecUse::Proactive);
pub(super) const SRM: &str = Protocol::Srm.name(FecUse::Reactive);
pub(super) const SRM_PRO: &str = Protocol::Srm.name(FecUse::Proactive);
/// All forms of the protocols.
pub(super) const FORMS: [&str; 6] = [OTERS, OTERS_PRO, TMTP, TMTP_PRO, SRM, SRM_PRO];

/// A run.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct LiRow {
    /// Which hops forward multicast.
    pub(super) multicast: String,
    /// The protocol and its use of FEC.
    pub(super) protocol: String,
    pub(super) k: u32,
    /// The network.
    pub(super) graph: u32,
    /// Packet-hops for each segment.
    pub(super) payload: f64,
    pub(super) request: f64,
    /// Reactive and proactive.
    pub(super) repair: f64,
    pub(super) proactive: f64,
    /// Packets of requests and of repairs for each segment.
    pub(super) requests_sent: f64,
    pub(super) repairs_sent: f64,
    pub(super) ms: f64,
    /// Thousands of packet-hops of session messages.
    pub(super) session: f64,
    /// All members have received everything.
    pub(super) is_complete: bool,
}

impl LiRow {
    pub(super) fn of(config: &LiConfig, protocol: &str, graph: u32, counts: &LiCounts) -> Self {
        let sent = |class: Class| counts.packets[class as usize];
        Self {
            multicast: multicast_name(config.multicast).into(),
            protocol: protocol.into(),
            k: config.group_segments,
            graph,
            payload: counts.payload(),
            request: counts.requests(),
            repair: counts.repairs(),
            proactive: counts.hops[Class::Proactive as usize],
            requests_sent: sent(Class::Request),
            repairs_sent: sent(Class::Repair) + sent(Class::Proactive),
            ms: counts.ms,
            session: counts.session_kilo,
            is_complete: counts.is_complete(),
        }
    }

    /// Bandwidth (section 4.1): packet-hops for each segment, without session messages.
    pub(super) fn total(&self) -> f64 {
        self.payload + self.recovery()
    }

    /// Packet-hops of requests and repairs.
    pub(super) fn recovery(&self) -> f64 {
        self.request + self.repair
    }

    /// Bandwidth-latency product (section 4.1).
    pub(super) fn product(&self) -> f64 {
        self.total() * self.ms / 1e3
    }
}

const fn multicast_name(multicast: Multicast) -> &'static str {
    match multicast {
        Multicast::Broadcast => BROADCAST,
        Multicast::Pruned => PRUNED,
    }
}

/// A number of rows.
pub(super) type Number = fn(&LiRow) -> f64;

/// Runs of one protocol with one group size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Curve {
    pub(super) protocol: &'static str,
    pub(super) k: u32,
}

/// Without FEC.
pub(super) const fn plain(protocol: &'static str) -> Curve {
    Curve { protocol, k: 1 }
}

/// A proactive form begins at k = 1 with the plain one.
pub(super) fn curve(protocol: &'static str, k: u32) -> Curve {
    match protocol {
        OTERS_PRO if k == 1 => plain(OTERS),
        TMTP_PRO if k == 1 => plain(TMTP),
        SRM_PRO if k == 1 => plain(SRM),
        protocol => Curve { protocol, k },
    }
}

/// The rows of one kind of multicast.
#[derive(Clone, Copy)]
pub(super) struct Runs<'r> {
    rows: &'r [LiRow],
    multicast: &'static str,
}

impl<'r> Runs<'r> {
    pub(super) const fn broadcast(rows: &'r [LiRow]) -> Self {
        Self { rows, multicast: BROADCAST }
    }

    pub(super) const fn pruned(rows: &'r [LiRow]) -> Self {
        Self { rows, multicast: PRUNED }
    }

    /// The group sizes that were run, without 1.
    pub(super) fn groups(&self) -> Vec<u32> {
        let is_run = |k: &u32| self.rows.iter().any(|row| row.k == *k);
        GROUPS.into_iter().filter(|k| *k > 1 && is_run(k)).collect()
    }

    /// A number of each network.
    fn values(&self, of: Curve, number: Number) -> Vec<f64> {
        let is = |row: &&LiRow| {
            row.multicast == self.multicast && row.protocol == of.protocol && row.k == of.k
        };
        self.rows.iter().filter(is).map(number).collect()
    }

    /// Its mean over the networks.
    pub(super) fn mean(&self, of: Curve, number: Number) -> Estimate {
        Estimate::mean(&self.values(of, number))
    }

    /// The mean of the ratios of two numbers in one network.
    pub(super) fn ratio(&self, over: (Curve, Number), under: (Curve, Number)) -> Estimate {
        let (over, under) = (self.values(over.0, over.1), self.values(under.0, under.1));
        let ratios = over.iter().zip(&under).map(|(over, under)| over / under);
        Estimate::mean(&ratios.collect::<Vec<_>>())
    }

    /// The same of one number of two curves.
    pub(super) fn over(&self, over: Curve, under: Curve, number: Number) -> Estimate {
        self.ratio((over, number), (under, number))
    }
}

/// The runs of table 1 and figures 4 to 7.
pub(super) const SWEEP: SweepOf<LiRow> = SweepOf {
    name: "li.runs",
    kind: Kind::Counted,
    cases: |scale| plan(scale).len() as u32,
    run: |case| run(case).into_iter().collect(),
};

/// A planned run.
#[derive(Clone, Copy)]
struct Planned {
    graph: u32,
    multicast: Multicast,
    /// `None`: without losses.
    protocol: Option<(Protocol, FecUse)>,
    k: u32,
}

fn plan(scale: Scale) -> Vec<Planned> {
    let (multicasts, groups): (&[_], &[_]) = match scale {
        Scale::Quick => (&[Multicast::Broadcast], &QUICK_GROUPS),
        Scale::Full => (&[Multicast::Broadcast, Multicast::Pruned], &GROUPS),
    };
    let mut all = Vec::new();
    for graph in 0..scale.pick(QUICK_GRAPHS, GRAPHS) {
        for &multicast in multicasts {
            all.push(Planned { graph, multicast, protocol: None, k: 1 });
            for protocol in Protocol::ALL {
                for &k in groups {
                    for fec in [FecUse::Reactive, FecUse::Proactive] {
                        if k > 1 || fec == FecUse::Reactive {
                            all.push(Planned {
                                graph,
                                multicast,
                                protocol: Some((protocol, fec)),
                                k,
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

fn run(case: &Case) -> Option<LiRow> {
    let Planned { graph, multicast, protocol, k } = *plan(case.scale).get(case.index as usize)?;
    // Without losses, all protocols are the same.
    let (of, fec) = protocol.unwrap_or((Protocol::Oters, FecUse::Reactive));
    let table_1 = LiConfig::table_1(of, multicast);
    let config = LiConfig {
        fec,
        group_segments: k,
        segments: match case.scale {
            Scale::Quick => QUICK_SEGMENTS.max(LEAST_GROUPS * k),
            Scale::Full => table_1.segments,
        },
        loss: if protocol.is_some() { table_1.loss } else { 0.0 },
        ..table_1
    };
    let name = protocol.map_or(LOSSLESS, |(of, fec)| of.name(fec));
    run_one(case, &config, name, graph)
}

/// A run in a network that is the same for all cases with this number.
pub(super) fn run_one(case: &Case, config: &LiConfig, protocol: &str, graph: u32) -> Option<LiRow> {
    let seed = Case { index: graph, ..*case }.stream(0).next_u64();
    let counts = LiNetwork::new(config, seed).run(config, seed)?;
    Some(LiRow::of(config, protocol, graph, &counts))
}
