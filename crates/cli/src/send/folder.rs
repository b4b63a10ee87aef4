//! `fontana send --watch`: sends a new version after every change of a directory.

use super::confine::CompletionProgram;
use super::reports::ReportWatch;
use super::{Outline, Watch, ticket_file};
use crate::args::SendArguments;
use crate::progress::{Gate, SendBar};
use crate::version_file::VersionFile;
use fontana::{CancellationToken, ErrorKind, Outcome, PublishEvent, Publisher, SenderBuilder};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::signal::stop_on_signals;

/// The directory itself cannot be read. The sandbox is for the one that was there at the start.
const UNREADABLE: &str = "receivers keep the last version: change its permissions, or, if another \
                          one has taken its place, start this sender again";

/// What versions have in common.
pub(super) struct Outlet<'a> {
    pub(super) outline: &'a Outline,
    pub(super) program: Option<&'a CompletionProgram>,
    /// Present if they are signed.
    pub(super) versions: Option<VersionFile>,
}

pub(super) fn run(
    arguments: &SendArguments,
    sender: SenderBuilder,
    Outlet { outline, program, mut versions }: Outlet<'_>,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    if let Some(versions) = &versions {
        versions.compare_with_clock(console);
    }
    let publisher = Publisher::builder(sender)
        .settle(arguments.watch.unwrap_or_default())
        .duration(arguments.duration)
        .at_least_permille(arguments.at_least);
    stop_on_signals(stop)?;
    console.write_aside()?;
    let (mut watch, mut announced) = (None::<Watch<'_>>, false);
    let (mut unwritten, mut left_out) = (None, 0);
    // Whether the program of the last version has failed.
    let mut has_failed = false;
    let publisher = publisher.start()?;
    for event in publisher.events() {
        match event {
            PublishEvent::Polling { reason, every } => {
                let message = format!("the system does not tell of changes: {reason}");
                let hint = format!("they are looked for every {} s", every.as_secs());
                console.warning(&message, &hint);
            }
            PublishEvent::Restless { name, since } => {
                let message =
                    format!("{name} has changed again and again for {} s", since.as_secs());
                let hint = "versions contain it as it was before, if it only grows; otherwise not";
                console.warning(&message, hint);
            }
            PublishEvent::Version(session) => {
                if let Some(versions) = &mut versions {
                    versions.keep(session.manifest.version(), console);
                }
                let tickets = outline.tickets(&session.lasting_ticket());
                if let (Some(path), false) = (&arguments.ticket_file, announced)
                    && let Err(failure) = ticket_file::write(path, &tickets)
                {
                    unwritten = Some(failure);
                    stop.cancel();
                    continue;
                }
                if announced && !console.is_json() {
                    let files = super::listing::counts(&session.manifest);
                    console.say(format_args!("a new version: {files}"));
                } else {
                    outline.announce(&session, &tickets, arguments, console);
                }
                announced = true;
                watch = Some(Watch {
                    console,
                    stop,
                    interface: outline.interface.clone(),
                    is_one_of_several: false,
                    source_symbols: session.source_symbols,
                    duration: None,
                    copies: outline.addressing.to.len() as u64,
                    objects: session.manifest.objects().len(),
                    bar: SendBar::new(console, None),
                    rate_check: None,
                    gate: Gate::each_second(),
                    failures_shown: 0,
                    nothing_left: false,
                    time_is_up: false,
                    reports: ReportWatch::new(arguments, program),
                });
            }
            PublishEvent::Sending(event) => {
                if let Some(watch) = &mut watch {
                    watch.handle(&event);
                }
            }
            PublishEvent::Ended(sent) => {
                if let Some(watch) = watch.take() {
                    watch.bar.clear();
                    has_failed = watch.conclude(&sent) == Outcome::Io;
                }
            }
            PublishEvent::LeftOut(error) => {
                left_out += 1;
                console.failure_among(left_out, &Failure::from(&*error));
            }
            PublishEvent::Failed(error) => {
                let mut failure = Failure::from(&*error);
                if error.kind() == ErrorKind::SourceDenied {
                    failure.hint = UNREADABLE.into();
                }
                console.failure(&failure);
            }
            _ => {}
        }
    }
    let report = publisher.join()?;
    let outcome = if has_failed { report.outcome.worst(Outcome::Io) } else { report.outcome };
    unwritten.map_or(Ok(outcome), Err)
}
