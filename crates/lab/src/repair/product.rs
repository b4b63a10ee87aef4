//! `li.product`: the product's endpoints in the networks of the paper, by its three numbers.

mod stream;
mod world;

use super::run::{LiCounts, LiNetwork};
use super::setting::{FecUse, LiConfig, Protocol};
use super::sweep::{Curve, GRAPHS, LiRow, Number, OTERS, QUICK_GRAPHS, Runs, SRM, TMTP, plain};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::session::{HEADER_BYTES, Session};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti, PlanCache};
use fontana_proto::report::Expected;
use fontana_proto::{Instant, SendMode, SubscriptionLimits, TransmissionSchedule};
use fontana_sim::{IdRunner, Multicast};
use std::sync::Arc;
use stream::ProductStream;
use world::{ProductContent, ProductHosts};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.product",
    paper: "FEC with reliable multicast, table 1",
    what: "The product's sender and receivers in networks like those of li.table1, drawn with other seeds, beside \
           the protocols of the paper with and without FEC. All of the content is a file of one RaptorQ block, sent \
           at 100 packets a second, or a stream, whose segments wait until their fragment of k is full. Receivers \
           report, and request what they lack from the sender, which sends what it repairs to all; with sites, \
           those of a file ask first the members that a TTL of 1 reaches. Requests include roll calls and reports, \
           session messages are heads, manifests and indexes. Ten networks (quick: two, what the claims need).",
    sweep: &SweepOf {
        name: "li.product",
        kind: Kind::Counted,
        cases: |scale| forms(scale).len() as u32 * scale.pick(QUICK_GRAPHS, GRAPHS),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

/// Group size of the paper's protocols with FEC.
const GROUP: u32 = 14;
/// Packets a second of the file's sender: as the paper's source (section 4.2).
const PACKETS_PER_SECOND: u64 = 100;

/// What runs in a network.
#[derive(Clone, Copy, Debug)]
enum ProductForm {
    /// A protocol of the paper, in groups of so many segments.
    Paper(Protocol, u32),
    /// The product, with all of the content as a file.
    File { sites: bool },
    /// The product, with fragments of so many segments.
    Stream(u32),
}

/// What the claims need, and then the others.
const FORMS: [ProductForm; 11] = [
    ProductForm::Paper(Protocol::Oters, 1),
    ProductForm::Paper(Protocol::TmtpUni, 1),
    ProductForm::Paper(Protocol::Srm, 1),
    FILE,
    FILE_WITH_SITES,
    STREAM,
    ProductForm::Paper(Protocol::Oters, GROUP),
    ProductForm::Paper(Protocol::TmtpUni, GROUP),
    ProductForm::Paper(Protocol::Srm, GROUP),
    ProductForm::Stream(28),
    ProductForm::Stream(56),
];
const QUICK_FORMS: usize = 6;
const FILE: ProductForm = ProductForm::File { sites: false };
const FILE_WITH_SITES: ProductForm = ProductForm::File { sites: true };
const STREAM: ProductForm = ProductForm::Stream(14);

fn forms(scale: Scale) -> &'static [ProductForm] {
    match scale {
        Scale::Quick => &FORMS[..QUICK_FORMS],
        Scale::Full => &FORMS,
    }
}

impl ProductForm {
    const fn name(self) -> &'static str {
        match self {
            Self::Paper(protocol, _) => protocol.name(FecUse::Reactive),
            Self::File { sites: false } => "file",
            Self::File { sites: true } => "file with sites",
            Self::Stream(_) => "stream",
        }
    }

    /// Segments of a group; `None`: all.
    const fn group(self) -> Option<u32> {
        match self {
            Self::Paper(_, group) | Self::Stream(group) => Some(group),
            Self::File { .. } => None,
        }
    }

    /// Its rows.
    fn curve(self, rows: &[LiRow]) -> Curve {
        let protocol = self.name();
        let k = || rows.iter().find(|row| row.protocol == protocol).map_or(0, |row| row.k);
        Curve { protocol, k: self.group().unwrap_or_else(k) }
    }
}

fn run(case: &Case) -> Option<LiRow> {
    let forms = forms(case.scale);
    let (graph, index) = (case.index / forms.len() as u32, case.index as usize % forms.len());
    let form = *forms.get(index)?;
    let protocol = match form {
        ProductForm::Paper(protocol, _) => protocol,
        // Of the product, the parameters of the network alone count.
        _ => Protocol::Oters,
    };
    let table_1 = LiConfig::table_1(protocol, Multicast::Broadcast);
    let group_segments = form.group().unwrap_or(table_1.segments);
    let config = LiConfig { group_segments, ..table_1 };
    let seed = Case { index: graph, ..*case }.stream(0).next_u64();
    let network = LiNetwork::new(&config, seed);
    let counts = match form {
        ProductForm::Paper(..) => network.run(&config, seed),
        ProductForm::File { sites } => file(&network, &config, seed, sites),
        ProductForm::Stream(_) => stream(&network, &config, seed),
    };
    Some(LiRow::of(&config, form.name(), graph, &counts?))
}

/// A file of one block.
fn file(network: &LiNetwork, config: &LiConfig, seed: u64, sites: bool) -> Option<LiCounts> {
    let scheme = RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 };
    let oti = Oti {
        transfer_length: u64::from(config.segments) * u64::from(LiConfig::DATA_BYTES),
        symbol_size: LiConfig::DATA_BYTES,
        scheme: FecScheme::RaptorQ(scheme),
    };
    let rate = PACKETS_PER_SECOND * u64::from(LiConfig::DATA_BYTES + HEADER_BYTES);
    let mut session = Session::new(&[oti], rate, seed)?;
    session.mode = SendMode::RepairOnDemand;
    session.schedule = TransmissionSchedule::Sequential { repair_permille: 0 };
    session.calls = true;
    let starts = Instant::ZERO + LiConfig::BEGINS;
    let expected = Expected::Count(network.members.len() as u32);
    let collection = session.collection((0, network.source.address()), expected, (false, false))?;
    let hosts = ProductHosts {
        sender: session.sender(0)?.with_collection(collection, starts),
        starts,
        cap: session.cap(),
        receiver: &|| session.receiver(SubscriptionLimits::default()),
        runner: session.runner(),
        sites,
    };
    world::run(network, config, seed, ProductContent::File, hosts)
}

/// A stream that waits for its receivers.
fn stream(network: &LiNetwork, config: &LiConfig, seed: u64) -> Option<LiCounts> {
    let stream = ProductStream {
        segments: config.segments,
        group: config.group_segments,
        receivers: network.members.len() as u32,
        seed,
    };
    let plans = Arc::new(PlanCache::new(4));
    let hosts = ProductHosts {
        sender: stream.sender(network.source.address())?,
        starts: Instant::ZERO,
        cap: ProductStream::cap(),
        receiver: &|| ProductStream::receiver(&plans),
        runner: IdRunner::new(Arc::new(stream.content()?)),
        sites: false,
    };
    world::run(network, config, seed, ProductContent::Stream, hosts)
}

fn claims() -> Vec<Claim> {
    let total: Number = LiRow::total;
    let latency: Number = |row| row.ms;
    let product: Number = LiRow::product;
    let over = |form: ProductForm, under: &'static str, number: Number| {
        move |rows: &[LiRow]| -> Estimate {
            Runs::broadcast(rows).over(form.curve(rows), plain(under), number)
        }
    };
    let own = |name: &str, text: &str, most: f64, form, under, number| {
        Claim::own(name, text, Target::AtMost(most), 0.0, over(form, under, number))
    };
    vec![
        own("file", "packet-hops of a file over OTERS'", 1.15, FILE, OTERS, total),
        own("file SRM", "packet-hops of a file over SRM's", 0.3, FILE, SRM, total),
        own("file latency", "latency of a file over TMTP-uni's", 1.0, FILE, TMTP, latency),
        own("stream", "packet-hops of a stream, k = 14, over OTERS'", 1.15, STREAM, OTERS, total),
        own("stream SRM", "packet-hops of a stream over SRM's", 0.6, STREAM, SRM, total),
        own("stream latency", "latency of a stream over TMTP-uni's", 1.0, STREAM, TMTP, latency),
        own("stream product", "product of a stream over TMTP-uni's", 1.0, STREAM, TMTP, product),
        Claim::own(
            "sites",
            "packet-hops of a file with sites over those without",
            Target::AtMost(1.05),
            0.0,
            move |rows: &[LiRow]| {
                let [with, without] = [FILE_WITH_SITES, FILE].map(|form| form.curve(rows));
                Runs::broadcast(rows).over(with, without, total)
            },
        ),
        Claim::own(
            "complete",
            "share of the runs in which all members receive everything",
            Target::Equal(1.0),
            0.0,
            |rows: &[LiRow]| {
                rows.iter().filter(|row| row.is_complete).count() as f64 / rows.len() as f64
            },
        ),
    ]
}

fn grid(rows: &[LiRow]) -> Exhibit {
    let runs = Runs::broadcast(rows);
    let is_run = |form: &ProductForm| !runs.mean(form.curve(rows), LiRow::total).value.is_nan();
    let line = |form: ProductForm| {
        let curve = form.curve(rows);
        let cell = |number: Number| format!("{:.0}", runs.mean(curve, number).value);
        vec![
            form.name().to_owned(),
            curve.k.to_string(),
            cell(|row| row.payload),
            cell(|row| row.request),
            cell(|row| row.repair),
            cell(LiRow::total),
            cell(|row| row.ms),
            cell(LiRow::product),
            cell(|row| row.session),
        ]
    };
    let columns =
        ["form", "k", "payload", "request", "repair", "total", "latency", "product", "session"];
    Exhibit::Grid(Grid {
        title: "Packet-hops for each segment, milliseconds, packet-hops times seconds, thousands of packet-hops"
            .into(),
        columns: columns.map(str::to_owned).into(),
        rows: FORMS.into_iter().filter(is_run).map(line).collect(),
    })
}
