//! What a receiver can tell while no packet of its session arrives.

use super::sealed;
use crate::address::source_interface;
use crate::args::{ReceiveArguments, SandboxArgument, SessionFormat};
use fontana::net::doctor::{self, Verdict};
use fontana::net::{Interface, Interfaces};
use fontana::wire::Tsi;
use fontana::{ReceiveProgress, ReceiverStats, SessionKey};
use fontana_console::console::Console;
use fontana_console::units::{Count, Time};
use std::net::SocketAddr;
use std::time::Duration;

/// Time without a packet after which the receiver tells. Joining takes less than a second, and a
/// sender sends its first packets within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether no packet of a session has arrived for too long, or only what this program has no table
/// of contents of.
pub(super) fn is_due(progress: &ReceiveProgress, offers: usize) -> bool {
    let stats = &progress.stats;
    progress.elapsed >= PATIENCE
        && offers == 0
        && (stats.session_packets == 0 || is_probably_fcast(stats))
}

/// Whether many packets have arrived, and none that a session of Fontana, or of plain FLUTE, has
/// again and again.
pub(super) fn is_probably_fcast(stats: &ReceiverStats) -> bool {
    /// Several times as many as there are between two control packets.
    const MANY: u64 = 1_000;
    stats.session_packets >= MANY && stats.control_packets == 0
}

/// Where a receiver listens, and by which arguments.
pub(super) struct Unheard<'a> {
    arguments: &'a ReceiveArguments,
    interfaces: Vec<String>,
    address: SocketAddr,
    /// What the ticket's sender sends instead.
    instead: Option<Tsi>,
}

impl<'a> Unheard<'a> {
    pub(super) fn new(
        arguments: &'a ReceiveArguments,
        interfaces: &[String],
        address: SocketAddr,
    ) -> Self {
        Self { arguments, interfaces: interfaces.to_vec(), address, instead: None }
    }

    /// Notes a session that is not the ticket's.
    pub(super) fn note_other(&mut self, session: SessionKey) {
        if self.arguments.ticket().is_some_and(|ticket| ticket.sources.contains(&session.source)) {
            self.instead = Some(session.tsi);
        }
    }

    pub(super) fn warn(&self, progress: &ReceiveProgress, console: &Console) {
        let Self { address, .. } = self;
        let interface = self.interfaces.join(", ");
        if let Some((message, hint)) =
            sealed::mismatch(progress, &format!("{address} ({interface})"))
        {
            return console.warning(&message, &hint);
        }
        let stats = &progress.stats;
        if stats.session_packets > 0 {
            if self.arguments.format() == SessionFormat::Fontana {
                let packets = Count(stats.session_packets, "packet");
                let message = format!("{packets} and no table of contents in {}", Time(PATIENCE));
                console.warning(&message, "receive with --fcast if the sender is FCAST");
            }
            return;
        }
        let message =
            format!("no packet of the session on {address} ({interface}) for {}", Time(PATIENCE));
        let instead = self.instead.map(|tsi| {
            format!("the ticket's sender now sends session {tsi}: take the ticket that it prints")
        });
        let mut lines: Vec<_> = instead.into_iter().chain([self.why()]).collect();
        lines.extend(self.other_interfaces());
        lines.push(match stats.datagrams {
            0 if address.ip().is_multicast() => "the group is joined, 0 packets arrived".to_owned(),
            0 => "the port is open, 0 packets arrived".to_owned(),
            _ => format!(
                "{} of other sessions arrived on this port; list them: fontana recv --group \
                 {address}",
                Count(stats.datagrams, "packet"),
            ),
        });
        let firewall = doctor::firewall(Some(*address));
        if firewall.verdict >= Verdict::Warning {
            lines.push(format!("{}: {}", firewall.subject, firewall.text));
            lines.extend(firewall.remedy);
        } else if self.arguments.sandbox != SandboxArgument::Off
            && firewall.verdict == Verdict::Unknown
        {
            // The sandbox starts no programs, as which the rules are read.
            lines.push("the firewall was not examined: fontana doctor does, as root".to_owned());
        }
        console.warning(&message, &lines.join("\n"));
    }

    /// Why this interface was taken.
    fn why(&self) -> String {
        let Self { arguments, address, .. } = self;
        let ticket = arguments.ticket();
        let interface = match arguments.interfaces.len() {
            0 | 1 => self.interfaces.concat(),
            _ => return format!("{} were asked for (-i)", self.interfaces.join(", ")),
        };
        let reason = if !arguments.interfaces.is_empty() {
            "it was asked for (-i)".to_owned()
        } else if let Some(ticket) = ticket.filter(|ticket| source_interface(ticket).is_some()) {
            let sources = ticket.sources.iter().chain(&ticket.near);
            let sources: Vec<_> = sources.map(ToString::to_string).collect();
            format!("the ticket's source, {}, is in its network", sources.join(", "))
        } else if arguments.one_way {
            "the routing table led there when the receiver started, or it is the first".to_owned()
        } else {
            let interfaces = Interfaces::list().ok();
            let default = interfaces.as_ref().and_then(|i| i.default_for(address.ip()).ok());
            default.map_or_else(|| "it has the address".to_owned(), |(_, why)| why.to_string())
        };
        format!("{interface} was taken because {reason}")
    }

    /// The interfaces that the group could come by instead.
    fn other_interfaces(&self) -> Option<String> {
        let interfaces = Interfaces::list().ok()?;
        let is_other = |i: &&Interface| {
            !self.interfaces.contains(&i.name) && i.carries_multicast() && !i.is_loopback
        };
        let others: Vec<_> = interfaces.iter().filter(is_other).map(ToString::to_string).collect();
        let is_group = self.address.ip().is_multicast();
        (is_group && !others.is_empty()).then(|| {
            format!("other interfaces carry multicast: {}; take one: -i NAME", others.join(", "))
        })
    }
}
