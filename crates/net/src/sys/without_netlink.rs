//! The interface addresses of this host without a netlink socket, for processes that may not open
//! one (seccomp, `RestrictAddressFamilies=` of systemd).
//!
//! Names and IPv6 addresses are in files of proc(5), IPv4 addresses come from the ioctls of
//! netdevice(7) on a UDP socket. No packet is sent.

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

use super::{RawAddress, ip_of};

/// Most IPv4 addresses that are read; the kernel is asked for all at once.
const MAX_ADDRESSES: usize = 4096;

/// Most bytes that are read of a list: several thousand lines.
const MAX_LIST: u64 = 1 << 20;

/// All interface addresses, and one record without an address for each interface.
pub(crate) fn interface_addresses() -> io::Result<Vec<RawAddress>> {
    let socket = any_socket()?;
    // The files of this thread's network namespace.
    let mut found: Vec<RawAddress> = names(&list("dev")?)
        .filter_map(|name| {
            // An interface that vanishes meanwhile has no flags.
            let (index, flags) = (index(&socket, name).ok()?, flags(&socket, name).ok()?);
            Some(RawAddress { index, flags, ..unaddressed(name) })
        })
        .collect();
    let of_interface = |found: &[RawAddress], name: &str| {
        let other = found.iter().find(|other| other.name == name).cloned();
        // Index 0 is that of no interface: it has vanished.
        other.unwrap_or_else(|| unaddressed(name))
    };
    for (label, address) in ipv4_addresses(&socket)? {
        // A label like `eth0:1` names an address of eth0.
        let name = label.split(':').next().unwrap_or_default();
        let of_address = |request| address_of(&socket, &label, address, request).ok();
        found.push(RawAddress {
            address: Some(address.into()),
            netmask: of_address(libc::SIOCGIFNETMASK as _),
            broadcast: of_address(libc::SIOCGIFBRDADDR as _),
            ..of_interface(&found, name)
        });
    }
    // The file is missing without IPv6.
    for (name, address, prefix_len) in ipv6_addresses(&list("if_inet6").unwrap_or_default()) {
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix_len)).unwrap_or(0);
        found.push(RawAddress {
            address: Some(address.into()),
            netmask: Some(Ipv6Addr::from(mask).into()),
            broadcast: None,
            ..of_interface(&found, name)
        });
    }
    Ok(found)
}

/// A socket to ask the kernel with. It needs no address: a process may not be allowed to bind one.
pub(super) fn any_socket() -> io::Result<UdpSocket> {
    let of = |domain| Socket::new(domain, Type::DGRAM, None).map(UdpSocket::from);
    // A kernel may lack one of them.
    of(Domain::IPV4).or_else(|_| of(Domain::IPV6))
}

/// Whether an interface has this index.
pub(super) fn is_index(socket: &UdpSocket, index: u32) -> io::Result<bool> {
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = i32::try_from(index).map_err(io::Error::other)?;
    // SAFETY: SIOCGIFNAME reads `ifru_ifindex` and writes `ifr_name` of the ifreq it is given.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME as _, &mut request) };
    unless_missing((result >= 0).then_some(()).ok_or_else(io::Error::last_os_error))
        .map(|found| found.is_some())
}

/// The index of the interface with this name; `None` if there is none.
pub(super) fn index_of(socket: &UdpSocket, name: &str) -> io::Result<Option<u32>> {
    unless_missing(index(socket, name))
}

/// `None` if the system knows no such interface.
fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => Ok(None),
        result => result.map(Some),
    }
}

fn unaddressed(name: &str) -> RawAddress {
    RawAddress {
        name: name.to_owned(),
        index: 0,
        flags: 0,
        address: None,
        netmask: None,
        broadcast: None,
    }
}

fn list(name: &str) -> io::Result<String> {
    let mut text = Vec::new();
    let file = File::open(format!("/proc/thread-self/net/{name}"))?;
    file.take(MAX_LIST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The names in the text of `/proc/net/dev`: what is before the colon of a line.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()))
}

/// Name, address and length of the prefix, from the text of `/proc/net/if_inet6`.
fn ipv6_addresses(text: &str) -> impl Iterator<Item = (&str, Ipv6Addr, u8)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let address = u128::from_str_radix(fields.next()?, 16).ok()?;
        let prefix_len = u8::from_str_radix(fields.nth(1)?, 16).ok()?;
        Some((fields.nth(2)?, address.into(), prefix_len.min(128)))
    })
}

/// A request about the interface or label `name`.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays NUL.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// The index of an interface. `if_nametoindex` may need a socket of another family.
fn index(socket: &UdpSocket, name: &str) -> io::Result<u32> {
    let mut request = request(name);
    // SAFETY: SIOCGIFINDEX reads `ifr_name` and writes `ifru_ifindex` of the ifreq it is given.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX as _, &mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: after success `ifru_ifindex` is the member that the kernel wrote.
    u32::try_from(unsafe { request.ifr_ifru.ifru_ifindex }).map_err(io::Error::other)
}

fn flags(socket: &UdpSocket, name: &str) -> io::Result<u32> {
    let mut request = request(name);
    // SAFETY: SIOCGIFFLAGS reads `ifr_name` and writes `ifru_flags` of the ifreq it is given.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: after success `ifru_flags` is the member that the kernel wrote.
    Ok(u32::from(unsafe { request.ifr_ifru.ifru_flags } as u16))
}

/// What `which` asks about an IPv4 address: its netmask, or its broadcast address.
fn address_of(
    socket: &UdpSocket,
    label: &str,
    address: Ipv4Addr,
    which: libc::c_ulong,
) -> io::Result<IpAddr> {
    let mut request = request(label);
    // SAFETY: sockaddr_in is plain data, for which all zeros is a value.
    let mut of: libc::sockaddr_in = unsafe { mem::zeroed() };
    of.sin_family = libc::AF_INET as _;
    of.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
    // SAFETY: both types are plain data of 16 bytes.
    request.ifr_ifru.ifru_addr = unsafe { mem::transmute::<libc::sockaddr_in, libc::sockaddr>(of) };
    // SAFETY: the request reads `ifr_name` and `ifru_addr`, and writes a socket address there.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), which as _, &mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: after success the kernel has written a complete socket address of its family, and
    // those of IPv4 fit into the member.
    unsafe { ip_of(std::ptr::addr_of!(request.ifr_ifru.ifru_addr)) }
        .ok_or_else(|| io::Error::other("not an IP address"))
}

/// The label and the address of each IPv4 address.
fn ipv4_addresses(socket: &UdpSocket) -> io::Result<Vec<(String, Ipv4Addr)>> {
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut requests: Vec<libc::ifreq> = vec![unsafe { mem::zeroed() }; MAX_ADDRESSES];
    let bytes = mem::size_of_val(requests.as_slice());
    let mut all = libc::ifconf {
        ifc_len: libc::c_int::try_from(bytes).map_err(io::Error::other)?,
        ifc_ifcu: libc::__c_anonymous_ifc_ifcu { ifcu_req: requests.as_mut_ptr() },
    };
    // SAFETY: SIOCGIFCONF writes at most `ifc_len` bytes of ifreqs to `ifcu_req`, which has room
    // for as many, and sets `ifc_len` to what it wrote.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFCONF as _, &mut all) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let written = usize::try_from(all.ifc_len).unwrap_or(0) / mem::size_of::<libc::ifreq>();
    let found = requests.iter().take(written).filter_map(|request| {
        let name: Vec<u8> = request.ifr_name.iter().map(|&byte| byte as u8).collect();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        // SAFETY: the kernel has written a complete IPv4 socket address here.
        match unsafe { ip_of(std::ptr::addr_of!(request.ifr_ifru.ifru_addr)) } {
            Some(IpAddr::V4(address)) => Some((String::from_utf8_lossy(name).into(), address)),
            _ => None,
        }
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lists_of_the_kernel_are_parsed() {
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 1 2\n eth0.5:7\n";
        assert_eq!(names(dev).collect::<Vec<_>>(), ["lo", "eth0.5"]);
        let inet6 = "fe80000000000000000000fffe000001 02 40 20 80     eth0\n\
                     00000000000000000000000000000001 01 80 10 80       lo\nx\n\n1 2 3\n";
        let found: Vec<_> = ipv6_addresses(inet6).collect();
        let expected = [("eth0", "fe80::ff:fe00:1", 64), ("lo", "::1", 128)]
            .map(|(name, address, length)| (name, address.parse().unwrap(), length));
        assert_eq!(found, expected);
    }

    /// Both ways to ask give the same interfaces, addresses, masks and flags.
    #[test]
    fn the_addresses_are_those_of_netlink() {
        // Those that an interface reports; only the first 16 bits are in an ioctl's answer.
        let key = |raw: &RawAddress| {
            let broadcast = raw.broadcast.filter(|_| raw.flags & libc::IFF_BROADCAST as u32 != 0);
            let shown = (raw.name.clone(), raw.index, raw.flags & 0xffff);
            (shown, raw.address, raw.netmask, broadcast.filter(IpAddr::is_ipv4))
        };
        let by_netlink = super::super::interface_addresses().unwrap();
        // An interface without an address of a version is reported differently.
        let of = |list: &[RawAddress]| {
            let addressed = list.iter().filter(|raw| raw.address.is_some());
            addressed.map(key).collect::<BTreeSet<_>>()
        };
        let here = interface_addresses().unwrap();
        assert!(!here.is_empty());
        assert_eq!(of(&here), of(&by_netlink));
        let names = |list: &[RawAddress]| {
            list.iter().map(|raw| (raw.index, raw.name.clone())).collect::<BTreeSet<_>>()
        };
        assert_eq!(names(&here), names(&by_netlink));
    }
}
