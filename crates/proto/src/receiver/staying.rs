//! What a receiver does beside its reception, and after it: it reports, and shares with others of
//! its site.

use super::Receiver;
use super::reporting::Reports;
use crate::endpoint::Output;
use crate::event::{ReceiverEvent, ReceiverOutput};
use crate::time::Instant;
use fontana_wire::ReceiverState;

/// The end of a reception, by its driver's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// What is reported.
    pub state: ReceiverState,
    /// It stays for other receivers of its site.
    pub shares: bool,
    /// It stays no longer than this. `None`: as long as anything needs it.
    pub latest: Option<Instant>,
}

/// What a receiver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverPhase {
    /// It receives.
    Receiving,
    /// The reception has ended, and it stays for others.
    Staying {
        /// Others of its site may lack something. Otherwise the sender has yet to learn how the
        /// reception has ended.
        shares: bool,
    },
    /// Nothing is left to do.
    Over,
}

impl Receiver {
    /// Ends the reception. What still arrives of the session is ignored, except roll calls.
    pub fn end(&mut self, now: Instant, ending: Ending) {
        if self.ending.is_none() {
            self.ending = Some((now, ending));
            if let Some(reports) = &mut self.reports {
                reports.reporter.end(now, ending.state);
            }
        }
    }

    /// What it does at this time.
    pub fn phase(&self, now: Instant) -> ReceiverPhase {
        if self.ending.is_none() {
            return ReceiverPhase::Receiving;
        }
        let [reports, shares] = self.stays_until().map(|until| until.is_some_and(|at| now < at));
        match reports || shares {
            true => ReceiverPhase::Staying { shares },
            false => ReceiverPhase::Over,
        }
    }

    /// Until when it stays for reports, and for its site, as far as is known.
    fn stays_until(&self) -> [Option<Instant>; 2] {
        let Some((ended_at, ending)) = self.ending else { return [None; 2] };
        // A sender of which nothing was heard asks for nothing.
        let is_failed = matches!(ending.state, ReceiverState::Failed { .. });
        let is_unheard = is_failed && self.wanted_sessions().next().is_none();
        let reports = self.reports.as_ref().filter(|_| !is_unheard);
        let reports = reports.and_then(|own| own.reporter.waits_until());
        let site = self.site.as_ref().filter(|_| ending.shares);
        let site = site.and_then(|site| site.waits_until(ended_at));
        let latest = |until: Instant| ending.latest.map_or(until, |latest| until.min(latest));
        [reports, site.map(latest)]
    }

    /// When its reports or its site need something, or its phase changes.
    pub(super) fn timeout_beside(&self) -> Option<Instant> {
        let report = self.reports.as_ref().and_then(|reports| reports.reporter.poll_timeout());
        let site = self.site.as_ref().and_then(|site| site.poll_timeout());
        let stays = self.stays_until().into_iter().flatten().filter(|&at| at > self.polled_at);
        report.into_iter().chain(site).chain(stays).min()
    }

    /// The next output of a receiver that sends.
    pub(super) fn poll_beside(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<ReceiverOutput> {
        self.polled_at = now;
        let [_, shares_until] = self.stays_until();
        if self.ending.is_some() && shares_until.is_none_or(|until| until <= now) {
            self.leave_site();
        }
        while let Some(output) = self.ending.is_none().then(|| self.poll_reception(now)).flatten() {
            let is_listening = self.reception.is_listening();
            let keeps =
                |reports: &mut Box<Reports>| reports.keeps_joined(now, &output, is_listening);
            if self.reports.as_mut().is_some_and(keeps) {
                continue;
            }
            if let Output::Event(ReceiverEvent::Accepted { hash, manifest, .. }) = &output
                && let Some(site) = &mut self.site
            {
                site.begin(now, *hash, manifest);
            }
            return Some(output);
        }
        self.poll_reports(now, header).or_else(|| self.poll_site(now, header))
    }
}
