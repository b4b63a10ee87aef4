//! FCAST's profiles (section 6.4.1), and `fc.fig16`: their effect between powerful hosts.

use super::session::{File, LARGE_FILE, LARGE_FILE_CODING, LARGE_FILE_PACKETS, LAYERS, STRETCH};
use super::transfer::{HostReception, receive_on};
use crate::chart::{Axis, Bar, Bars, Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::session::Session;
use crate::statistics::{largest, mean, smallest};
use fontana_proto::{Fcast, ObjectOrder, Profile, SymbolOrganization, TransmissionSchedule};
use fontana_sim::{LossModel, MachineConfig};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A profile of the product, in the paper's order of symbols or in its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct FcastProfile {
    pub(super) name: &'static str,
    product: Profile,
    order: Order,
    /// Whether the file is one object.
    is_single: bool,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    /// By organization 2.
    Paper(ObjectOrder),
    /// [`Profile::schedule`].
    Product,
}

pub(super) const OPT_SPEED: FcastProfile = FcastProfile {
    name: "opt_speed",
    product: Profile::Speed,
    order: Order::Paper(ObjectOrder::Random),
    is_single: false,
};
pub(super) const OPT_SPACE: FcastProfile = FcastProfile {
    name: "opt_space",
    product: Profile::Space,
    // As in fc.fig10.
    order: Order::Paper(ObjectOrder::PartlyRandom { one_in: 2 }),
    is_single: false,
};
pub(super) const OPT_CPU: FcastProfile = FcastProfile {
    name: "opt_cpu",
    product: Profile::Cpu,
    order: Order::Paper(ObjectOrder::Random),
    is_single: true,
};
pub(super) const PROFILES: [FcastProfile; 3] = [OPT_SPEED, OPT_SPACE, OPT_CPU];

/// The same profiles in the product's own order.
const PRODUCT_SPEED: FcastProfile =
    FcastProfile { name: "speed (product)", order: Order::Product, ..OPT_SPEED };
const PRODUCT_SPACE: FcastProfile =
    FcastProfile { name: "space (product)", order: Order::Product, ..OPT_SPACE };
const PRODUCT_CPU: FcastProfile =
    FcastProfile { name: "cpu (product)", order: Order::Product, ..OPT_CPU };
const ALL: [FcastProfile; 6] =
    [OPT_SPEED, OPT_SPACE, OPT_CPU, PRODUCT_SPEED, PRODUCT_SPACE, PRODUCT_CPU];

impl FcastProfile {
    /// A file sent by the profile. Its objects are those of the profiles that cut it; a single one
    /// is as long as the file.
    fn session(self, file: File, base_packets: u32, seed: u64) -> Option<Session> {
        let schedule = match self.order {
            Order::Product => self.product.schedule(file.scheme(), LAYERS.len() as u8),
            Order::Paper(object_order) => TransmissionSchedule::Fcast(Fcast {
                organization: SymbolOrganization::Segments,
                object_order,
                stretch_factor: STRETCH,
                anticipated_layers: 0,
            }),
        };
        let object_bytes = if self.is_single { file.bytes } else { file.object_bytes };
        let file = File { object_bytes, ..file };
        file.session(base_packets, schedule, self.product.policy(), seed)
    }

    /// A reception without losses on the network.
    pub(super) fn receive(
        self,
        host: MachineConfig,
        file: File,
        base_packets: u32,
        seed: u64,
    ) -> Option<HostReception> {
        let session = self.session(file, base_packets, seed)?;
        receive_on(host, &session, LossModel::None, u64::MAX)
    }
}

/// A PC of 1 GHz, by our guesses: eight cycles to multiply and add a byte, so 131 microseconds for
/// a lost symbol of 512 bytes in a block of 32; 200 MB/s to copy a block and sum it up; 20
/// microseconds for a datagram. 256 KB of socket buffer, four times Linux's default of the time: it
/// is never full.
const POWERFUL: MachineConfig = MachineConfig {
    datagram: Duration::from_micros(20),
    lost_symbol: Duration::from_micros(131),
    block: Duration::from_micros(82),
    socket_buffer_bytes: 256 << 10,
    tells_drops: false,
};

/// The file of figure 16.
pub(super) fn large_file(profile: FcastProfile, seed: u64) -> Option<Session> {
    let session = profile.session(LARGE_FILE, LARGE_FILE_PACKETS, seed)?;
    Some(Session { coding: LARGE_FILE_CODING, ..session })
}

pub(crate) const FIGURE_16: Experiment = Experiment {
    id: "fc.fig16",
    paper: "FCAST, figure 16",
    what: "Time and buffer to receive 30 MB with each of the three profiles between powerful hosts, \
           coding and decoding included: opt_speed (m/rand/org_2), opt_space (m/p_rand/org_2), opt_cpu \
           (single/org_2, decoded when everything has been heard). A receiver with one processor, which \
           takes 20 us for a datagram, 131 us for a lost symbol and 82 us for a block (guessed for 1 \
           GHz); the sender of fc.fig20, without anticipation, everything else as in fc.fig10; beside \
           them the same profiles in the order in which the product sends; 10 runs (quick: 2).",
    sweep: &SweepOf {
        name: "fc.fig16",
        kind: Kind::Counted,
        cases: |scale| ALL.len() as u32 * scale.pick(2, 10),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Profiled> = table.read().unwrap_or_default();
        let line = |profile: &FcastProfile| {
            let cells = |measure: Measure, unit: f64| {
                let values = values(&rows, measure, *profile);
                let least = smallest(values.iter().copied());
                [least, mean(&values), largest(values)].map(|value| format!("{:.2}", value / unit))
            };
            let cells = [cells(SECONDS, 1.0), cells(BYTES, 1e6)].concat();
            std::iter::once(profile.name.to_owned()).chain(cells).collect()
        };
        let columns =
            ["profile", "least s", "average s", "most s", "least MB", "average MB", "most MB"];
        let grid = Grid {
            title: "Reception of 30 MB, decoding included, and most that waits in the buffer"
                .into(),
            columns: columns.map(String::from).into(),
            rows: shown(&rows).map(line).collect(),
        };
        vec![Exhibit::Grid(grid), time_bars(&rows), space_bars(&rows)]
    },
};

/// A reception by a profile.
#[derive(Serialize, Deserialize)]
pub(super) struct Profiled {
    pub(super) profile: String,
    run: u32,
    pub(super) seconds: f64,
    pub(super) heard: f64,
    bytes: f64,
    /// Datagrams that the host loses. Real runs count them otherwise.
    #[serde(default)]
    dropped: u64,
}

fn run(case: &Case) -> Option<Profiled> {
    let (run, profile) = (case.index / ALL.len() as u32, case.index as usize % ALL.len());
    let profile = *ALL.get(profile)?;
    let seed = Case { index: run, ..*case }.stream(0).next_u64();
    let session = large_file(profile, seed)?;
    let found = receive_on(POWERFUL, &session, LossModel::None, u64::MAX)?;
    let HostReception { reception, heard_seconds, by_second } = found;
    Some(Profiled {
        profile: profile.name.into(),
        run,
        seconds: reception.seconds,
        heard: heard_seconds,
        bytes: reception.peak_bytes as f64,
        dropped: by_second.last().map_or(0, |host| host.dropped),
    })
}

/// Seconds of a reception, or most bytes in its buffer.
type Measure = fn(&Profiled) -> f64;

const SECONDS: Measure = |row| row.seconds;
const BYTES: Measure = |row| row.bytes;

fn values(rows: &[Profiled], measure: Measure, profile: FcastProfile) -> Vec<f64> {
    rows.numbers(|row| row.profile == profile.name, measure)
}

/// The profiles that have rows: real runs are of the paper's.
fn shown(rows: &[Profiled]) -> impl Iterator<Item = &'static FcastProfile> {
    ALL.iter().filter(|profile| rows.iter().any(|row| row.profile == profile.name))
}

fn time_bars(rows: &[Profiled]) -> Exhibit {
    let bar =
        |profile: &FcastProfile| Bar::of(profile.name, &values(rows, SECONDS, *profile), None);
    Exhibit::Bars(Bars {
        name: "time",
        title: "Reception of 30 MB, coding and decoding included".into(),
        axis: Axis::linear("seconds"),
        printed: None,
        bars: shown(rows).map(bar).collect(),
    })
}

fn space_bars(rows: &[Profiled]) -> Exhibit {
    let whole = mean(&values(rows, BYTES, OPT_CPU)) / 1e6;
    let bar = |profile: &FcastProfile| {
        let megabytes: Vec<f64> = values(rows, BYTES, *profile).iter().map(|b| b / 1e6).collect();
        let printed = (profile.name == OPT_SPEED.name).then_some(0.73 * whole);
        Bar::of(profile.name, &megabytes, printed)
    };
    Exhibit::Bars(Bars {
        name: "space",
        title: "Most that waits in the buffer".into(),
        axis: Axis::linear("MB"),
        printed: Some("paper: 27 % less than opt_cpu"),
        bars: shown(rows).map(bar).collect(),
    })
}

/// Per cent by which a measure is smaller with one profile than with another.
fn less(
    measure: Measure,
    one: FcastProfile,
    other: FcastProfile,
) -> impl Fn(&[Profiled]) -> Estimate {
    move |rows| {
        let [one, other] = [one, other].map(|of| Estimate::mean(&values(rows, measure, of)));
        one.percent_below(other)
    }
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::shape(
            "speed",
            "% by which opt_speed is shorter than opt_cpu",
            quote("reduces reception duration by spreading processing", "section 6.4.2"),
            Target::AtLeast(0.0),
            less(SECONDS, OPT_SPEED, OPT_CPU),
        ),
        Claim::printed(
            "memory",
            "% by which opt_speed takes less memory than opt_cpu",
            quote("Memory requirements are also reduced significantly (-27%)", "section 6.4.2"),
            Target::Equal(27.0),
            5.0,
            less(BYTES, OPT_SPEED, OPT_CPU),
        ),
        Claim::shape(
            "space",
            "% by which opt_space takes less memory than opt_speed",
            quote("to reduce the maximum memory requirements", "section 6.4.1"),
            Target::AtLeast(0.0),
            less(BYTES, OPT_SPACE, OPT_SPEED),
        ),
        Claim::shape(
            "price",
            "% by which opt_speed is shorter than opt_space",
            quote("The price to pay is a slightly more", "section 6.4.1"),
            Target::AtLeast(0.0),
            less(SECONDS, OPT_SPEED, OPT_SPACE),
        ),
        Claim::fitted(
            "rate",
            "Mbit/s of opt_speed, coding and decoding included",
            quote(
                "(including coding, transmission and decoding times) is 4.6Mbps",
                "section 6.4.2",
            ),
            Target::Equal(4.6),
            0.7,
            |rows: &[Profiled]| {
                let seconds = Estimate::mean(&values(rows, SECONDS, OPT_SPEED));
                Estimate::from(LARGE_FILE.bytes as f64 * 8.0 / 1e6).over(seconds)
            },
        ),
        Claim::own(
            "product speed",
            "% by which the product's speed is shorter than opt_speed",
            Target::AtLeast(0.0),
            0.0,
            less(SECONDS, PRODUCT_SPEED, OPT_SPEED),
        ),
        Claim::own(
            "product space",
            "% by which the product's space takes less memory than opt_space",
            Target::AtLeast(0.0),
            0.0,
            less(BYTES, PRODUCT_SPACE, OPT_SPACE),
        ),
        Claim::own(
            "powerful",
            "hosts are powerful: datagrams that the receiver loses for want of time",
            Target::AtMost(0.0),
            0.0,
            |rows: &[Profiled]| {
                let is_paper = |row: &Profiled| PROFILES.iter().any(|p| p.name == row.profile);
                largest(rows.numbers(is_paper, |row| row.dropped as f64))
            },
        ),
    ]
}
