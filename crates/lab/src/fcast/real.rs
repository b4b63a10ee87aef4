//! `fc.fig10` to `fc.fig16` and `fc.fig20` between hosts: the sessions of the simulated
//! experiments, with real bytes, over groups that receivers join and leave.

use super::anticipated::{self, FIT, TAKEN};
use super::profiles::{self, FcastProfile, PROFILES, Profiled};
use super::schemes::{self, BASE_PACKETS, SCHEMES, Scheme, bursts};
use super::session::{self, LARGE_FILE_CODING, LARGE_FILE_PACKETS, LAYERS, on_bytes};
use super::transfer::{self, storage};
use crate::bytes::{ByteRunner, Pump};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::hosts::{self, HostsError, ReceiverHost, SenderHost, nothing_lost_here};
use crate::row::Rows;
use crate::session::{LISTENERS_FIRST, Session};
use crate::statistics::mean;
use fontana_net::thread;
use fontana_proto::{Driver, Instant};
use fontana_sim::LossModel;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// A reception that is not complete after this time has failed. The slowest one takes half of it.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measurements of a reception.
#[derive(Clone, Copy, Debug)]
struct RealReception {
    /// Time from the first packet until the receiver had every byte; `NAN` if it never had.
    seconds: f64,
    /// Time until the reception was complete; `NAN` if it never was.
    heard_seconds: f64,
    received: u64,
    duplicates: u64,
    peak_bytes: u64,
    layers: u32,
    /// Packets that this computer lost.
    lost_here: u64,
    /// Longest delay of a packet beyond that of the link, in milliseconds.
    late: f64,
}

/// Sends a session to one receiver behind a link that loses packets. `None` if it cannot be run.
fn receive(
    session: &Session,
    loss: LossModel,
    limit: Duration,
) -> Option<Result<RealReception, HostsError>> {
    let (session, originals) = on_bytes(session)?;
    let sender = SenderHost {
        driver: Driver::new(session.sender(0)?, session.runner()),
        pump: Pump::new(Arc::clone(&originals)),
        channels: LAYERS.len() as u8,
    };
    let receiver = ReceiverHost {
        receiver: session::receiver(&session),
        runner: storage(ByteRunner::new(originals)),
        link: transfer::link(loss),
        seed: session.seed,
        starts_after: Duration::ZERO,
    };
    let received = match hosts::run(vec![sender], vec![receiver], limit) {
        Ok(mut received) => received.pop()?,
        Err(error) => return Some(Err(error)),
    };
    let start = Instant::ZERO + LISTENERS_FIRST;
    let seconds =
        |at: Option<Instant>| at.map_or(f64::NAN, |at| at.saturating_since(start).as_secs_f64());
    let stats = received.driver.endpoint.stats();
    let storage = &received.driver.runner;
    let duplicates = stats.duplicates + stats.late;
    Some(Ok(RealReception {
        seconds: seconds(received.complete.filter(|_| storage.runner.has_everything())),
        heard_seconds: seconds(received.reception_complete),
        received: stats.fresh + duplicates,
        duplicates,
        peak_bytes: storage.observer.peak_bytes,
        layers: received.layers as u32,
        lost_here: received.lost_here,
        late: received.late.as_secs_f64() * 1e3,
    }))
}

impl RealReception {
    /// A reception that could not run.
    const FAILED: Self = Self {
        seconds: f64::NAN,
        heard_seconds: f64::NAN,
        received: 0,
        duplicates: 0,
        peak_bytes: 0,
        layers: 0,
        lost_here: 0,
        late: f64::NAN,
    };
}

/// Runs all sessions at the same time: at a thousand packets a second they do not affect each
/// other.
fn receive_all(sessions: Vec<Option<Session>>, loss: &LossModel) -> Vec<RealReception> {
    std::thread::scope(|scope| {
        let receive = |session: Option<Session>| {
            let loss = loss.clone();
            let receive = move || receive(&session?, loss, PATIENCE)?.ok();
            thread::spawn_scoped(scope, "lab session", receive)
        };
        let running: Vec<_> = sessions.into_iter().map(receive).collect();
        let found = running.into_iter().map(|thread| thread.ok()?.join().ok().flatten());
        found.map(|found| found.unwrap_or(RealReception::FAILED)).collect()
    })
}

/// A reception of the file of the eight ways to send, and the simulated one of the same seed.
#[derive(Serialize, Deserialize)]
struct RealSchemeRow {
    scheme: String,
    run: u32,
    seconds: f64,
    /// Seconds of the simulated reception.
    simulated: f64,
    received: u64,
    duplicates: u64,
    bytes: u64,
    layers: u32,
    #[serde(rename = "lost here")]
    lost_here: u64,
    #[serde(rename = "ms late")]
    late: f64,
}

/// The eight ways to send, at the same time.
static WITHOUT_LOSSES: SweepOf<RealSchemeRow> = SweepOf {
    name: "fc.schemes without losses",
    kind: Kind::Timed,
    cases: |scale| scale.pick(4, 10),
    run: |case| run_with(LossModel::None, case),
};

/// The same with bursts of losses.
static WITH_LOSSES: SweepOf<RealSchemeRow> = SweepOf {
    name: "fc.schemes with losses",
    kind: Kind::Timed,
    cases: runs,
    run: |case| run_with(bursts(), case),
};

/// A run of the eight ways to send at the same time.
fn run_with(loss: LossModel, case: &Case) -> Vec<RealSchemeRow> {
    let seed = schemes::seed(case.index, case);
    let sessions = SCHEMES.iter().map(|scheme| scheme.session(BASE_PACKETS, seed)).collect();
    let row = |(scheme, found): (&Scheme, RealReception)| RealSchemeRow {
        scheme: scheme.name.into(),
        run: case.index,
        seconds: found.seconds,
        simulated: scheme
            .receive(BASE_PACKETS, loss.clone(), seed)
            .map_or(f64::NAN, |it| it.seconds),
        received: found.received,
        duplicates: found.duplicates,
        bytes: found.peak_bytes,
        layers: found.layers,
        lost_here: found.lost_here,
        late: found.late,
    };
    SCHEMES.iter().zip(receive_all(sessions, &loss)).map(row).collect()
}

/// The duration of any reception.
#[derive(Serialize, Deserialize)]
struct Lasting {
    seconds: f64,
}

/// The claims of a simulated experiment and two more.
fn claims_of(simulated: &Experiment) -> Vec<Claim> {
    let bytes = Claim::own(
        "bytes",
        "receptions that did not end with every byte, and the right one",
        Target::AtMost(0.0),
        0.0,
        |rows: &[Lasting]| match rows.len() {
            0 => f64::NAN,
            _ => rows.iter().filter(|row| row.seconds.is_nan()).count() as f64,
        },
    );
    (simulated.claims)().into_iter().chain([bytes, nothing_lost_here()]).collect()
}

/// The same claims. Those of `names` get the tolerance `off`, as far as few runs are from the mean.
fn of_few_runs(simulated: &Experiment, names: &[&str], off: f64) -> Vec<Claim> {
    let few = |claim: Claim| {
        let is_of_few = names.contains(&claim.name.as_str());
        if is_of_few { Claim { tolerance: off, ..claim } } else { claim }
    };
    claims_of(simulated).into_iter().map(few).collect()
}

/// The claims about durations, and one about the difference between each reception and the
/// simulated one of the same seed.
fn durations(simulated: &Experiment, few_runs_off: f64, simulator_off: f64) -> Vec<Claim> {
    let simulator = Claim::own(
        "simulator",
        "% by which the simulator is off, mean over all receptions",
        Target::AtMost(simulator_off),
        0.0,
        |rows: &[RealSchemeRow]| {
            let off = |row: &RealSchemeRow| (row.seconds / row.simulated - 1.0).abs();
            100.0 * mean(&rows.iter().map(off).collect::<Vec<_>>())
        },
    );
    of_few_runs(simulated, &["rand"], few_runs_off).into_iter().chain([simulator]).collect()
}

/// Number of runs. They take real time, so there are fewer than the paper's 40.
const fn runs(scale: Scale) -> u32 {
    scale.pick(1, 10)
}

pub(crate) const FIGURE_10: Experiment = Experiment {
    what: "The sessions of the simulated experiment between hosts: the eight ways at the same time, \
           each with hosts of its own, a sender, a switch and a receiver behind an emulator. 10 runs of \
           16 s (quick: 4).",
    sweep: &WITHOUT_LOSSES,
    // Single simulated runs are 2.5 % from their mean.
    claims: || durations(&schemes::FIGURE_10, 5.0, 2.0),
    ..schemes::FIGURE_10
};

pub(crate) const FIGURE_11: Experiment = Experiment {
    what: "The runs of fc.fig10 between hosts.",
    sweep: &WITHOUT_LOSSES,
    claims: || claims_of(&schemes::FIGURE_11),
    ..schemes::FIGURE_11
};

pub(crate) const FIGURE_12: Experiment = Experiment {
    what: "The runs of fc.fig10 between hosts.",
    sweep: &WITHOUT_LOSSES,
    claims: || claims_of(&schemes::FIGURE_12),
    ..schemes::FIGURE_12
};

pub(crate) const FIGURE_13: Experiment = Experiment {
    what: "As fc.fig10 between hosts, with emulators that lose what the simulated experiment loses. 10 \
           runs of five minutes (quick: 1).",
    sweep: &WITH_LOSSES,
    // And here 14 %: the time of a loss decides what a receiver gets of a layer for seconds.
    claims: || durations(&schemes::FIGURE_13, 20.0, 20.0),
    ..schemes::FIGURE_13
};

pub(crate) const FIGURE_14: Experiment = Experiment {
    what: "The runs of fc.fig13 between hosts.",
    sweep: &WITH_LOSSES,
    claims: || claims_of(&schemes::FIGURE_14),
    ..schemes::FIGURE_14
};

pub(crate) const FIGURE_15: Experiment = Experiment {
    what: "The runs of fc.fig13 between hosts.",
    sweep: &WITH_LOSSES,
    // Single simulated runs save 6 % more or less of the buffer than on average with p_rand, 3 %
    // with rand.
    claims: || of_few_runs(&schemes::FIGURE_15, &["p_rand", "rand"], 15.0),
    ..schemes::FIGURE_15
};

/// The time that the sender of the simulated sessions takes before it sends.
const CODING_SECONDS: f64 = LARGE_FILE_CODING.as_millis() as f64 / 1e3;

pub(crate) const FIGURE_16: Experiment = Experiment {
    what: "The sessions of the simulated experiment between hosts, the three profiles at the same time; \
           this host's processor codes and decodes, and \
           the time for which the paper's source computed FEC symbols is added. 10 runs of a minute (quick: 1).",
    sweep: &SweepOf { name: "fc.fig16", kind: Kind::Timed, cases: runs, run: run_profiles },
    claims: profile_claims,
    ..profiles::FIGURE_16
};

/// A reception by a profile.
#[derive(Serialize, Deserialize)]
struct RealProfiled {
    profile: String,
    run: u32,
    seconds: f64,
    heard: f64,
    bytes: u64,
    #[serde(rename = "lost here")]
    lost_here: u64,
    #[serde(rename = "ms late")]
    late: f64,
}

/// The three profiles at the same time.
fn run_profiles(case: &Case) -> Vec<RealProfiled> {
    let seed = case.stream(0).next_u64();
    let session = |profile: &_| profiles::large_file(*profile, seed);
    let found = receive_all(PROFILES.iter().map(session).collect(), &LossModel::None);
    let row = |(profile, found): (&FcastProfile, RealReception)| RealProfiled {
        profile: profile.name.into(),
        run: case.index,
        seconds: found.seconds + CODING_SECONDS,
        heard: found.heard_seconds + CODING_SECONDS,
        bytes: found.peak_bytes,
        lost_here: found.lost_here,
        late: found.late,
    };
    PROFILES.iter().zip(found).map(row).collect()
}

/// This host takes milliseconds for what took the paper's seconds, so it is not the whole reception
/// that shows them, but what comes after the last symbol.
fn profile_claims() -> Vec<Claim> {
    let after = |rows: &[Profiled], profile: FcastProfile| {
        let of = |row: &Profiled| row.profile == profile.name;
        mean(&rows.numbers(of, |row| row.seconds - row.heard))
    };
    let hidden = Claim::shape(
        "hidden",
        "time from the last symbol to the end with opt_cpu, over that with opt_speed",
        quote("reduces reception duration by spreading processing", "section 6.4.2"),
        Target::AtLeast(1.0),
        move |rows| after(rows, profiles::OPT_CPU) / after(rows, profiles::OPT_SPEED),
    );
    // `here` says of all hosts whether they are powerful enough. The product's orders are not run.
    let is_of_hosts = |claim: &Claim| {
        let of_others = ["speed", "powerful", "product speed", "product space"];
        !of_others.contains(&claim.name.as_str())
    };
    claims_of(&profiles::FIGURE_16).into_iter().filter(is_of_hosts).chain([hidden]).collect()
}

pub(crate) const FIGURE_20: Experiment = Experiment {
    what: "The sessions of the simulated experiment between hosts, with and without anticipation at the \
           same time. The time for which the paper's source computed FEC symbols is added to those without. 10 runs of thirteen minutes (quick: 1).",
    sweep: &SweepOf {
        name: "fc.fig20",
        kind: Kind::Timed,
        cases: |scale| TAKEN.len() as u32 * runs(scale),
        run: run_anticipated,
    },
    claims: || claims_of(&anticipated::FIGURE_20),
    ..anticipated::FIGURE_20
};

/// A reception of the large file.
#[derive(Serialize, Deserialize)]
struct RealAnticipation {
    layers: u32,
    anticipated: bool,
    packets: u32,
    run: u32,
    seconds: f64,
    received: u64,
    duplicates: u64,
    bytes: u64,
    #[serde(rename = "lost here")]
    lost_here: u64,
    #[serde(rename = "ms late")]
    late: f64,
}

/// With and without anticipation, at the same time.
fn run_anticipated(case: &Case) -> Vec<RealAnticipation> {
    let (run, index) = (case.index / TAKEN.len() as u32, case.index as usize % TAKEN.len());
    let Some(&layers) = TAKEN.get(index) else { return Vec::new() };
    let seed = Case { index: run, ..*case }.stream(0).next_u64();
    let sessions = [true, false].map(|ahead| anticipated::session(ahead, layers, FIT, seed));
    let found = receive_all(sessions.into(), &LossModel::None);
    let row = |(anticipated, found): (bool, RealReception)| RealAnticipation {
        layers: layers.into(),
        anticipated,
        packets: LARGE_FILE_PACKETS,
        run,
        seconds: if anticipated { found.seconds } else { found.seconds + CODING_SECONDS },
        received: found.received,
        duplicates: found.duplicates,
        bytes: found.peak_bytes,
        lost_here: found.lost_here,
        late: found.late,
    };
    [true, false].into_iter().zip(found).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fcast::session::File;
    use crate::hosts;
    use crate::taken::TakenLayers;
    use fontana_proto::{
        DecodePolicy, Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule,
    };
    use fontana_wire::CongestionControl;

    const FILE: File = File { bytes: 60_000, object_bytes: 16_384, block_symbols: 32 };

    fn session(organization: SymbolOrganization, seed: u64) -> Session {
        let schedule = TransmissionSchedule::Fcast(Fcast {
            organization,
            object_order: ObjectOrder::Random,
            stretch_factor: 4,
            anticipated_layers: 0,
        });
        FILE.session(128, schedule, DecodePolicy::Incremental, seed).expect("a session")
    }

    #[test]
    fn a_file_arrives_between_hosts_with_every_byte() {
        if !hosts::are_possible() {
            return;
        }
        // However slow this machine is today: nothing here depends on what congestion control makes
        // of it.
        let session = Session {
            taken_layers: Some(TakenLayers { first: 3, all: 3, others_at: Instant::ZERO }),
            ..session(SymbolOrganization::Segments, 1)
        };
        let receive =
            |loss, limit| receive(&session, loss, limit).expect("a session").expect("hosts");
        let found = receive(LossModel::None, PATIENCE);
        // Every byte was compared before the time was taken.
        assert!(found.seconds > 0.0, "{found:?}");
        assert_eq!(found.received - found.duplicates, 60_000_u64.div_ceil(512), "{found:?}");
        assert_eq!((found.layers, found.lost_here), (3, 0), "{found:?}");
        assert!(found.peak_bytes < 60_000 + 512, "{found:?}");
        let lost = receive(LossModel::bernoulli(1.0), Duration::from_millis(200));
        assert!(lost.seconds.is_nan(), "{lost:?}");
    }

    #[test]
    fn the_same_packets_are_lost_between_hosts_as_in_the_simulation() {
        if !hosts::are_possible() {
            return;
        }
        let loss = LossModel::markov(0.3, 3.0);
        // On one channel at a fixed rate packets have an order that does not depend on the time.
        let sessions: Vec<_> = (1..=3)
            .map(|seed| Session {
                congestion: CongestionControl::FixedRate,
                rate_bytes_per_second: 400_000,
                ..session(SymbolOrganization::AllOnEach, seed)
            })
            .collect();
        let simulated = sessions.iter().map(|session| {
            let found = transfer::receive(session, loss.clone(), u64::MAX).expect("a reception");
            (found.received, found.duplicates, found.peak_bytes)
        });
        let simulated: Vec<_> = simulated.collect();
        // A busy computer may lose a packet of its own, or join late. A difference of the code
        // appears in each try, because the seeds are the same.
        let mut tries = Vec::new();
        for _ in 0..5 {
            let found = receive_all(sessions.iter().cloned().map(Some).collect(), &loss);
            let counts =
                |found: &RealReception| (found.received, found.duplicates, found.peak_bytes);
            if found.iter().map(counts).eq(simulated.iter().copied()) {
                return;
            }
            tries.push(found);
        }
        panic!("simulated {simulated:?}, between hosts {tries:?}");
    }
}
