//! `fontana recv TICKET URL...`: mirrors, from the command line and from tickets.

use crate::args::{MirrorArgument, MirrorsArgument, NamedTicket, ReceiveArguments};
use crate::events::ReceiveEvent as Line;
use fontana::wire::WebAddress;
use fontana::{MirrorFailure, MirrorFile, Outcome, ReceiveReport};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::{Count, Time};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// The mirrors to use.
#[derive(Default)]
pub(super) struct Mirrors {
    pub(super) directories: Vec<WebAddress>,
    pub(super) files: Vec<MirrorFile>,
    /// Those that a sealed ticket names, and the user has not.
    pub(super) of_ticket: Vec<WebAddress>,
    /// The senders of that ticket.
    pub(super) senders: Vec<IpAddr>,
}

impl Mirrors {
    /// Those of the command line, and those of the ticket if the user wants them, if it is sealed,
    /// or if there is nothing else in it.
    pub(super) fn of_arguments(arguments: &ReceiveArguments) -> Self {
        let mut mirrors = Self::default();
        for mirror in given(arguments) {
            match mirror {
                MirrorArgument::Directory(address) => mirrors.add(address),
                MirrorArgument::File(file) => mirrors.files.push(file.clone()),
            }
        }
        match &arguments.named {
            Some(NamedTicket::Web(ticket)) => ticket.web.iter().for_each(|web| mirrors.add(web)),
            Some(NamedTicket::Session(ticket)) if are_wanted(arguments) => {
                ticket.web.iter().for_each(|web| mirrors.add(web));
            }
            Some(NamedTicket::Session(_) | NamedTicket::Mirror(_)) | None => {}
        }
        if let Some(ticket) = arguments.ticket_with_mirrors() {
            mirrors.of_ticket.clone_from(&ticket.web);
            mirrors.senders = ticket.sources.iter().copied().chain(ticket.near).collect();
        }
        mirrors
    }

    fn add(&mut self, address: &WebAddress) {
        if !self.directories.contains(address) {
            self.directories.push(address.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.files.is_empty() && self.of_ticket.is_empty()
    }

    /// The addresses by which they are reported: those of directories, and of servers with files.
    pub(super) fn addresses(&self) -> BTreeSet<&WebAddress> {
        let servers = self.files.iter().map(MirrorFile::server);
        self.directories.iter().chain(servers).chain(&self.of_ticket).collect()
    }
}

/// Whether the user asks for mirrors.
fn are_wanted(arguments: &ReceiveArguments) -> bool {
    !matches!(arguments.mirrors, None | Some(MirrorsArgument::Off))
}

/// The mirrors of the command line: the user has chosen them, and not the author of a ticket.
pub(super) fn given(arguments: &ReceiveArguments) -> impl Iterator<Item = &MirrorArgument> {
    let without_ticket = match &arguments.named {
        Some(NamedTicket::Mirror(mirror)) => Some(mirror),
        _ => None,
    };
    without_ticket.into_iter().chain(&arguments.urls)
}

/// Whether there is no ticket, and mirrors are asked what they have.
pub(super) fn are_asked(arguments: &ReceiveArguments) -> bool {
    matches!(arguments.named, Some(NamedTicket::Mirror(_)))
}

/// Whether anything is received from a group.
pub(super) fn has_group(arguments: &ReceiveArguments) -> bool {
    matches!(arguments.named, Some(NamedTicket::Session(_)) | None)
}

/// Refuses arguments that contradict a ticket for mirrors.
pub(super) fn check(arguments: &ReceiveArguments) -> Result<(), Failure> {
    if has_group(arguments) {
        return check_given(arguments);
    }
    let what = match arguments {
        _ if arguments.one_way => {
            "--one-way sends nothing, and mirrors are asked for what they send"
        }
        _ if arguments.mirrors_after().is_some() => "--mirrors waits for what a group brings",
        _ if arguments.watch.is_some() => "--watch follows the versions on a group",
        _ if arguments.list && !are_asked(arguments) => "--list lists what is on a group",
        _ if arguments.flute || arguments.fcast => "mirrors are for sessions of Fontana",
        _ => return Ok(()),
    };
    let names = if are_asked(arguments) { "here are" } else { "this ticket names" };
    let message = format!("{what}, and {names} only mirrors");
    Err(Failure::new(
        Outcome::Usage,
        message,
        "leave the option out, or take a ticket of a session",
    ))
}

/// Refuses to use mirrors if there are none.
fn check_given(arguments: &ReceiveArguments) -> Result<(), Failure> {
    if !are_wanted(arguments) || !Mirrors::of_arguments(arguments).is_empty() {
        return Ok(());
    }
    let message = "--mirrors, and neither the ticket nor the command line names any";
    let hint = "name one beside the ticket: http://HOST/DIR/";
    Err(Failure::new(Outcome::Usage, message, hint))
}

/// Says which mirrors are used, or that the ticket has some.
pub(super) fn tell(arguments: &ReceiveArguments, console: &Console) {
    let used = Mirrors::of_arguments(arguments);
    if !used.is_empty() {
        let addresses: Vec<_> = used.addresses().into_iter().map(WebAddress::as_str).collect();
        let count = Count(addresses.len() as u64, "mirror");
        let when = match used.of_ticket.is_empty() {
            true => "receiving from",
            false => "if nothing arrives from the group, receiving from the ticket's",
        };
        console.say(format_args!("{when} {count}: {}", addresses.join(" ")));
        warn_readable(arguments, &used, console);
        return;
    }
    if arguments.mirrors.is_none()
        && let Some(NamedTicket::Session(ticket)) = &arguments.named
        && !ticket.web.is_empty()
    {
        let count = Count(ticket.web.len() as u64, "mirror");
        console.say(format_args!(
            "the ticket names {count}: to receive from there too, --mirrors now"
        ));
    }
}

/// Warns that mirrors of a sealed ticket send in the clear what its secret encrypts.
fn warn_readable(arguments: &ReceiveArguments, used: &Mirrors, console: &Console) {
    let Some(ticket) = arguments.ticket().filter(|ticket| ticket.secret.is_some()) else { return };
    let used = used.addresses();
    let is_readable = |web: &&WebAddress| used.contains(web) && web.as_str().starts_with("http://");
    if let Some(mirror) = ticket.web.iter().find(is_readable) {
        console.warning(
            &format!("what {mirror} sends is readable on the way, and the ticket has a secret"),
            "name it with https:// in the ticket, or leave mirrors out: --mirrors off",
        );
    }
}

/// Shows that a mirror has sent a wrong block.
pub(super) fn show_wrong(mirror: &WebAddress, object: u64, block: u32, console: &Console) {
    console.event(&Line::MirrorWrong { mirror: mirror.to_string(), object, block });
    console.note(format_args!("{mirror} has sent a wrong block: {block} of object {object}"));
}

/// Shows that a mirror has failed, and is asked again.
pub(super) fn show_failed(
    mirror: &WebAddress,
    failure: &MirrorFailure,
    pause: Duration,
    console: &Console,
) {
    let (reason, again) = (failure.to_string(), Time(pause));
    console.warning(&format!("{mirror}: {reason}; it is asked again in {again}"), "");
    let again_seconds = pause.as_secs_f64();
    console.event(&Line::MirrorFailed { mirror: mirror.to_string(), reason, again_seconds });
}

/// Shows that a mirror is not used any more.
pub(super) fn show_dropped(mirror: &WebAddress, failure: &MirrorFailure, console: &Console) {
    console.event(&Line::MirrorDropped { mirror: mirror.to_string(), reason: failure.to_string() });
    console.warning(
        &format!("{mirror} is not used any more: {failure}"),
        "the others go on; what it sent is verified as everything else",
    );
}

/// Shows what came from each mirror.
pub(super) fn show_report(report: &ReceiveReport, console: &Console) {
    for mirror in &report.mirrors {
        console.event(&Line::mirror(mirror));
    }
}
