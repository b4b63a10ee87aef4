//! Probes that send a few datagrams to this host itself.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use super::{Finding, Verdict};
use crate::interface::Interface;
use crate::mtu::IpVersion;
use crate::receiver::{Batch, ReceiveConfig, ReceiveSocket};
use crate::sender::{ChannelAddress, SendConfig, SendSocket};

/// Time limit of a probe. A datagram to the same host takes microseconds; this allows for load.
const PATIENCE: Duration = Duration::from_millis(500);

/// Sends a datagram to a random group on `interface` and receives it, from any source or from this
/// host only. It does not leave this host.
pub fn multicast(interface: &Interface, version: IpVersion, source_specific: bool) -> Finding {
    let kind = match (source_specific, version) {
        (false, IpVersion::V4) => "multicast on",
        (false, IpVersion::V6) => "IPv6 multicast on",
        (true, IpVersion::V4) => "source-specific multicast on",
        (true, IpVersion::V6) => "source-specific IPv6 multicast on",
    };
    let subject = format!("{kind} {}", interface.name);
    let remedy = format!(
        "check a local firewall, and that {} is up with an address; otherwise send by broadcast or \
         to named hosts",
        interface.name
    );
    finding(subject, round_trip(interface, version, source_specific), &remedy)
}

/// Sends a datagram to the broadcast address of the loopback network and receives it.
pub fn loopback_broadcast(loopback: &Interface) -> Finding {
    let attempt = || -> Result<Received, Box<dyn std::error::Error>> {
        let address = Ipv4Addr::new(127, 255, 255, 255);
        let mut receiver = ReceiveSocket::open(&ReceiveConfig::broadcast(address, 0))?;
        let to = ChannelAddress::Broadcast(SocketAddrV4::new(address, receiver.port()));
        let mut sender = SendSocket::new(&SendConfig::new(loopback, vec![to]))?;
        sender.send_batch(0, PROBE, PROBE.len())?;
        Ok(listen(&mut receiver, 1)?)
    };
    finding("broadcast on loopback".to_owned(), attempt(), "check a local firewall")
}

/// Sends a GSO batch over the loopback interface, and checks whether it arrives as one.
pub fn offload(loopback: &Interface) -> Finding {
    const SEGMENT: usize = 1000;
    const SEGMENTS: usize = 8;
    let subject = "segmentation offload";
    let attempt = || -> Result<(bool, Received), Box<dyn std::error::Error>> {
        let mut config = ReceiveConfig::unicast((Ipv4Addr::LOCALHOST, 0).into());
        config.sources = vec![Ipv4Addr::LOCALHOST.into()];
        let mut receiver = ReceiveSocket::open(&config)?;
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, receiver.port()));
        let to = ChannelAddress::Unicast(vec![to]);
        let mut sender = SendSocket::new(&SendConfig::new(loopback, vec![to]))?;
        sender.send_batch(0, &[0; SEGMENT * SEGMENTS], SEGMENT)?;
        Ok((sender.uses_offload(), listen(&mut receiver, SEGMENTS)?))
    };
    let slow = "the session works, at several times the processor's work per packet";
    match attempt() {
        Err(error) => Finding::new(subject, Verdict::Bad, error.to_string()),
        Ok((true, received)) if received.datagrams == SEGMENTS && received.receive_calls == 1 => {
            Finding::new(subject, Verdict::Good, "works in both directions")
        }
        Ok((_, received)) if received.datagrams != SEGMENTS => Finding::new(
            subject,
            Verdict::Bad,
            format!("{} of {SEGMENTS} datagrams arrived over loopback", received.datagrams),
        )
        .remedy("check a local firewall"),
        Ok((false, _)) => {
            Finding::new(subject, Verdict::Warning, format!("refused when sending: {slow}"))
                .remedy("Linux 4.18 or later has it")
        }
        Ok((true, _)) => {
            Finding::new(subject, Verdict::Warning, format!("not there when receiving: {slow}"))
                .remedy("Linux 5.0 or later has it")
        }
    }
}

/// Recognisable in a packet dump.
const PROBE: &[u8] = b"fontana doctor";

/// The received part of a probe.
#[derive(Debug, Clone, Copy, Default)]
struct Received {
    datagrams: usize,
    receive_calls: usize,
}

fn round_trip(
    interface: &Interface,
    version: IpVersion,
    source_specific: bool,
) -> Result<Received, Box<dyn std::error::Error>> {
    let group = random_group(version, source_specific);
    let mut config = ReceiveConfig::multicast(group, 0, interface);
    if source_specific {
        config.sources.extend(interface.address(version));
    }
    let mut receiver = ReceiveSocket::open(&config)?;
    let to = ChannelAddress::Multicast(SocketAddr::new(group, receiver.port()));
    let mut config = SendConfig::new(interface, vec![to]);
    config.hop_limit = 0;
    let mut sender = SendSocket::new(&config)?;
    let sent = sender.send_batch(0, PROBE, PROBE.len())?;
    if sent.lost > 0 {
        let why = match sender.losses() {
            losses if losses.not_permitted > 0 => "a packet filter of this host forbids it",
            losses if losses.unreachable > 0 => "there is no route",
            _ => "its queue is full",
        };
        return Err(format!("cannot send: {why}").into());
    }
    Ok(listen(&mut receiver, 1)?)
}

/// Receives up to `wanted` datagrams.
fn listen(receiver: &mut ReceiveSocket, wanted: usize) -> std::io::Result<Received> {
    let mut batch = Batch::default();
    let started = Instant::now();
    while batch.len() < wanted && !batch.is_full() {
        let remaining = PATIENCE.saturating_sub(started.elapsed());
        if remaining.is_zero() {
            break;
        }
        receiver.recv_more(remaining, &mut batch)?;
    }
    Ok(Received { datagrams: batch.len(), receive_calls: batch.receive_calls() })
}

fn finding(
    subject: String,
    result: Result<Received, Box<dyn std::error::Error>>,
    remedy: &str,
) -> Finding {
    match result {
        Ok(received) if received.datagrams > 0 => {
            Finding::new(subject, Verdict::Good, "a datagram sent to oneself was heard")
        }
        Ok(_) => Finding::new(subject, Verdict::Bad, "a datagram sent to oneself was not heard")
            .remedy(remedy),
        Err(error) => Finding::new(subject, Verdict::Bad, error.to_string()).remedy(remedy),
    }
}

/// A group that other programs are unlikely to use: 239.255.x.y, or ff15:: (site scope, transient)
/// and ff35:: (the same, source-specific; group identifiers of RFC 4607 section 1 start at 8000:0).
fn random_group(version: IpVersion, source_specific: bool) -> IpAddr {
    let [a, b, c, d, ..] = RandomState::new().hash_one(0_u8).to_ne_bytes();
    match version {
        IpVersion::V4 => Ipv4Addr::new(239, 255, a, b).into(),
        IpVersion::V6 => {
            let flags = if source_specific { 0xff35 } else { 0xff15 };
            let high = u16::from_be_bytes([a | 0x80, b]);
            Ipv6Addr::new(flags, 0, 0, 0, 0, 0, high, u16::from_be_bytes([c, d])).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_use_groups_that_may_carry_a_session() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for source_specific in [false, true] {
                let group = random_group(version, source_specific);
                assert_eq!(crate::group::check_group(group), Ok(()));
            }
        }
        assert!(crate::group::is_source_specific(random_group(IpVersion::V6, true)));
    }

    #[test]
    fn a_probe_on_a_missing_interface_is_bad_with_the_reason() {
        let gone = Interface {
            name: "gone0".to_owned(),
            index: 999_999,
            addresses: Vec::new(),
            mtu: 1500,
            is_up: true,
            is_multicast: true,
            is_loopback: false,
        };
        let finding = multicast(&gone, IpVersion::V4, false);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.text.contains("gone0") && finding.remedy.is_some(), "{finding:?}");
    }
}
