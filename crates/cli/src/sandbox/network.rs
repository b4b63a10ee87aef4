//! What a process does with sockets: filters of its system calls.

use super::calls::{Comparison as Is, Length, Rules, condition, hide_clone3, number, rule};
use seccompiler::{SeccompCondition, SeccompRule};
use std::os::fd::{AsRawFd, BorrowedFd};

/// What a confined process may do with sockets: those for UDP, and what this says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sockets<'a> {
    pub(crate) sending: Sending<'a>,
    /// It opens TCP connections, to mirrors.
    pub(crate) tcp: bool,
    /// It asks the kernel for routes and neighbors (rtnetlink(7)).
    pub(crate) routes: bool,
}

/// Where packets may be sent from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sending<'a> {
    /// From no socket.
    Nowhere,
    /// From this socket, to any host. The kernel cannot compare destinations: a system call names
    /// them by an address in memory.
    From(BorrowedFd<'a>),
    Anywhere,
}

/// Refuses every system call that the calling thread, and those that it starts, do not need. With
/// [`Sending::Nowhere`], also every one that sends a packet: `connect`, `sendmsg`, `sendmmsg` and
/// `sendto` with a destination. Without a connection and a destination, `write` and its kind have
/// no address to send to.
///
/// Sockets of this host (`AF_UNIX`) are refused, by which other programs of it could be asked for
/// what this one may not do; but for connected pairs, by which threads wake each other.
///
/// # Errors
/// The kernel has no seccomp, or this program has no filter for its processor.
pub(crate) fn confine(sockets: &Sockets<'_>) -> Result<(), String> {
    let mut rules = Rules::default();
    rules.refuse_what_is_not_needed()?;
    rules.refuse(number::SOCKET, other_sockets(sockets)?);
    rules.refuse(number::SOCKETPAIR, other_pairs()?);
    let has_destination = || condition(4, Length::Qword, Is::Ne, 0);
    let sendto = match sockets.sending {
        Sending::Anywhere => None,
        Sending::Nowhere => Some(vec![has_destination()?]),
        Sending::From(socket) => {
            let number = u64::try_from(socket.as_raw_fd()).map_err(|error| error.to_string())?;
            let is_other = condition(0, Length::Dword, Is::Ne, number)?;
            Some(vec![has_destination()?, is_other])
        }
    };
    if let Some(sendto) = sendto {
        rules.refuse(number::SENDTO, vec![rule(sendto)?]);
        for number in [number::CONNECT, number::SENDMSG, number::SENDMMSG] {
            rules.refuse(number, Vec::new());
        }
    }
    hide_clone3()?;
    rules.apply()
}

/// Refuses every socket but those of this host (`AF_UNIX`): for programs that such a process
/// starts.
///
/// # Errors
/// As [`confine`].
pub(crate) fn refuse_networks() -> Result<(), String> {
    let mut rules = Rules::default();
    let other = condition(0, Length::Dword, Is::Ne, family::UNIX)?;
    rules.refuse(number::SOCKET, vec![rule(vec![other])?]);
    rules.refuse_detours();
    rules.apply()
}

/// The rules that a call of `socket` for what is allowed matches none of.
fn other_sockets(sockets: &Sockets<'_>) -> Result<Vec<SeccompRule>, String> {
    let none_of = |argument, allowed: &[(bool, u64)]| {
        let allowed = allowed.iter().filter(|(is_allowed, _)| *is_allowed);
        let others = allowed.map(|&(_, value)| condition(argument, Length::Dword, Is::Ne, value));
        others.collect::<Result<Vec<SeccompCondition>, String>>()
    };
    let (always, Sockets { tcp, routes, .. }) = (true, *sockets);
    let families = [(always, family::INET), (always, family::INET6), (routes, family::NETLINK)];
    let protocols = [(always, 0), (always, PROTOCOL_UDP), (tcp, PROTOCOL_TCP)];
    let mut rules = vec![rule(none_of(0, &families)?)?, rule(none_of(2, &protocols)?)?];
    // There is no "is not, of these bits".
    let is_other = |kind: &u64| *kind != TYPE_DATAGRAM && (*kind != TYPE_STREAM || !tcp);
    for other in (0..=TYPE_BITS).filter(is_other) {
        // Protocol 0 of netlink is that of routes, whatever the type.
        rules.push(rule(vec![
            condition(0, Length::Dword, Is::Ne, family::NETLINK)?,
            condition(1, Length::Dword, Is::MaskedEq(TYPE_BITS), other)?,
        ])?);
    }
    Ok(rules)
}

/// The rules that a call of `socketpair` for a connected pair matches none of. A pair of datagram
/// sockets could send to every socket of this host.
fn other_pairs() -> Result<Vec<SeccompRule>, String> {
    let mut rules = vec![rule(vec![condition(0, Length::Dword, Is::Ne, family::UNIX)?])?];
    for other in (0..=TYPE_BITS).filter(|&other| other != TYPE_STREAM) {
        rules.push(rule(vec![condition(1, Length::Dword, Is::MaskedEq(TYPE_BITS), other)?])?);
    }
    Ok(rules)
}

/// `IPPROTO_TCP` and `IPPROTO_UDP`.
const PROTOCOL_TCP: u64 = 6;
const PROTOCOL_UDP: u64 = 17;
/// `SOCK_STREAM` and `SOCK_DGRAM`.
const TYPE_STREAM: u64 = 1;
const TYPE_DATAGRAM: u64 = 2;
/// The bits of the type of a socket; the others are flags (`SOCK_TYPE_MASK` of Linux).
const TYPE_BITS: u64 = 0xf;

/// Address families, of socket(2).
mod family {
    pub(super) const UNIX: u64 = 1;
    pub(super) const INET: u64 = 2;
    pub(super) const INET6: u64 = 10;
    pub(super) const NETLINK: u64 = 16;
}
