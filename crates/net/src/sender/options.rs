//! Socket options of a sender.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::Socket;

use super::config::{SendConfig, SendError};
use crate::interface::Interface;
use crate::mtu::IpVersion;
use crate::optional::{OptionalSetting, Refusals};
use crate::sys;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn forbid_fragments(socket: &Socket, version: IpVersion) -> io::Result<()> {
    match version {
        IpVersion::V4 => {
            sys::set_int(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
        }
        IpVersion::V6 => {
            let probe = libc::IPV6_PMTUDISC_PROBE;
            sys::set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)?;
            // With PROBE alone this host still fragments what exceeds its own interface's MTU.
            sys::set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)
        }
    }
}

/// Other systems do not fragment packets that fit the MTU, which suffices.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn forbid_fragments(_socket: &Socket, _version: IpVersion) -> io::Result<()> {
    Ok(())
}

pub(super) fn set_traffic_class(
    socket: &Socket,
    version: IpVersion,
    dscp: Option<u8>,
    refusals: &mut Refusals,
) -> Result<(), SendError> {
    let Some(dscp) = dscp else { return Ok(()) };
    if dscp > 63 {
        return Err(SendError::Dscp(dscp));
    }
    // The upper six bits of the old type-of-service octet (RFC 2474); the lower two are ECN.
    let octet = i32::from(dscp) << 2;
    let (level, name) = match version {
        IpVersion::V4 => (libc::IPPROTO_IP, libc::IP_TOS),
        IpVersion::V6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    let marked = sys::set_int(socket, level, name, octet);
    refusals.tolerate(OptionalSetting::TrafficClass, marked);
    Ok(())
}

/// Multicast always uses the configured interface; limited broadcast too, if the system has an
/// option for it.
pub(super) fn direct_to_interface(
    socket: &Socket,
    version: IpVersion,
    interface: &Interface,
    source: SocketAddr,
    refusals: &mut Refusals,
) -> Result<(), SendError> {
    match (version, source.ip()) {
        (IpVersion::V4, IpAddr::V4(address)) => {
            step(
                "choose the interface for multicast",
                sys::set_multicast_interface_v4(socket, interface.index, address),
            )?;
            #[cfg(any(target_os = "linux", target_os = "android"))]
            refusals.tolerate(
                OptionalSetting::BroadcastInterface,
                // This option takes the index in network byte order.
                sys::set_int(
                    socket,
                    libc::IPPROTO_IP,
                    libc::IP_UNICAST_IF,
                    interface.index.to_be().cast_signed(),
                ),
            );
            Ok(())
        }
        _ => {
            step("choose the interface for multicast", socket.set_multicast_if_v6(interface.index))
        }
    }
}

pub(super) fn set_multicast_reach(
    socket: &Socket,
    version: IpVersion,
    config: &SendConfig,
    refusals: &mut Refusals,
) {
    let hops = u32::from(config.hop_limit);
    let (reach, hear) = match version {
        IpVersion::V4 => {
            (socket.set_multicast_ttl_v4(hops), socket.set_multicast_loop_v4(config.loopback))
        }
        IpVersion::V6 => {
            (socket.set_multicast_hops_v6(hops), socket.set_multicast_loop_v6(config.loopback))
        }
    };
    refusals.tolerate(OptionalSetting::HopLimit, reach);
    refusals.tolerate(OptionalSetting::LocalCopies, hear);
}

pub(super) fn step<T>(step: &'static str, result: io::Result<T>) -> Result<T, SendError> {
    result.map_err(|error| SendError::Setup { step, error })
}
