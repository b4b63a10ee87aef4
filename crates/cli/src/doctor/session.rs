//! `fontana doctor TICKET`: whether packets of a session arrive on this host.

use super::asking::{Answer, ask};
use crate::address::source_interface;
use fontana::Addressing;
use fontana::net::doctor::{self, Finding, Verdict};
use fontana::net::{
    Batch, Interface, InterfaceSelector, Interfaces, ReceiveConfig, ReceiveSocket, neighbor,
};
use fontana::wire::{Packet, Ticket, Tsi};
use fontana_console::units::{Count, Rate};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// How long it listens: as for an IGMP querier, a wait that users accept. A sender that runs sends
/// several packets in it at any rate that is allowed.
const WAIT: Duration = Duration::from_secs(3);

/// Largest number of other sessions that are named.
const MAX_NAMED: usize = 4;

/// Largest number of other sessions that are counted: anyone can send packets of any session.
const MAX_COUNTED: usize = 1000;

/// What the remedy of a session begins with, before the likeliest cause.
const LIKELIEST: &str = "likeliest: ";

/// What arrives of a session.
pub(super) struct Examined {
    /// About the session.
    pub(super) findings: Vec<Finding>,
    /// The interface that nothing of it arrived on.
    pub(super) silent: Option<String>,
}

impl Examined {
    fn of(finding: Finding) -> Self {
        Self { findings: vec![finding], silent: None }
    }

    /// Puts what else was found in the order in which it may be the cause, and names the likeliest.
    pub(super) fn before(mut self, mut others: Vec<Finding>) -> Vec<Finding> {
        let is_firewall = |found: &Finding| found.subject == doctor::FIREWALL;
        others.sort_by_key(|found| (Reverse(found.verdict), !is_firewall(found)));
        if let (Some(interface), Some(found)) = (&self.silent, self.findings.first_mut()) {
            let concerns = |other: &&Finding| {
                let is_of_interface = other.subject.rsplit(' ').next() == Some(interface);
                other.verdict >= Verdict::Warning && (is_firewall(other) || is_of_interface)
            };
            let likeliest = others.iter().find(concerns);
            if let Some(Finding { subject, text, remedy, .. }) = likeliest {
                let remedy =
                    remedy.as_ref().map_or_else(String::new, |remedy| format!(": {remedy}"));
                found.remedy = Some(format!("likeliest: {subject}, {text}{remedy}"));
            }
        }
        self.findings.extend(others);
        self.findings
    }
}

/// The likeliest cause of what is wrong, from what was found of the session and of this host.
pub(super) fn likely(findings: &[Finding]) -> String {
    let Some(found) = findings.first() else { return String::new() };
    let Finding { verdict, remedy, .. } = found;
    match remedy.as_deref().and_then(|remedy| remedy.strip_prefix(LIKELIEST)) {
        Some(cause) => cause.to_owned(),
        None if *verdict == Verdict::Good => "packets of the session arrive".to_owned(),
        None => format!("{}: {}", found.subject, found.text),
    }
}

/// Joins the ticket's group, listens, and reports what arrives.
pub(super) fn examine(ticket: &Ticket, named: Option<&InterfaceSelector>) -> Examined {
    let subject = format!("session {}/{}", ticket.destination(), ticket.tsi);
    let bad = |text: String| {
        let subject = subject.clone();
        Examined::of(Finding { subject, verdict: Verdict::Bad, text, remedy: None })
    };
    let mut addressing = Addressing::of_ticket(ticket);
    addressing.interfaces =
        named.cloned().or_else(|| source_interface(ticket)).into_iter().collect();
    let interface = match addressing.interface() {
        Ok(interface) => interface,
        Err(error) => return bad(error.to_string()),
    };
    if !ticket.group.is_multicast() && !is_ours(ticket.group) {
        return Examined::of(elsewhere(ticket, &subject));
    }
    match listen(ticket, &interface) {
        Ok(heard) if heard.is_nothing() => {
            let finding = heard.finding(subject, &interface);
            match ask(ticket) {
                Some((sender, answer)) => asked(finding, sender, answer, &interface),
                None => Examined { silent: Some(interface.name.clone()), findings: vec![finding] },
            }
        }
        Ok(heard) => Examined::of(heard.finding(subject, &interface)),
        Err(error) => bad(format!("cannot listen on {}: {error}", interface.name)),
    }
}

/// Nothing was heard, and the sender was asked.
fn asked(finding: Finding, sender: SocketAddr, answer: Answer, interface: &Interface) -> Examined {
    let host = sender.ip();
    let (told, remedy) = match answer {
        Answer::Taken => (
            format!("no error came from {sender}, where the sender takes reports"),
            "likeliest: the sender runs, and the network does not pass its packets on: on its \
             host, fontana doctor; or listen on another interface: -i NAME",
        ),
        Answer::NoProgram => (
            format!("{host} answers, and no program has port {}", sender.port()),
            "likeliest: the sender does not run: start it, or take the ticket that it prints now",
        ),
        Answer::Unreachable => (
            format!("{host}, the sender's host, does not answer"),
            "likeliest: that host is off, or there is no way to it: ping it",
        ),
        Answer::Refused => (
            format!("a firewall refuses packets to {sender}"),
            "likeliest: that firewall, which may drop what comes from there, too",
        ),
    };
    let text = format!("{}; {told}", finding.text);
    // What is known of the sender is likelier than what was found at this host.
    let is_open = matches!(answer, Answer::Taken | Answer::Refused);
    let silent = is_open.then(|| interface.name.clone());
    let finding = Finding { text, remedy: Some(remedy.to_owned()), ..finding };
    Examined { findings: vec![finding], silent }
}

fn is_ours(address: IpAddr) -> bool {
    let Ok(interfaces) = Interfaces::list() else { return false };
    address.is_loopback()
        || interfaces
            .iter()
            .flat_map(|i| &i.addresses)
            .any(|a| a.ip == address || a.broadcast.map(IpAddr::from) == Some(address))
}

/// The finding for packets to another host: whether they would leave this one.
fn elsewhere(ticket: &Ticket, subject: &str) -> Finding {
    let host = ticket.group;
    let mut finding = Finding {
        subject: subject.to_owned(),
        verdict: Verdict::Unknown,
        text: format!("its packets go to {host}, which is not this host"),
        remedy: Some("run it there: fontana doctor TICKET".to_owned()),
    };
    match neighbor::missing(host) {
        Ok(Some(missing)) => {
            finding.verdict = Verdict::Warning;
            finding.text = format!(
                "its packets go to {host}; {} has no known address on {}: unless it answers, they \
                 do not leave this host",
                missing.next_hop, missing.interface
            );
            finding.remedy = Some(format!(
                "ip neigh replace {} lladdr MAC dev {} nud permanent",
                missing.next_hop, missing.interface
            ));
        }
        Ok(None) => {}
        Err(error) => finding.text = format!("{}: {error}", finding.text),
    }
    finding
}

/// What arrived.
#[derive(Default)]
struct Heard {
    packets: u64,
    bytes: u64,
    /// Packets with a symbol of the content.
    symbols: u64,
    /// Bytes of the longest packet.
    longest: usize,
    /// The address and number of each other session.
    others: BTreeSet<(IpAddr, Tsi)>,
    malformed: u64,
}

fn listen(ticket: &Ticket, interface: &Interface) -> Result<Heard, String> {
    let config = match ticket.group {
        group if group.is_multicast() => ReceiveConfig::multicast(group, ticket.port, interface),
        IpAddr::V4(ip) if interface.addresses.iter().any(|a| a.broadcast == Some(ip)) => {
            ReceiveConfig::broadcast(ip, ticket.port)
        }
        _ => ReceiveConfig::unicast(ticket.destination()),
    };
    let mut socket = ReceiveSocket::open(&config).map_err(|error| error.to_string())?;
    let (mut batch, mut heard) = (Batch::default(), Heard::default());
    let end = Instant::now() + WAIT;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        socket.recv_batch(left, &mut batch).map_err(|error| error.to_string())?;
        for (datagram, payload) in batch.iter() {
            let from = datagram.from.ip();
            let is_source = ticket.sources.is_empty() || ticket.sources.contains(&from);
            match Packet::parse(payload) {
                Ok(packet) if packet.header.tsi == ticket.tsi && is_source => {
                    heard.packets += 1;
                    heard.bytes += payload.len() as u64;
                    heard.symbols +=
                        u64::from(packet.header.toi.is_some_and(|toi| !toi.is_control()));
                    heard.longest = heard.longest.max(payload.len());
                }
                Ok(packet) if heard.others.len() < MAX_COUNTED => {
                    heard.others.insert((from, packet.header.tsi));
                }
                Ok(_) => {}
                Err(_) => heard.malformed += 1,
            }
        }
    }
    Ok(heard)
}

impl Heard {
    /// Not even packets of other sessions have arrived.
    fn is_nothing(&self) -> bool {
        self.packets == 0 && self.others.is_empty()
    }

    fn finding(&self, subject: String, interface: &Interface) -> Finding {
        let name = &interface.name;
        let wait = WAIT.as_secs();
        if self.packets > 0 {
            let rate = Rate(self.bytes as f64 * 8.0 / WAIT.as_secs_f64());
            let packets = Count(self.packets, "packet");
            let text = format!("{packets} arrived on {name} in {wait} s, {rate}");
            if self.symbols > 0 {
                return Finding { subject, verdict: Verdict::Good, text, remedy: None };
            }
            let longest = self.longest;
            let text = format!(
                "{text}: of at most {longest} bytes, and none with a symbol of the content"
            );
            let remedy = "likeliest: the sender rests, because all receivers are complete, or has \
                          sent everything (--push); or a link on the path has \
                          an MTU below its packets with symbols: start it with smaller ones \
                          (--symbol-size 1024), or raise the MTU (tracepath ADDRESS shows it)";
            let remedy = Some(remedy.to_owned());
            return Finding { subject, verdict: Verdict::Warning, text, remedy };
        }
        let mut text = format!("0 packets of it arrived on {name} in {wait} s");
        if !self.others.is_empty() {
            let named = self.others.iter().take(MAX_NAMED);
            let named: Vec<_> = named.map(|(from, tsi)| format!("{tsi} from {from}")).collect();
            let count = Count(self.others.len() as u64, "other session");
            text = format!("{text}, but those of {count}: {}", named.join(", "));
        }
        if self.malformed > 0 {
            let malformed = Count(self.malformed, "packet");
            text = format!("{text}, and {malformed} of no session");
        }
        let remedy = match self.others.is_empty() {
            true => {
                "likeliest: the sender does not run, or the network does not pass its packets on: \
                 on its host, fontana doctor; or listen on another interface: -i NAME"
            }
            false => {
                "likeliest: the sender has been started again with other content: take the ticket \
                 that it prints now"
            }
        };
        Finding { subject, verdict: Verdict::Bad, text, remedy: Some(remedy.to_owned()) }
    }
}
