//! System calls that neither `std` nor `socket2` offers, behind safe functions.
//!
//! This file and its folder are the crate's only ones with `unsafe`. Its functions are thin; their
//! callers document what they are used for.
#![allow(unsafe_code)]

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod without_netlink;

use std::ffi::CStr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use quinn_udp::{EcnCodepoint, RecvMeta};
use socket2::Socket;

/// Lets the C library give blocks of this size back to the system when they are freed.
#[cfg(target_env = "gnu")]
pub(crate) fn return_blocks_of(bytes: i32) {
    // SAFETY: the call changes a number of the C library, under its own lock.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) };
}

/// Other C libraries do.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_blocks_of(_bytes: i32) {}

/// Lets all threads allocate from one arena of the C library.
#[cfg(target_env = "gnu")]
pub(crate) fn share_one_arena() {
    // SAFETY: as above.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other C libraries have none.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn share_one_arena() {}

/// One record of `getifaddrs`: an interface and at most one of its addresses.
#[derive(Debug, Clone)]
pub(crate) struct RawAddress {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) flags: u32,
    pub(crate) address: Option<IpAddr>,
    pub(crate) netmask: Option<IpAddr>,
    pub(crate) broadcast: Option<IpAddr>,
}

/// All interface addresses of this host, in the system's order.
pub(crate) fn interface_addresses() -> io::Result<Vec<RawAddress>> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `head` is a valid place for the call to write one pointer to.
    if unsafe { libc::getifaddrs(&mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = head;
    while !next.is_null() {
        // SAFETY: `next` is a non-null node of the list that getifaddrs made. The list is freed
        // only after this loop, and no other code has it.
        let node = unsafe { &*next };
        next = node.ifa_next;
        if node.ifa_name.is_null() {
            continue;
        }
        // SAFETY: getifaddrs fills `ifa_name` with a NUL-terminated string that lives as long as
        // the list.
        let name = unsafe { CStr::from_ptr(node.ifa_name) };
        // An IPv4 label like `eth0:1` names an address of eth0, not an interface.
        let name = name.to_string_lossy();
        let name = name.split(':').next().unwrap_or_default().to_owned();
        found.push(RawAddress {
            index: interface_index(&name),
            name,
            flags: node.ifa_flags,
            // SAFETY: the three pointers are null or point to a sockaddr of the list, complete for
            // its own family.
            address: unsafe { ip_of(node.ifa_addr) },
            // SAFETY: as above.
            netmask: unsafe { ip_of(node.ifa_netmask) },
            // SAFETY: as above; only meaningful (and only used) when IFF_BROADCAST is set.
            broadcast: unsafe { ip_of(broadcast_address(node)) },
        });
    }
    // SAFETY: `head` came from getifaddrs and is freed once; no reference into it is left.
    unsafe { libc::freeifaddrs(head) };
    Ok(found)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn broadcast_address(node: &libc::ifaddrs) -> *const libc::sockaddr {
    node.ifa_ifu
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn broadcast_address(node: &libc::ifaddrs) -> *const libc::sockaddr {
    node.ifa_dstaddr
}

/// The address in a socket address, if it is IPv4 or IPv6.
///
/// # Safety
/// `address` is null or points to a socket address that is complete for its `sa_family`.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees a readable sockaddr; `sa_family` is in every one of them. The
    // reads are unaligned because alignment is not guaranteed.
    let family = unsafe { std::ptr::addr_of!((*address).sa_family).read_unaligned() };
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: an AF_INET address is a complete sockaddr_in.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an AF_INET6 address is a complete sockaddr_in6.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// The index of an interface; 0, which no interface has, if it has vanished.
fn interface_index(name: &str) -> u32 {
    let Ok(name) = std::ffi::CString::new(name) else { return 0 };
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

/// The index that an interface has now: the same while any interface has it, else that of its name;
/// `None` if there is none. Asked without netlink.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn index_now(name: &str, index: u32) -> io::Result<Option<u32>> {
    let socket = without_netlink::any_socket()?;
    if without_netlink::is_index(&socket, index)? {
        return Ok(Some(index));
    }
    without_netlink::index_of(&socket, name)
}

/// The index of the name. A renamed interface counts as gone.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn index_now(name: &str, _index: u32) -> io::Result<Option<u32>> {
    Ok(Some(interface_index(name)).filter(|&index| index > 0))
}

/// The interface's MTU in bytes, IP header included.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn interface_mtu(name: &str) -> io::Result<u32> {
    let socket = without_netlink::any_socket()?;
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays NUL.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads `ifr_name` and writes `ifru_mtu` of the ifreq it is given.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: after success `ifru_mtu` is the member that the kernel wrote.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(io::Error::other)
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn interface_mtu(_name: &str) -> io::Result<u32> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Descriptors for poll(2), which every system has.
pub(crate) struct PollSet(Vec<libc::pollfd>);

impl PollSet {
    pub(crate) fn new(descriptors: impl Iterator<Item = RawFd>) -> Self {
        let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        Self(descriptors.map(wanted).collect())
    }

    /// Waits until one of them is readable. `false` after the timeout or a signal.
    ///
    /// Rounded up to whole milliseconds, so that a wait of 100 microseconds is not a busy loop.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
        let milliseconds = i32::try_from(milliseconds).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the number are those of one live vector of pollfd.
        let ready =
            unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, milliseconds) };
        if ready >= 0 {
            return Ok(ready > 0);
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted {
            return Ok(false);
        }
        Err(error)
    }

    /// True if the descriptor with this index was readable, or had an error, when the wait ended.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn is_ready(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|polled| polled.revents != 0)
    }
}

/// Waits until the socket is readable; see [`PollSet::wait`].
pub(crate) fn wait_readable(socket: &Socket, timeout: Duration) -> io::Result<bool> {
    PollSet::new(std::iter::once(socket.as_raw_fd())).wait(timeout)
}

/// The value of a setting of this host (`/proc/sys`, proc(5)); `None` if it does not exist.
pub(crate) fn setting(name: &str) -> Option<usize> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Sets a socket option whose value is any plain C structure or number.
fn set_option<T>(fd: RawFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes from a reference that is valid for the call.
    // Every T used in this file is plain data that is completely initialised (zeroed first).
    let result = unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Messages that one call receives at most: more than a sender's largest GSO batch has datagrams.
pub(crate) const MAX_MESSAGES: usize = 64;

/// Control data of a message: the size of merged datagrams and the ECN codepoint, 24 bytes each,
/// and room for what another option may add.
#[cfg(any(target_os = "linux", target_os = "android"))]
type Control = [u64; 12];

/// Receives messages that have arrived, without waiting: each into the two buffers of its room, and
/// its sender, length, stride and ECN codepoint into `metas`. Returns their number.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn receive_messages(
    socket: &Socket,
    rooms: &mut [[io::IoSliceMut<'_>; 2]],
    metas: &mut [RecvMeta; MAX_MESSAGES],
) -> io::Result<usize> {
    let mut names = [const { mem::MaybeUninit::<libc::sockaddr_storage>::zeroed() }; MAX_MESSAGES];
    let mut controls = [const { mem::MaybeUninit::<Control>::uninit() }; MAX_MESSAGES];
    let mut headers = [const { mem::MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_MESSAGES];
    let count = rooms.len().min(MAX_MESSAGES);
    let memory = rooms.iter_mut().zip(&mut names).zip(&mut controls);
    for (((room, name), control), header) in memory.zip(&mut headers) {
        // SAFETY: zeros are a valid mmsghdr: null pointers and lengths of 0.
        let header = &mut header.write(unsafe { mem::zeroed() }).msg_hdr;
        header.msg_name = name.as_mut_ptr().cast();
        header.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // On Unix an IoSliceMut has the layout of an iovec.
        header.msg_iov = room.as_mut_ptr().cast();
        header.msg_iovlen = room.len() as _;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = mem::size_of::<Control>() as _;
    }
    // SAFETY: the first `count` headers were written, and point to live memory of the given
    // lengths, which nothing else refers to until the call returns.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for ((header, name), meta) in headers.iter().zip(&names).zip(metas).take(received) {
        // SAFETY: the kernel received at most `count` messages, whose headers were written.
        let header = unsafe { header.assume_init_ref() };
        *meta = RecvMeta::default();
        meta.len = header.msg_len as usize;
        meta.stride = meta.len;
        // SAFETY: the name was zeroed, and then the kernel wrote an address to it.
        meta.addr = socket_address(unsafe { name.assume_init_ref() });
        // SAFETY: the kernel has filled the control data of this header, whose memory is alive.
        unsafe { read_control(&header.msg_hdr, meta) };
    }
    Ok(received)
}

/// The address in a `sockaddr_storage`; an unspecified one if it is not an address of IP.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn socket_address(storage: &libc::sockaddr_storage) -> SocketAddr {
    let storage = std::ptr::from_ref(storage);
    // SAFETY: a sockaddr_storage is large enough for an address of each family and aligned for it,
    // and any bytes are a valid one.
    unsafe {
        match i32::from((*storage).ss_family) {
            libc::AF_INET => {
                let v4 = &*storage.cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                SocketAddr::from((ip, u16::from_be(v4.sin_port)))
            }
            libc::AF_INET6 => {
                let v6 = &*storage.cast::<libc::sockaddr_in6>();
                let (ip, port) = (v6.sin6_addr.s6_addr.into(), u16::from_be(v6.sin6_port));
                SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into()
            }
            _ => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        }
    }
}

/// Reads the size of merged datagrams and the ECN codepoint from the control data of a message.
///
/// # Safety
/// The header is one that the kernel has filled, and its control data is alive.
#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn read_control(header: &libc::msghdr, meta: &mut RecvMeta) {
    // SAFETY: the macros walk over the control data that the kernel wrote; its entries have the
    // types of their options.
    unsafe {
        let mut entry = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = entry.as_ref() {
            let data = libc::CMSG_DATA(entry);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let stride = data.cast::<libc::c_int>().read_unaligned();
                    meta.stride = usize::try_from(stride).unwrap_or(meta.len);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => {
                    meta.ecn = EcnCodepoint::from_bits(data.read());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    let class = data.cast::<libc::c_int>().read_unaligned();
                    meta.ecn = EcnCodepoint::from_bits(class as u8);
                }
                _ => {}
            }
            entry = libc::CMSG_NXTHDR(header, entry);
        }
    }
}

/// Not implemented for this system: messages are received one by one.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn receive_messages(
    _socket: &Socket,
    _rooms: &mut [[io::IoSliceMut<'_>; 2]],
    _metas: &mut [RecvMeta; MAX_MESSAGES],
) -> io::Result<usize> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// A message that was received, and the TTL that it arrived with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TtlMessage {
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    /// `None`: the kernel did not report it.
    pub(crate) ttl: Option<u8>,
}

/// Reports the TTL of each message that arrives from now on: `IP_RECVTTL`, ip(7).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn report_ttl(socket: &Socket) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1)
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn report_ttl(_socket: &Socket) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Receives a message that has arrived, without waiting. A message longer than `buffer` is cut.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn receive_with_ttl(socket: &Socket, buffer: &mut [u8]) -> io::Result<TtlMessage> {
    let mut name = mem::MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut control: Control = [0; 12];
    let mut room = io::IoSliceMut::new(buffer);
    // SAFETY: zeros are a valid msghdr: null pointers and lengths of 0.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // On Unix an IoSliceMut has the layout of an iovec.
    header.msg_iov = std::ptr::from_mut(&mut room).cast();
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = mem::size_of::<Control>() as _;
    // SAFETY: the header points to live memory of the given lengths, which nothing else refers to
    // until the call returns.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the name was zeroed, and then the kernel wrote an address to it.
    let from = socket_address(unsafe { name.assume_init_ref() });
    let mut ttl = None;
    // SAFETY: the macros walk over the control data that the kernel wrote; that of IP_TTL is an
    // int.
    unsafe {
        let mut entry = libc::CMSG_FIRSTHDR(&header);
        while let Some(control) = entry.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::IPPROTO_IP, libc::IP_TTL) {
                let value = libc::CMSG_DATA(entry).cast::<libc::c_int>().read_unaligned();
                ttl = u8::try_from(value).ok();
            }
            entry = libc::CMSG_NXTHDR(&header, entry);
        }
    }
    Ok(TtlMessage { length, from, ttl })
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn receive_with_ttl(_socket: &Socket, _buffer: &mut [u8]) -> io::Result<TtlMessage> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Switches off what the kernel would add to each message and no one reads: time stamps and the
/// local address. An error is ignored: they only cost time.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn receive_less_control(socket: &Socket) {
    for (level, name) in [
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        (libc::IPPROTO_IP, libc::IP_PKTINFO),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    ] {
        let _ = set_int(socket, level, name, 0);
    }
}

/// Other systems add nothing.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn receive_less_control(_socket: &Socket) {}

/// Sets a socket option whose value is an `int`.
pub(crate) fn set_int(socket: &Socket, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_option(socket.as_raw_fd(), level, name, &value)
}

/// Packets that the kernel has dropped at this socket (32 bits, wraps): `SO_MEMINFO`, sock(7).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn receive_drops(socket: &Socket) -> io::Result<u32> {
    // The kernel's `SK_MEMINFO_VARS` values, with room for values that it may add.
    let mut values = [0_u32; 16];
    let mut size = mem::size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `values`, and the size it wrote to `size`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &mut size,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    values
        .get(libc::SK_MEMINFO_DROPS as usize)
        .filter(|_| size as usize > libc::SK_MEMINFO_DROPS as usize * mem::size_of::<u32>())
        .copied()
        .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn receive_drops(_socket: &Socket) -> io::Result<u32> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Multicast uses the interface with this index, whatever the routing table says.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn set_multicast_interface_v4(
    socket: &Socket,
    index: u32,
    _address: Ipv4Addr,
) -> io::Result<()> {
    let request = libc::ip_mreqn {
        imr_multiaddr: libc::in_addr { s_addr: 0 },
        imr_address: libc::in_addr { s_addr: 0 },
        imr_ifindex: i32::try_from(index).map_err(io::Error::other)?,
    };
    set_option(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
}

/// Multicast uses the interface with this address (the system takes no index).
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn set_multicast_interface_v4(
    socket: &Socket,
    _index: u32,
    address: Ipv4Addr,
) -> io::Result<()> {
    socket.set_multicast_if_v4(&address)
}

/// A socket for all frames that arrive on the interface with this index, each after a
/// `virtio_net_hdr`: packet(7).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn frame_socket(interface_index: u32) -> io::Result<Socket> {
    let index = i32::try_from(interface_index).map_err(io::Error::other)?;
    // Without a protocol nothing arrives until it is bound, and then from this interface only.
    let socket = Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None)?;
    set_int(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set_int(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    let request = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads a whole sockaddr_ll from a variable that lives through the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn frame_socket(_interface_index: u32) -> io::Result<Socket> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Moves the calling thread to a new network namespace, and returns a descriptor of it: unshare(2).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn new_network_namespace() -> io::Result<OwnedFd> {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: only the network is unshared. The table of descriptors, which other code requires to
    // be common to all threads, stays shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(std::fs::File::open("/proc/thread-self/ns/net")?.into())
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn new_network_namespace() -> io::Result<OwnedFd> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Moves the calling thread to this network namespace: setns(2).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn enter_network_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// Not implemented for this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn enter_network_namespace(_namespace: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Join or leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Join,
    Leave,
}

/// Joins or leaves a group, from any source or from one, on the interface with this index.
///
/// The protocol-independent options of RFC 3678 section 5.1 work for IPv4 and IPv6.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn change_membership(
    socket: &Socket,
    change: Change,
    interface_index: u32,
    group: IpAddr,
    source: Option<IpAddr>,
) -> io::Result<()> {
    let level = if group.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    let fd = socket.as_raw_fd();
    match source {
        None => {
            let name = match change {
                Change::Join => libc::MCAST_JOIN_GROUP,
                Change::Leave => libc::MCAST_LEAVE_GROUP,
            };
            // SAFETY: plain data, for which all zeros is a value; zeroed so that padding is too.
            let mut request: libc::group_req = unsafe { mem::zeroed() };
            request.gr_interface = interface_index;
            request.gr_group = storage(group);
            set_option(fd, level, name, &request)
        }
        Some(source) => {
            let name = match change {
                Change::Join => libc::MCAST_JOIN_SOURCE_GROUP,
                Change::Leave => libc::MCAST_LEAVE_SOURCE_GROUP,
            };
            // SAFETY: as above.
            let mut request: libc::group_source_req = unsafe { mem::zeroed() };
            request.gsr_interface = interface_index;
            request.gsr_group = storage(group);
            request.gsr_source = storage(source);
            set_option(fd, level, name, &request)
        }
    }
}

/// Without the protocol-independent options: the calls of `socket2`, which offer less.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn change_membership(
    socket: &Socket,
    change: Change,
    interface_index: u32,
    group: IpAddr,
    source: Option<IpAddr>,
) -> io::Result<()> {
    use socket2::InterfaceIndexOrAddress::Index;
    match (group, source, change) {
        (IpAddr::V4(g), None, Change::Join) => {
            socket.join_multicast_v4_n(&g, &Index(interface_index))
        }
        (IpAddr::V4(g), None, Change::Leave) => {
            socket.leave_multicast_v4_n(&g, &Index(interface_index))
        }
        (IpAddr::V6(g), None, Change::Join) => socket.join_multicast_v6(&g, interface_index),
        (IpAddr::V6(g), None, Change::Leave) => socket.leave_multicast_v6(&g, interface_index),
        // A source-specific join by interface index is not available here.
        (_, Some(_), _) => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

/// An address as the kernel's largest socket address, port 0.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn storage(ip: IpAddr) -> libc::sockaddr_storage {
    let from = socket2::SockAddr::from(std::net::SocketAddr::new(ip, 0));
    // SAFETY: plain data, for which all zeros is a value.
    let mut to: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let size = (from.len() as usize).min(mem::size_of_val(&to));
    // SAFETY: `from` has `from.len()` readable bytes, `to` has at least `size` writable ones, and
    // they are two different variables.
    unsafe {
        std::ptr::copy_nonoverlapping(
            from.as_ptr().cast::<u8>(),
            std::ptr::from_mut(&mut to).cast::<u8>(),
            size,
        );
    }
    to
}
