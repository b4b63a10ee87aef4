//! `fontana recv --watch`: receives one version after the other.

use super::changes::Changes;
use super::confine::Sandbox;
use super::explain::Circumstances;
use super::recognised::FluteSessions;
use super::too_long::TooLong;
use super::unheard::Unheard;
use super::{Setup, Watch, begin, older};
use crate::args::ReceiveArguments;
use crate::events::ReceiveEvent as Line;
use crate::hook::Described;
use crate::progress::Gate;
use fontana::{
    AcceptedManifest, CancellationToken, Ended, FollowEvent, Follower, Outcome, ReceiveEvent,
    ReceiveReport,
};
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::json::{rounded, seconds};
use fontana_console::signal::stop_on_signals;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub(super) fn run(
    arguments: &ReceiveArguments,
    setup: Setup,
    mut sandbox: Sandbox<'_>,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let address = setup.address;
    let directory = setup.directory.clone();
    let follower = Follower::builder(setup.receiver.cancellation_token(stop))
        .give_up_after_silence(arguments.silence.filter(|silence| !silence.is_zero()))
        .count(arguments.watch.flatten().map(std::num::NonZeroU64::get))
        // The content stays unchanged until the hook has ended.
        .wait_after_version(true);
    let audit = super::audit_log(arguments)?;
    let hook = sandbox.take_hook();
    let confined = sandbox.confine(&directory, address.port())?;
    stop_on_signals(stop)?;
    console.write_aside()?;
    confined.tell(console);
    let (mut place, mut old_told) = (None, false);
    let mut watch = Watch {
        console,
        stop,
        chooser: None,
        unheard: None,
        bar: None,
        gate: Gate::each_second(),
        files: 0,
        is_here_already: false,
        is_partial: false,
        offers_shown: 0,
        lists: false,
        is_piped: false,
        messages_shown: BTreeSet::new(),
        is_corrupt: false,
        described: Described::default(),
        hook,
        hook_outcome: None,
        audit,
        manifest: None,
        too_long: TooLong::default(),
        flute: FluteSessions::new(arguments, address),
        changes: Changes::default(),
        holding: None,
        runs: None,
    };
    // The reception of a version begins when the one before ends.
    let mut accepted_at = Instant::now();
    // The outcome of the hook for the last version.
    let mut content = Outcome::Complete;
    let follower = follower.start()?;
    for event in follower.events() {
        match event {
            FollowEvent::Joined { interfaces, buffer_shortfall } => {
                let shortfall = buffer_shortfall.as_ref();
                if place.is_none() {
                    watch.unheard = Some(Unheard::new(arguments, &interfaces, address));
                    place = Some(begin(&interfaces, shortfall, arguments, address, console));
                }
                // The clock of each session begins at 0.
                watch.gate = Gate::each_second();
            }
            FollowEvent::Receiving(event) => {
                if matches!(event, ReceiveEvent::Accepted { .. }) {
                    accepted_at = Instant::now();
                }
                if let ReceiveEvent::Rejected { session, reason } = event
                    && let Some((message, hint)) =
                        older::ignored(&session.source.to_string(), reason).filter(|_| !old_told)
                {
                    console.warning(&message, hint);
                    old_told = true;
                }
                watch.handle(&event);
            }
            FollowEvent::Taken(report) => {
                watch.taken(&report, accepted_at.elapsed());
                watch.audit_version(&report);
                content = watch.run_hook(&report);
                follower.proceed();
            }
            FollowEvent::GivenUp(report) => watch.given_up(&report),
            FollowEvent::Waiting => {
                console.event(&Line::Waiting {});
                console.note("nothing newer is being sent; looking again from time to time");
            }
            _ => {}
        }
    }
    let summary = follower.join();
    watch.clear();
    let summary = summary?;
    let last = &summary.last;
    let at_rest = last.ended == Ended::Done || last.manifest.is_none() && summary.taken > 0;
    if summary.outcome != Outcome::Complete && !at_rest && !console.is_closed() {
        let place = place.unwrap_or_else(|| address.to_string());
        let offered = watch.offers_shown > 0;
        watch.show_failure(&Circumstances::new(place, address, arguments, offered).explain(last));
    }
    let mut line = Line::summary(last);
    let verdict = summary.outcome.worst(content).worst(watch.end_audit());
    line.set_verdict(verdict);
    console.result_event(&line);
    Ok(verdict)
}

impl Watch<'_> {
    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        // Messages are shown once for each version.
        self.messages_shown.clear();
        self.is_corrupt = false;
        self.offers_shown = 0;
    }

    fn taken(&mut self, summary: &ReceiveReport, elapsed: Duration) {
        self.clear();
        if let Some(AcceptedManifest { hash, version }) = summary.manifest {
            self.console.event(&Line::Taken {
                version,
                manifest: hash.to_string(),
                bytes: summary.bytes,
                seconds: seconds(elapsed),
                reception_inefficiency: summary.progress.reception_inefficiency().map(rounded),
            });
            let mut progress = summary.progress;
            progress.elapsed = elapsed;
            let success = self.success(&progress, summary.bytes);
            self.console.say(format_args!("version {version}: {success}"));
        }
    }

    fn given_up(&mut self, summary: &ReceiveReport) {
        self.show_failures(summary);
        self.clear();
        let superseded = summary.ended == Ended::Superseded;
        let version = summary.manifest.map(|manifest| manifest.version);
        let code = exit::code(summary.outcome);
        self.console.event(&Line::GivenUp { version, superseded, code });
        if superseded {
            self.console.note("a newer version is being sent: going on with that");
        }
    }
}
