//! `fontana recv URL`: what mirrors have, for a receiver without a ticket.

use super::explain::time_since;
use super::mirrors;
use crate::args::ReceiveArguments;
use crate::events::ReceiveEvent as Line;
use fontana::wire::{HeadError, Printable, WebAddress, WebTicket};
use fontana::{
    MirrorFailure, MirrorHead, NotPublished, Outcome, PreparedReceiver, Published, PublishedError,
};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::{Bytes, Count};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};

/// Failures of mirrors that are shown.
const MAX_TOLD: usize = 64;

/// Asks the mirrors what they have, shows it, and has the receiver expect it. A person is asked,
/// unless the publisher's key vouches for it.
pub(super) fn find(
    prepared: &mut PreparedReceiver,
    arguments: &ReceiveArguments,
    console: &Console,
) -> Result<Published, Failure> {
    let told = RefCell::new(BTreeSet::new());
    let on_failure = |mirror: &WebAddress, failure: &MirrorFailure, pause| {
        // The same failure is told once. A server may give another text each time.
        let mut told = told.borrow_mut();
        if told.len() < MAX_TOLD && told.insert(format!("{mirror} {failure}")) {
            mirrors::show_failed(mirror, failure, pause, console);
        }
    };
    let published = prepared.find_published_with(&on_failure).map_err(failure)?;
    for (mirror, why) in &published.others {
        console.warning(&format!("{mirror}: {}", reason(why)), "");
    }
    tell(&published, console);
    if arguments.key.is_none() && !arguments.yes && !arguments.list {
        confirm(&published, console)?;
    }
    prepared.expect(&published);
    Ok(published)
}

/// Refuses to ask if there is no terminal, before a request is sent.
pub(super) fn check(arguments: &ReceiveArguments, console: &Console) -> Result<(), Failure> {
    if arguments.key.is_some() || arguments.yes || arguments.list || can_ask(console) {
        return Ok(());
    }
    let message = "anyone who can write to the mirror says what it has, and there is no terminal to \
                   ask on";
    let hint = "give the ticket that fontana publish printed; or the publisher's key: --key KEY\n\
                or accept anything: --yes";
    Err(Failure::new(Outcome::Usage, message, hint))
}

fn can_ask(console: &Console) -> bool {
    !console.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn tell(published: &Published, console: &Console) {
    let manifest = &published.manifest;
    let (files, bytes) = (manifest.files().count() as u64, manifest.content_length());
    console.event(&Line::Published {
        mirrors: published.mirrors.iter().map(ToString::to_string).collect(),
        manifest: published.hash.to_string(),
        version: manifest.version(),
        publisher: published.publisher.map(|key| key.to_string()),
        label: Printable(manifest.label()).to_string(),
        files,
        bytes,
    });
    let (label, count) = (Printable(manifest.label()), Count(files, "file"));
    console.say(format_args!("on the mirror: {label}  {count}, {}", Bytes(bytes)));
    console.say(format_args!("  manifest   {}, version {}", published.hash, manifest.version()));
    match published.publisher {
        Some(key) => console.say(format_args!("  signed by  {key}")),
        None => console.say("  not signed"),
    }
}

fn confirm(published: &Published, console: &Console) -> Result<(), Failure> {
    console.ask("anyone who can write to the mirror can say so. Receive it? (yes or no) ");
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "yes" | "y") => {
            let ticket = WebTicket { manifest: published.hash, web: published.mirrors.clone() };
            console.note(format_args!("next time without the question: fontana recv '{ticket}'"));
            Ok(())
        }
        _ => Err(Failure::new(Outcome::Interrupted, "nothing was received", "")),
    }
}

/// The failure of a receiver that has found nothing.
fn failure(error: PublishedError) -> Failure {
    match error {
        PublishedError::Nothing(mirrors) => nothing(&mirrors),
        PublishedError::Differ { .. } => {
            let hint = "name one of them, or the publisher's key, whose newest version is \
                        received: --key KEY";
            Failure::new(Outcome::Usage, error.to_string(), hint)
        }
        PublishedError::Stopped => Failure::new(Outcome::Interrupted, "nothing was received", ""),
        PublishedError::System(error) => Failure::from(error),
        _ => Failure::new(Outcome::NothingReceived, error.to_string(), ""),
    }
}

fn nothing(mirrors: &[(WebAddress, NotPublished)]) -> Failure {
    let lines = mirrors.iter().map(|(mirror, why)| format!("{mirror}: {}", reason(why)));
    let message = lines.collect::<Vec<_>>().join("\n");
    let is = |test: fn(&NotPublished) -> bool| mirrors.iter().any(|(_, why)| test(why));
    if is(|why| matches!(why, NotPublished::Expired { .. })) {
        let hint = "have the publisher sign it again (fontana publish --sign), or accept it: \
                    --accept expired";
        return Failure::new(Outcome::Authentication, message, hint);
    }
    if is(|why| matches!(why, NotPublished::Head(HeadError::OtherSigner { .. })))
        || is(|why| matches!(why, NotPublished::Head(HeadError::NotSigned | HeadError::Signature)))
    {
        let hint = "ask the publisher for the right key; the mirror may not be the publisher's";
        return Failure::new(Outcome::Authentication, message, hint);
    }
    if is(|why| matches!(why, NotPublished::OldVersion)) {
        let hint = "accept it: --accept old";
        return Failure::new(Outcome::NothingReceived, message, hint);
    }
    let hint = format!(
        "a mirror says what it has by the file {}, which fontana publish writes and fontana serve \
         has; without it, give the ticket",
        MirrorHead::FILE_NAME
    );
    Failure::new(Outcome::NothingReceived, message, hint)
}

fn reason(why: &NotPublished) -> String {
    match why {
        NotPublished::Expired { unix_seconds } => {
            format!("what it has expired {} ago, by this host's clock", time_since(*unix_seconds))
        }
        other => other.to_string(),
    }
}
