//! `fontana send --watch`: directories as they change.

use super::{MtuWarning, Outline, Watch};
use crate::args::SendArguments;
use crate::console::Console;
use crate::failure::Failure;
use crate::progress::{OncePerSecond, SendBar};
use crate::signal::stop_on_signals;
use fontana::{
    Error, FolderEvent, Outcome, SendFolder, SendOptions, SetupError, Stop, lasting_ticket,
    send_folder,
};
use std::time::Instant;

pub(super) fn run(
    arguments: &SendArguments,
    send: SendOptions,
    outline: &Outline,
    console: &Console,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    if send.signer.is_none() {
        return Err(Error::from(SetupError::NoSigner).into());
    }
    let options =
        SendFolder { settle: arguments.settle, poll: arguments.poll, ..SendFolder::new(send) };
    stop_on_signals(stop)?;
    let started = Instant::now();
    let (mut watch, mut source_symbols, mut announced) = (None::<Watch<'_>>, 0, false);
    let mut time_is_up = false;
    let summary = send_folder(&options, stop, &mut |event| {
        match event {
            FolderEvent::Polling { reason, every } => {
                let message = format!("the system does not tell of changes: {reason}");
                let hint = format!("they are looked for every {} s", every.as_secs());
                console.warning(&message, &hint);
            }
            FolderEvent::Version(session) => {
                let ticket = lasting_ticket(session);
                if announced && !console.is_json() {
                    let files = super::listing::counts(session.manifest());
                    console.note(format_args!("a new version: {files}"));
                } else {
                    outline.announce(session, &ticket, arguments, console);
                }
                announced = true;
                source_symbols = session.source_symbols();
                watch = Some(Watch {
                    console,
                    stop,
                    duration: None,
                    copies: outline.reach.to.len() as u64,
                    objects: session.manifest().objects().len(),
                    bar: SendBar::new(console, None),
                    gate: OncePerSecond::default(),
                    failures_told: 0,
                    mtu_warning: MtuWarning::default(),
                    time_is_up: false,
                });
            }
            FolderEvent::Progress(progress) => {
                if let Some(watch) = &mut watch {
                    watch.observe(progress);
                }
            }
            FolderEvent::Ended(sent) => {
                if let Some(watch) = watch.take() {
                    watch.bar.clear();
                    watch.conclude(sent, source_symbols);
                }
            }
            FolderEvent::Failed(error) => console.failure(&Failure::from(error)),
        }
        if arguments.duration.is_some_and(|duration| started.elapsed() >= duration) {
            time_is_up = true;
            stop.set();
        }
    })?;
    Ok(match summary.outcome {
        Outcome::Interrupted if time_is_up => Outcome::Complete,
        other => other,
    })
}
