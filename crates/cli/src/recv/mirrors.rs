//! `fontana recv TICKET URL...`: mirrors, from the command line and from tickets.

use crate::args::{NamedTicket, ReceiveArguments};
use crate::console::Console;
use crate::events::ReceiveEvent as Line;
use crate::failure::Failure;
use crate::units::Count;
use fontana::wire::WebAddress;
use fontana::{MirrorFailure, Outcome, ReceiveReport};

/// The mirrors to use: those of the command line, and those of the ticket if the user wants them or
/// there is nothing else in it.
pub(super) fn of_arguments(arguments: &ReceiveArguments) -> Vec<WebAddress> {
    let named: &[WebAddress] = match &arguments.named {
        Some(NamedTicket::Web(ticket)) => &ticket.web,
        Some(NamedTicket::Session(ticket)) if arguments.web => &ticket.web,
        Some(NamedTicket::Session(_)) | None => &[],
    };
    let mut mirrors: Vec<WebAddress> = Vec::new();
    for address in arguments.mirrors.iter().chain(named) {
        if !mirrors.contains(address) {
            mirrors.push(address.clone());
        }
    }
    mirrors
}

/// Whether anything is received from a group.
pub(super) fn has_group(arguments: &ReceiveArguments) -> bool {
    !matches!(arguments.named, Some(NamedTicket::Web(_)))
}

/// Refuses arguments that contradict a ticket for mirrors.
pub(super) fn check(arguments: &ReceiveArguments) -> Result<(), Failure> {
    if has_group(arguments) {
        return check_web_after(arguments);
    }
    let what = match arguments {
        _ if arguments.one_way => {
            "--one-way sends nothing, and mirrors are asked for what they send"
        }
        _ if arguments.web_after.is_some() => "--web-after waits for what a group brings",
        _ if arguments.watch => "--watch follows the versions on a group",
        _ if arguments.list => "--list lists what is on a group",
        _ if arguments.flute || arguments.fcast => "mirrors are for sessions of Fontana",
        _ => return Ok(()),
    };
    let message = format!("{what}, and this ticket names only mirrors");
    Err(Failure::new(
        Outcome::Usage,
        message,
        "leave the option out, or take a ticket of a session",
    ))
}

/// Refuses a time for mirrors if there are none.
fn check_web_after(arguments: &ReceiveArguments) -> Result<(), Failure> {
    if arguments.web_after.is_none() || !of_arguments(arguments).is_empty() {
        return Ok(());
    }
    let message = "--web-after without mirrors";
    let hint = "use those of the ticket: --web; or name one: http://HOST/DIR/";
    Err(Failure::new(Outcome::Usage, message, hint))
}

/// Says which mirrors are used, or that the ticket has some.
pub(super) fn tell(arguments: &ReceiveArguments, console: &Console) {
    let used = of_arguments(arguments);
    if !used.is_empty() {
        let addresses: Vec<_> = used.iter().map(WebAddress::as_str).collect();
        let count = Count(used.len() as u64, "mirror");
        console.say(format_args!("receiving from {count}: {}", addresses.join(" ")));
        return;
    }
    if let Some(NamedTicket::Session(ticket)) = &arguments.named
        && !ticket.web.is_empty()
    {
        let count = Count(ticket.web.len() as u64, "mirror");
        console.say(format_args!("the ticket names {count}: to receive from there too, --web"));
    }
}

/// Shows that a mirror has sent a wrong block.
pub(super) fn show_wrong(mirror: &WebAddress, object: u64, block: u32, console: &Console) {
    console.event(&Line::MirrorWrong { mirror: mirror.to_string(), object, block });
    console.note(format_args!("{mirror} has sent a wrong block: {block} of object {object}"));
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
