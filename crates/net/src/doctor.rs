//! Probes that check whether one-way multicast works on this host, and suggest remedies.
//!
//! Every probe returns [`Finding`]s: the subject, a verdict, the facts in one sentence and a
//! remedy. Probes print nothing, change nothing, and send nothing to the network (probes on real
//! interfaces have hop limit 0). A probe that lacks privilege reports [`Verdict::Unknown`].

mod firewall;
mod loopback;
mod querier;
mod rules;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use firewall::{FIREWALL, firewall};
pub use loopback::{loopback_broadcast, multicast, offload};
pub use querier::{QUERIER, querier};

use crate::interface::{Interface, InterfaceSelector, Interfaces};
use crate::mtu::{DEFAULT_PAYLOAD_SIZE, IpVersion, payload_size_for};
use crate::receiver::{DEFAULT_RECEIVE_BUFFER, ReceiveConfig, ReceiveSocket};

/// The result of a probe, as a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Works.
    Good,
    /// Not determined, mostly for lack of privilege.
    Unknown,
    /// Works, but fails or is slow in some situations.
    Warning,
    /// Does not work.
    Bad,
}

/// The result of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The subject of the probe, for example `receive buffer` or `interface eth0`.
    pub subject: String,
    /// The class of the result.
    pub verdict: Verdict,
    /// The facts, in one sentence without a full stop.
    pub text: String,
    /// The remedy, a command if there is one.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(subject: impl Into<String>, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), verdict, text: text.into(), remedy: None }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Options of [`examine`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorConfig {
    /// The interface to examine; `None` examines all. Probing multicast on an interface makes the
    /// system send membership reports there.
    pub interface: Option<InterfaceSelector>,
    /// Bytes of receive buffer that a session requests.
    pub receive_buffer: usize,
    /// How long to listen for an IGMP querier, which sends every 125 s by default (RFC 3376 section
    /// 8.2), or until the first query. Only root can listen; without root there is no wait.
    pub querier_wait: Duration,
    /// Where packets go that have to arrive: rules that drop them are looked for.
    pub destination: Option<SocketAddr>,
}

/// The buffer of a default session, and 3 s: a wait that users accept, but too short to conclude
/// that there is no querier.
impl Default for DoctorConfig {
    fn default() -> Self {
        Self {
            interface: None,
            receive_buffer: DEFAULT_RECEIVE_BUFFER,
            querier_wait: Duration::from_secs(3),
            destination: None,
        }
    }
}

/// Runs all probes, in the order in which a person would examine the host.
///
/// Takes as long as `querier_wait` plus about two seconds if something does not work.
pub fn examine(config: &DoctorConfig) -> Vec<Finding> {
    examine_until(config, &|| false)
}

/// As [`examine`], and stops listening for a querier soon after `is_over` returns `true`.
pub fn examine_until(config: &DoctorConfig, is_over: &dyn Fn() -> bool) -> Vec<Finding> {
    let interfaces = match Interfaces::list() {
        Ok(interfaces) => interfaces,
        Err(error) => {
            let text = format!("cannot be listed: {error}");
            return vec![Finding::new("interfaces", Verdict::Bad, text)];
        }
    };
    let all = interfaces;
    let interfaces = match &config.interface {
        None => all.clone(),
        Some(selector) => match all.select(selector) {
            Ok(interface) => Interfaces::from_vec(vec![interface.clone()]),
            Err(error) => {
                return vec![Finding::new("interfaces", Verdict::Bad, error.to_string())];
            }
        },
    };
    let mut findings: Vec<Finding> = interfaces.iter().map(interface).collect();
    if config.interface.is_none() {
        findings.push(default_interface(&interfaces));
    }
    findings.extend(link(&interfaces, config.interface.is_some()));
    findings.push(receive_buffer(config.receive_buffer));
    match all.loopback() {
        None => findings.push(
            Finding::new("loopback", Verdict::Bad, "there is no loopback interface that is up")
                .remedy("ip link set lo up"),
        ),
        Some(lo) => {
            findings.push(multicast(lo, IpVersion::V4, false));
            findings.push(multicast(lo, IpVersion::V4, true));
            findings.push(loopback_broadcast(lo));
            findings.push(offload(lo));
        }
    }
    for interface in interfaces.iter().filter(|i| !i.is_loopback && i.carries_multicast()) {
        for version in [IpVersion::V4, IpVersion::V6] {
            if interface.address(version).is_some() {
                findings.push(multicast(interface, version, false));
            }
        }
        findings.extend(reverse_path(interface));
    }
    findings.extend(querier(&interfaces, config.querier_wait, is_over));
    findings.push(firewall(config.destination));
    findings.extend(membership_limits());
    findings
}

/// The facts about one interface.
pub fn interface(interface: &Interface) -> Finding {
    let subject = format!("interface {}", interface.name);
    let addresses: Vec<String> =
        interface.addresses.iter().map(|a| format!("{}/{}", a.ip, a.prefix_len)).collect();
    let facts = format!(
        "{}, MTU {}, {}",
        if interface.is_up { "up" } else { "down" },
        interface.mtu,
        if addresses.is_empty() { "no address".to_owned() } else { addresses.join(" ") },
    );
    if !interface.is_up {
        // Most hosts have interfaces that are switched off on purpose.
        return Finding::new(subject, Verdict::Good, facts);
    }
    if !interface.carries_multicast() {
        return Finding::new(subject, Verdict::Warning, format!("{facts}, carries no multicast"))
            .remedy(format!("ip link set {} multicast on", interface.name));
    }
    let payload = payload_size_for(interface.mtu, IpVersion::V4, DEFAULT_PAYLOAD_SIZE);
    if payload < DEFAULT_PAYLOAD_SIZE {
        let text = format!(
            "{facts}: carries {payload} bytes of UDP payload, senders elsewhere use up to \
             {DEFAULT_PAYLOAD_SIZE}"
        );
        return Finding::new(subject, Verdict::Warning, text)
            .remedy("have senders choose symbols that fit this MTU, or raise it");
    }
    Finding::new(subject, Verdict::Good, facts)
}

/// That the interface of a session, the one that was chosen or else the default one, has no link.
fn link(interfaces: &Interfaces, is_chosen: bool) -> Option<Finding> {
    let interface = match is_chosen {
        true => interfaces.iter().next()?,
        false => interfaces.default_for(A_GROUP.into()).ok()?.0,
    };
    let carrier = fs::read_to_string(format!("/sys/class/net/{}/carrier", interface.name));
    let is_missing = interface.is_up && carrier.is_ok_and(|carrier| carrier.trim() == "0");
    let subject = format!("link of {}", interface.name);
    is_missing.then(|| {
        Finding::new(subject, Verdict::Bad, "no carrier: no cable, or its other end is off")
            .remedy("connect it, or use another interface: -i NAME")
    })
}

/// Any group of the range that sessions use.
const A_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// The interface that a session uses if the user names none.
pub fn default_interface(interfaces: &Interfaces) -> Finding {
    match interfaces.default_for(A_GROUP.into()) {
        Ok((interface, reason)) => Finding::new(
            "default interface",
            Verdict::Good,
            format!("{}, because {reason}", interface.name),
        ),
        Err(error) => Finding::new("default interface", Verdict::Bad, error.to_string()),
    }
}

/// Whether the system grants a receive buffer of `asked` bytes.
pub fn receive_buffer(asked: usize) -> Finding {
    let subject = "receive buffer";
    let mut config = ReceiveConfig::unicast((Ipv4Addr::LOCALHOST, 0).into());
    config.receive_buffer = asked;
    let socket = match ReceiveSocket::open(&config) {
        Ok(socket) => socket,
        Err(error) => return Finding::new(subject, Verdict::Bad, error.to_string()),
    };
    match socket.buffer_shortfall() {
        None => Finding::new(subject, Verdict::Good, format!("{asked} bytes can be had")),
        Some(shortfall) => Finding::new(
            subject,
            Verdict::Warning,
            format!(
                "{} bytes of {asked}: a receiver that is held up loses packets sooner",
                shortfall.got
            ),
        )
        .remedy(shortfall.remedy.clone()),
    }
}

/// Reverse path filtering drops packets from a source that this host would not answer over the same
/// interface: on a one-way link, all packets (RFC 3704; Linux: ip-sysctl, `rp_filter`).
fn reverse_path(interface: &Interface) -> Option<Finding> {
    let mode = |name: &str| -> Option<u32> {
        let path = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    // The larger of the two applies; 1 is strict, 2 loose.
    let effective = mode("all")?.max(mode(&interface.name)?);
    let subject = format!("reverse path filter {}", interface.name);
    if effective != 1 {
        return Some(Finding::new(subject, Verdict::Good, "not strict"));
    }
    Some(
        Finding::new(
            subject,
            Verdict::Warning,
            "strict: packets of a sender that is not routed over this interface are dropped unseen",
        )
        .remedy(format!("sysctl -w net.ipv4.conf.{}.rp_filter=2", interface.name)),
    )
}

/// The kernel's limits for joins (Linux; `None` elsewhere).
fn membership_limits() -> Option<Finding> {
    let read = |name: &str| -> Option<u32> {
        fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?.trim().parse().ok()
    };
    let (groups, sources) = (read("igmp_max_memberships")?, read("igmp_max_msf")?);
    let subject = "membership limits";
    let text = format!("{groups} groups per socket, {sources} sources per group");
    if groups == 0 || sources == 0 {
        return Some(
            Finding::new(subject, Verdict::Bad, text)
                .remedy("sysctl -w net.ipv4.igmp_max_memberships=20 net.ipv4.igmp_max_msf=10"),
        );
    }
    Some(Finding::new(subject, Verdict::Good, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet() -> Interface {
        Interface {
            name: "eth0".to_owned(),
            index: 2,
            addresses: Vec::new(),
            mtu: 1500,
            is_up: true,
            is_multicast: true,
            is_loopback: false,
        }
    }

    #[test]
    fn an_interface_is_judged_by_what_a_session_needs() {
        assert_eq!(interface(&ethernet()).verdict, Verdict::Good);
        let small = interface(&Interface { mtu: 1427, ..ethernet() });
        assert_eq!(small.verdict, Verdict::Warning);
        assert_eq!(interface(&Interface { mtu: 1428, ..ethernet() }).verdict, Verdict::Good);
        let deaf = interface(&Interface { is_multicast: false, ..ethernet() });
        assert_eq!(deaf.remedy.as_deref(), Some("ip link set eth0 multicast on"));
        let down = interface(&Interface { is_up: false, ..ethernet() });
        assert!(down.text.starts_with("down"), "{}", down.text);
    }

    #[test]
    fn a_buffer_that_is_not_granted_has_a_remedy() {
        let finding = receive_buffer(1 << 30);
        assert!(finding.verdict == Verdict::Good || finding.remedy.is_some(), "{finding:?}");
        assert_eq!(receive_buffer(65_536).verdict, Verdict::Good);
    }

    #[test]
    fn every_finding_has_a_text_without_full_stop() {
        let config = DoctorConfig {
            interface: Some(InterfaceSelector::Name("lo".to_owned())),
            querier_wait: Duration::ZERO,
            ..DoctorConfig::default()
        };
        let findings = examine(&config);
        assert!(findings.len() > 5);
        for finding in &findings {
            assert!(!finding.text.is_empty() && !finding.text.ends_with('.'), "{finding:?}");
        }
        // Probes that succeed on every Linux host.
        #[cfg(target_os = "linux")]
        for subject in
            ["multicast on lo", "source-specific multicast on lo", "segmentation offload"]
        {
            let finding = findings.iter().find(|f| f.subject == subject).expect(subject);
            assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
        }
    }
}
