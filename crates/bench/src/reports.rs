//! What many receivers that report cost the pacing thread of a sender: the time that its collection
//! takes in ten seconds of a session, with few and with many receivers.

use crate::numbers::within;
use fontana_proto::report::{Authentic, Authority, CollectorConfig, Expected, NoCipher};
use fontana_proto::{Collection, CollectionConfig, Demand, Instant, SenderProgress};
use fontana_wire::{
    Feedback, FeedbackDatagram, Hash, InstanceId, ReceiverId, ReceiverLabel, ReceiverReport,
    ReceiverState, RollCallEcho, SealId, Tsi,
};
use serde_json::json;
use std::time::{self, Duration};

pub(crate) const USAGE: &str = "\
usage: fontana-bench reports [--receivers N] [--json]

  reports  time that reports of N receivers take of the thread that sends";

const INSTANCE: InstanceId = InstanceId([5; 16]);
const MANIFEST: Hash = Hash([3; 32]);
/// The budget of a session, which its receivers use.
pub(crate) const REPORTS_PER_SECOND: u32 = 200;
const SECONDS: u32 = 10;
/// How often a sender looks: each time that it waits.
const LOOKS_PER_SECOND: u32 = 1_000;
/// The comparison.
const FEW: u32 = 64;

/// What is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct ReportsPlan {
    receivers: u32,
}

impl ReportsPlan {
    /// Parses what follows `reports`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self { receivers: 1 << 16 };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--receivers" => plan.receivers = within(&value()?, 1..=1 << 16)? as u32,
                other => return Err(format!("what is {other}?")),
            }
        }
        Ok(plan)
    }
}

/// What a collection has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// In all.
    all: Duration,
    /// Longest time of a report and what follows from it.
    longest: Duration,
    /// Longest time of the snapshot that is shown once a second.
    snapshot: Duration,
}

/// Measures both, and prints them.
///
/// # Errors
/// A report that is not valid: a defect.
pub(crate) fn run(plan: &ReportsPlan, is_json: bool) -> Result<(), String> {
    let few = measure(FEW)?;
    let many = measure(plan.receivers)?;
    let share = |taken: Taken| taken.all.as_secs_f64() / f64::from(SECONDS);
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    for (receivers, taken) in [(FEW, few), (plan.receivers, many)] {
        if is_json {
            let line = json!({
                "receivers": receivers,
                "share": share(taken),
                "longest_us": us(taken.longest),
                "snapshot_us": us(taken.snapshot),
            });
            println!("{line}");
        } else {
            println!(
                "{receivers:>6} receivers: {:.3} % of the thread, at most {:.0} us at once; a \
                 snapshot takes {:.0} us",
                100.0 * share(taken),
                us(taken.longest),
                us(taken.snapshot)
            );
        }
    }
    if !is_json {
        println!("many to few: {:.2}", share(many) / share(few));
    }
    Ok(())
}

fn measure(receivers: u32) -> Result<Taken, String> {
    let collector = CollectorConfig {
        expected: Expected::Count(receivers + 1),
        budget_per_second: REPORTS_PER_SECOND,
        ..CollectorConfig::new(
            INSTANCE,
            Tsi(5),
            MANIFEST,
            "127.0.0.1:40007".parse().map_err(|error| format!("{error}"))?,
            1,
        )
    };
    let config =
        CollectionConfig { until_complete: true, ..CollectionConfig::new(collector, 1_388) };
    let mut session = Session { collection: Collection::new(config, Instant::ZERO), round: 1 };
    let mut counter = 0;
    let mut report = |session: &mut Session, now, number: u32| {
        counter += 1;
        let answer = answer(number % receivers, session.round, counter)?;
        session.collection.handle_opened(now, Some(&answer));
        Ok::<(), String>(())
    };
    // All are known, and go on reporting.
    let mut now = Instant::ZERO;
    for number in 0..receivers {
        now = now + Duration::from_micros(50);
        report(&mut session, now, number)?;
        session.follow(now);
    }
    let (mut taken, mut number) = (Taken::default(), 0);
    let look = Duration::from_secs(1) / LOOKS_PER_SECOND;
    for step in 0..SECONDS * LOOKS_PER_SECOND {
        now = now + look;
        let start = time::Instant::now();
        if step.is_multiple_of(LOOKS_PER_SECOND / REPORTS_PER_SECOND) {
            report(&mut session, now, number)?;
            number += 1;
        }
        session.follow(now);
        let once = start.elapsed();
        (taken.all, taken.longest) = (taken.all + once, taken.longest.max(once));
        if step.is_multiple_of(LOOKS_PER_SECOND) {
            let start = time::Instant::now();
            let collector = session.collection.collector_mut();
            let shown = (collector.summary(), collector.notable(2_000));
            taken.snapshot = taken.snapshot.max(start.elapsed());
            drop(shown);
        }
    }
    Ok(taken)
}

struct Session {
    collection: Collection,
    /// Of the last roll call.
    round: u32,
}

impl Session {
    /// The sender does what its receivers demand.
    fn follow(&mut self, now: Instant) {
        let progress = SenderProgress { is_sent: false, is_announcing: false, is_enough: false };
        while let Some(demand) = self.collection.poll(now, progress) {
            if let Demand::Call { call, .. } = demand {
                self.round = call.round;
                self.collection.handle_signed(now, &[0; 100]);
            }
        }
    }
}

/// A report of a member of the group.
fn answer(number: u32, round: u32, counter: u64) -> Result<Authentic, String> {
    // One in eight is complete.
    let state = match number % 8 {
        0 => ReceiverState::Complete { manifest: MANIFEST },
        _ => ReceiverState::Receiving,
    };
    let feedback = Feedback::Report(report_of(number, round, state));
    let bytes = feedback.emit(SealId::from(INSTANCE), counter, None, None::<&NoCipher>);
    let parsed = FeedbackDatagram::parse(&bytes).map_err(|error| error.to_string())?;
    let opened = parsed.open(None::<&NoCipher>).map_err(|error| error.to_string())?;
    Ok(Authentic { opened, by: Authority::Group })
}

/// What the receiver with this number says of itself.
pub(crate) fn report_of(number: u32, round: u32, state: ReceiverState) -> ReceiverReport {
    ReceiverReport {
        receiver: receiver_id(number),
        label: ReceiverLabel::default(),
        started_unix_ms: 0,
        round,
        echo: RollCallEcho::default(),
        state,
        permille: 500,
        symbols_lacking: 1,
        loss_ppm: 0,
        kernel_drops: 0,
        channels: 1,
        seconds: 1,
    }
}

pub(crate) fn receiver_id(number: u32) -> ReceiverId {
    let mut id = [9; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    ReceiverId(id)
}
