//! `fc.fig10` to `fc.fig16` and `fc.fig20` over real sockets: the sessions of the simulated experiments, on real
//! bytes, which are coded, decoded and compared, over groups of the loopback interface that receivers
//! join and leave.

use super::anticipated::{self, TAKEN};
use super::profiles::{self, FcastProfile, PROFILES};
use super::schemes::{self, SCHEMES, Scheme, bursts, remembered};
use super::session::{self, LAYERS, on_bytes};
use super::transfer::Storage;
use crate::bytes::{ByteJobs, Pump};
use crate::claim::{Claim, Printed};
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::loopback::{Listener, LoopbackError, Source, perform};
use crate::session::{LISTENERS_FIRST, Session};
use crate::statistics::mean;
use crate::table::{Row, Table, row};
use fontana_proto::Instant;
use fontana_sim::{LinkConfig, LossModel};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Whoever has nothing after this time, which is twice what the slowest of them takes, has failed.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a reception took.
#[derive(Clone, Copy, Debug)]
struct RealReception {
    /// From the first packet sent until every byte was there and the right one; `NAN` if that never was.
    seconds: f64,
    /// Until enough had been heard.
    heard_seconds: f64,
    received: u64,
    duplicates: u64,
    peak_bytes: u64,
    layers: u32,
    /// Datagrams that this host lost.
    dropped: u64,
}

/// Sends a session to one receiver behind a link that loses packets. `None` if it cannot be run.
fn receive(
    session: &Session,
    loss: LossModel,
    limit: Duration,
) -> Option<Result<RealReception, LoopbackError>> {
    let (session, originals) = on_bytes(session)?;
    let source = Source {
        sender: session.sender(0)?,
        content: Arc::clone(&session.content),
        pump: Pump::new(Arc::clone(&originals)),
        channels: LAYERS.len() as u8,
    };
    let listener = Listener {
        receiver: session::receiver(&session),
        jobs: Storage::new(ByteJobs::new(originals)),
        link: LinkConfig::default().with_loss(loss),
        seed: session.seed,
        starts_after: Duration::ZERO,
    };
    let heard = match perform(source, vec![listener], limit) {
        Ok(mut heard) => heard.pop()?,
        Err(error) => return Some(Err(error)),
    };
    let start = Instant::ZERO + LISTENERS_FIRST;
    let seconds =
        |at: Option<Instant>| at.map_or(f64::NAN, |at| at.saturating_since(start).as_secs_f64());
    let stats = heard.receiver.stats();
    let duplicates = stats.duplicates + stats.late;
    Some(Ok(RealReception {
        seconds: seconds(heard.complete.filter(|_| heard.jobs.jobs.has_everything())),
        heard_seconds: seconds(heard.heard_enough),
        received: stats.fresh + duplicates,
        duplicates,
        peak_bytes: heard.jobs.peak_bytes,
        layers: heard.layers as u32,
        dropped: heard.dropped,
    }))
}

impl RealReception {
    /// One that could not be run.
    const FAILED: Self = Self {
        seconds: f64::NAN,
        heard_seconds: f64::NAN,
        received: 0,
        duplicates: 0,
        peak_bytes: 0,
        layers: 0,
        dropped: 0,
    };
}

/// All at the same time: sessions that send a thousand packets a second do not disturb each other.
fn receive_all(sessions: Vec<Option<Session>>, loss: &LossModel) -> Vec<RealReception> {
    std::thread::scope(|scope| {
        let receive = |session: Option<Session>| {
            let loss = loss.clone();
            scope.spawn(move || receive(&session?, loss, PATIENCE)?.ok())
        };
        let running: Vec<_> = sessions.into_iter().map(receive).collect();
        let found = running.into_iter().map(|thread| thread.join().ok().flatten());
        found.map(|found| found.unwrap_or(RealReception::FAILED)).collect()
    })
}

const COLUMNS: &[&str] = &[
    "scheme",
    "run",
    "seconds",
    "simulated",
    "received",
    "duplicates",
    "bytes",
    "layers",
    "lost here",
];

/// By whether there are losses, and by seed.
type Runs = BTreeMap<(bool, u64), Vec<RealReception>>;

/// A run of the eight ways to send at the same time, once for all figures that show it.
fn schemes(loss: LossModel, case: &Case) -> Vec<Row> {
    static RUNS: Mutex<Runs> = Mutex::new(BTreeMap::new());
    let seed = Case { experiment: "fc.schemes", ..*case }.stream(0).next_u64();
    // One after the other: so is the lock held.
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = runs.entry((loss != LossModel::None, seed)).or_insert_with(|| {
        receive_all(SCHEMES.iter().map(|scheme| scheme.session(seed)).collect(), &loss)
    });
    let row = |(scheme, found): (&Scheme, &RealReception)| {
        let RealReception { seconds, received, duplicates, peak_bytes, layers, dropped, .. } =
            *found;
        let simulated = remembered(*scheme, loss.clone(), seed).map_or(f64::NAN, |it| it.seconds);
        row![
            scheme.name,
            case.index,
            seconds,
            simulated,
            received,
            duplicates,
            peak_bytes,
            layers,
            dropped
        ]
    };
    SCHEMES.iter().zip(found.iter()).map(row).collect()
}

/// The claims of a simulated experiment, and one more.
fn claims_of(simulated: &Experiment) -> Vec<Claim> {
    let bytes = Claim::new(
        "bytes",
        "not of the paper: receptions that did not end with every byte, and the right one",
        Printed::AtMost(0.0),
        0.0,
        |table| match table.numbers("seconds", &[]) {
            none if none.is_empty() => f64::NAN,
            seconds => seconds.iter().filter(|seconds| seconds.is_nan()).count() as f64,
        },
    );
    (simulated.claims)().into_iter().chain([bytes]).collect()
}

/// The claims about durations, one about m/rand as far off as a few runs are from their mean, and how
/// far the simulator is from what happened: of each reception the same one, of the same seed.
fn durations(simulated: &Experiment, few_runs_off: f64, simulator_off: f64) -> Vec<Claim> {
    let few = |claim: Claim| match claim.name.as_str() {
        "rand" => Claim { tolerance: few_runs_off, ..claim },
        _ => claim,
    };
    let simulator = Claim::new(
        "simulator",
        "not of the paper: % by which the simulator is off, mean over all receptions (the bound is ours)",
        Printed::AtMost(simulator_off),
        0.0,
        |table| {
            let pairs = table.points("simulated", "seconds", &[]).into_iter();
            let off: Vec<_> =
                pairs.map(|(simulated, real)| (real / simulated - 1.0).abs()).collect();
            100.0 * mean(&off)
        },
    );
    claims_of(simulated).into_iter().map(few).chain([simulator]).collect()
}

/// Real time has to be waited for: not the paper's 40 runs.
const fn runs(scale: Scale) -> u32 {
    scale.pick(1, 10)
}

fn without_loss(case: &Case) -> Vec<Row> {
    schemes(LossModel::None, case)
}

fn with_loss(case: &Case) -> Vec<Row> {
    schemes(bursts(), case)
}

/// A figure of the eight ways to send.
macro_rules! figure {
    ($name:ident, $cases:expr, $run:expr, $claims:expr, $what:literal) => {
        pub(crate) const $name: Experiment = Experiment {
            what: $what,
            kind: Kind::Timed,
            columns: COLUMNS,
            cases: $cases,
            run: $run,
            claims: || $claims(&schemes::$name),
            ..schemes::$name
        };
    };
}

figure!(
    FIGURE_10,
    |scale| scale.pick(4, 10),
    without_loss,
    // Single simulated runs are 2.5 % from their mean.
    |simulated| durations(simulated, 5.0, 2.0),
    "The sessions of the simulated experiment over real sockets: the eight ways at the same time, each with \
     its own sender and receiver on the loopback interface. 10 runs of 16 s (quick: 4)."
);
figure!(
    FIGURE_11,
    |scale| scale.pick(4, 10),
    without_loss,
    claims_of,
    "The runs of fc.fig10 over real sockets."
);
figure!(
    FIGURE_12,
    |scale| scale.pick(4, 10),
    without_loss,
    claims_of,
    "The runs of fc.fig10 over real sockets."
);
figure!(
    FIGURE_13,
    runs,
    with_loss,
    // And here 14 %; when a packet is lost decides on what is heard of a layer for seconds.
    |simulated| durations(simulated, 20.0, 20.0),
    "As fc.fig10 over real sockets, with the losses of the simulated experiment between the sockets and the \
     receiver. 10 runs of five minutes (quick: 1)."
);
figure!(FIGURE_14, runs, with_loss, claims_of, "The runs of fc.fig13 over real sockets.");
figure!(FIGURE_15, runs, with_loss, claims_of, "The runs of fc.fig13 over real sockets.");

pub(crate) const FIGURE_16: Experiment = Experiment {
    what: "The sessions of the simulated experiment over real sockets, the three profiles at the same time; \
           this host's processor codes and decodes. 10 runs of a minute (quick: 1).",
    kind: Kind::Timed,
    cases: runs,
    run: |case| {
        let seed = case.stream(0).next_u64();
        let session = |profile: &_| profiles::large_file(*profile, seed);
        let found = receive_all(PROFILES.iter().map(session).collect(), &LossModel::None);
        let row = |(profile, found): (&FcastProfile, RealReception)| {
            let RealReception { seconds, heard_seconds, peak_bytes, dropped, .. } = found;
            row![profile.name, case.index, seconds, heard_seconds, peak_bytes, dropped]
        };
        PROFILES.iter().zip(found).map(row).collect()
    },
    claims: profile_claims,
    ..profiles::FIGURE_16
};

/// This host takes milliseconds for what took the paper's seconds, so it is not the whole reception that
/// shows them, but what comes after the last symbol.
fn profile_claims() -> Vec<Claim> {
    let after = |table: &Table, profile: &str| {
        let of = |column| table.numbers(column, &[("profile", profile.into())]);
        let pairs = of("seconds").into_iter().zip(of("heard"));
        mean(&pairs.map(|(seconds, heard)| seconds - heard).collect::<Vec<_>>())
    };
    let hidden = Claim::new(
        "hidden",
        "opt_speed spreads the processing over the reception: time from the last symbol to the end with opt_cpu, \
         over that with opt_speed (no number in the text; the bound is ours)",
        Printed::AtLeast(1.0),
        0.0,
        move |table| after(table, profiles::OPT_CPU.name) / after(table, profiles::OPT_SPEED.name),
    );
    let claims = claims_of(&profiles::FIGURE_16).into_iter();
    claims.filter(|claim| claim.name != "speed").chain([hidden]).collect()
}

pub(crate) const FIGURE_20: Experiment = Experiment {
    what: "The sessions of the simulated experiment over real sockets, with and without anticipation at the \
           same time. The 23 s that the paper's source is guessed to have encoded before it began are added \
           here too. 10 runs of eight minutes (quick: 1).",
    kind: Kind::Timed,
    cases: |scale| TAKEN.len() as u32 * runs(scale),
    run: |case| {
        let (run, index) = (case.index / TAKEN.len() as u32, case.index as usize % TAKEN.len());
        let Some(&layers) = TAKEN.get(index) else { return Vec::new() };
        let seed = Case { index: run, ..*case }.stream(0).next_u64();
        let sessions = [true, false].map(|ahead| anticipated::session(ahead, layers, seed));
        let found = receive_all(sessions.into(), &LossModel::None);
        let row = |(ahead, found): (u32, RealReception)| {
            let RealReception { seconds, received, duplicates, peak_bytes, .. } = found;
            row![u32::from(layers), ahead, run, seconds, received, duplicates, peak_bytes]
        };
        [1, 0].into_iter().zip(found).map(row).collect()
    },
    claims: || claims_of(&anticipated::FIGURE_20),
    ..anticipated::FIGURE_20
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fc::session::File;
    use fontana_proto::{
        DecodePolicy, Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule,
    };

    #[test]
    fn a_file_arrives_over_real_sockets_with_every_byte() {
        let file = File { bytes: 60_000, object_bytes: 16_384, block_symbols: 32 };
        let schedule = TransmissionSchedule::Fcast(Fcast {
            organization: SymbolOrganization::Segments,
            object_order: ObjectOrder::Random,
            stretch_factor: 4,
            anticipated_layers: 0,
        });
        let session = file.session(128, schedule, DecodePolicy::Incremental, 1).expect("a session");
        // However slow this machine is today: nothing here depends on what congestion control makes of it.
        let session = Session { taken_layers: Some(3), ..session };
        let receive = |loss, limit| {
            receive(&session, loss, limit).expect("a session").expect("loopback multicast")
        };
        let found = receive(LossModel::None, PATIENCE);
        // Every byte was compared before the time was taken.
        assert!(found.seconds > 0.0, "{found:?}");
        assert_eq!(found.received - found.duplicates, 60_000_u64.div_ceil(512), "{found:?}");
        assert_eq!(found.layers, 3);
        assert!(found.peak_bytes < 60_000 + 512, "{found:?}");
        let lost = receive(LossModel::bernoulli(1.0), Duration::from_millis(200));
        assert!(lost.seconds.is_nan(), "{lost:?}");
    }
}
