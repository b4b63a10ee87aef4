//! Rate control by reports, between the collecting and the pacing thread.

use super::options::SendOptions;
use super::update::Update;
use crate::error::{Error, SetupError};
use crate::rate::Rate;
use crate::reporting::{RateFollowing, ReportCollection};
use crossbeam_channel::{SendError, Sender};
use fontana_proto::report::{Expected, RateConfig, RateControl, ReceiverStatus};
use fontana_proto::{Instant, SendMode};
use fontana_wire::{RateReport, ReceiverId, ReceiverLabel};
use std::collections::BTreeSet;
use std::time::Duration;

/// Rate reports that all receivers together send per second, at most.
const BUDGET_PER_SECOND: u32 = 100;
/// The lowest rate, in bytes per second: that of any sender.
const LEAST: u64 = 1_000;
/// Receivers whose rate reports are remembered, 100 bytes each.
const MAX_RECEIVERS: usize = 1 << 16;

/// How the rate of the session follows its receivers, if it does. `most`: the highest rate, in
/// bytes per second.
pub(super) fn rate_config(
    options: &SendOptions,
    most: u64,
    packet_bytes: u16,
) -> Result<Option<RateConfig>, Error> {
    let reports = options.format.fontana().and_then(|format| format.reports.as_ref());
    let Some((reports, following)) = reports.and_then(|it| Some((it, it.rate?))) else {
        return Ok(None);
    };
    let needs = |needs| SetupError::RateFollowing { needs };
    if options.mode != SendMode::RepairOnDemand {
        return Err(needs("repair on demand, because the rate leaves losses to be repaired").into());
    }
    let is_sealed = options.group_seal().is_some();
    if !is_sealed && !reports.is_signed() && !reports.trust_unauthenticated {
        let what = "a group key, or a key of each expected receiver: any host could slow it down";
        return Err(needs(what).into());
    }
    let RateFollowing { start, least, must_finish } = following;
    if must_finish && !matches!(reports.expected, Expected::Named(_)) {
        return Err(needs("the names of the receivers that must finish").into());
    }
    let least = least.unwrap_or(RateFollowing::LEAST).as_bytes_per_second();
    let start = start.as_bytes_per_second().min(most);
    for (what, actual) in [("the rate at the start", start), ("the least rate", least)] {
        if !(LEAST..=most).contains(&actual) {
            let actual = Rate::bytes_per_second(actual).as_bits_per_second();
            let most = Rate::bytes_per_second(most).as_bits_per_second();
            return Err(SetupError::RateOutside { what, actual, most }.into());
        }
    }
    Ok(Some(RateConfig {
        start,
        most,
        least,
        least_to_finish: RateFollowing::LEAST.as_bytes_per_second().min(least),
        packet_bytes: packet_bytes.into(),
        budget_per_second: BUDGET_PER_SECOND.min(reports.budget_per_second),
        known: known(reports),
        max_receivers: MAX_RECEIVERS,
    }))
}

/// Number of receivers, as far as the user says.
fn known(reports: &ReportCollection) -> Option<u32> {
    match &reports.expected {
        Expected::Anyone => None,
        Expected::Count(count) => Some(*count),
        Expected::Named(list) => u32::try_from(list.len()).ok(),
    }
}

/// The names of the receivers that must finish; `None` if there are none.
fn required(reports: &ReportCollection) -> Option<BTreeSet<ReceiverLabel>> {
    let Expected::Named(list) = &reports.expected else { return None };
    let labels = || list.iter().map(|receiver| receiver.label.clone()).collect();
    reports.rate.filter(|following| following.must_finish).map(|_| labels())
}

/// The rate control of the collecting thread.
pub(super) struct RateStage {
    pub(super) control: RateControl,
    /// The rate that the pacing thread has.
    told: u64,
    /// The names of the receivers that must finish.
    required: Option<BTreeSet<ReceiverLabel>>,
}

impl RateStage {
    pub(super) fn new(config: RateConfig, reports: &ReportCollection) -> Self {
        let control = RateControl::new(config, Instant::ZERO);
        Self { told: control.rate(), control, required: required(reports) }
    }

    /// A receiver has another state, and perhaps must finish.
    pub(super) fn note_state(&mut self, status: &ReceiverStatus) {
        let Some(required) = &self.required else { return };
        let report = &status.report;
        if required.contains(&report.label) && !report.state.is_final() {
            self.control.must_finish(report.receiver);
        } else {
            self.control.has_finished(&report.receiver);
        }
    }

    /// A receiver without a name, so far, may be one that must finish.
    pub(super) fn note_unknown(&mut self, receiver: ReceiverId) {
        if self.required.is_some() {
            self.control.must_finish(receiver);
        }
    }

    /// Continues the round, and tells the pacing thread of another rate. Returns whether a roll
    /// call is wanted.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        updates: &Sender<Update>,
    ) -> Result<bool, SendError<Update>> {
        self.control.handle_timeout(now);
        let rate = self.control.rate();
        if std::mem::replace(&mut self.told, rate) != rate {
            updates.send(Update::Rate { bytes_per_second: rate })?;
        }
        Ok(self.control.wants_call())
    }

    /// Handles an authentic report. Returns whether it counts.
    pub(super) fn take(
        &mut self,
        now: Instant,
        report: &RateReport,
        counter: u64,
        updates: &Sender<Update>,
    ) -> Result<bool, SendError<Update>> {
        let taken = self.control.handle_report(now, report, counter);
        if let Ok(Some(slow)) = taken {
            updates.send(Update::Slow(slow))?;
        }
        Ok(taken.is_ok())
    }

    /// Longest wait of the collecting thread.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        self.control.poll_timeout().map(|due| due.saturating_since(now))
    }
}
