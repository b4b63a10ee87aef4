//! Sending GSO batches of equal datagrams to groups, broadcast addresses or lists of hosts.
//!
//! A *GSO batch* is a run of datagrams of one size (the last may be shorter), contiguous in memory.
//! With segmentation offload (`UDP_SEGMENT`, udp(7), Linux 4.18) a batch of up to 64 datagrams
//! takes one system call, for multicast too. If the kernel or a device rejects it, the socket falls
//! back to one call per datagram permanently ([`SendSocket::uses_offload`]).
//!
//! The segment size is set as an option of the socket, which rarely changes, instead of a control
//! message. So a plain `sendto` suffices, and the traffic class (DSCP) is set once.
//!
//! Datagrams are never fragmented: the "don't fragment" bit is set. Reports of routers about a
//! smaller MTU are ignored (`IP_PMTUDISC_PROBE`), because they can be forged, and a session cannot
//! change its packet size.

mod config;
mod fit;
mod losses;
mod options;
mod reattach;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

pub use config::{ChannelAddress, SendConfig, SendError};
pub use fit::MtuDrop;
pub use losses::{LossCause, SendLoss, SendLosses};

use crate::interface::Interfaces;
use crate::mtu::{IpVersion, MAX_PAYLOAD_SIZE};
use crate::optional::{OptionalSetting, Refusals, Ungranted};
use crate::presence::InterfaceChange;
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::sys;
use config::{addresses, check_destinations, source_address};
use fit::{Fit, Misfit};
use losses::passing_cause;
use options::{
    direct_to_interface, forbid_fragments, set_multicast_reach, set_traffic_class, step,
};
use reattach::Attachment;

/// Datagrams per GSO batch: `UDP_MAX_SEGMENTS` of the kernels with the smaller value (up to 6.6;
/// later ones take 128, but 64 KiB are full before).
const MAX_SEGMENTS: usize = 64;

/// Longest wait for a full send buffer. After that a queue of the kernel is stuck, and a request to
/// stop must not wait for it.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);

/// The result of [`SendSocket::send_batch`]. With fan-out every copy counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// Their UDP payload in bytes.
    pub payload_bytes: u64,
    /// Datagrams that it rejected for a temporary reason: receivers see them as lost.
    pub lost: u64,
}

impl std::ops::AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.payload_bytes += other.payload_bytes;
        self.lost += other.lost;
    }
}

/// A destination address.
#[derive(Debug)]
struct Host {
    address: SockAddr,
    /// Index of the route whose MTU its datagrams have to fit.
    route: usize,
}

/// A socket that is bound to its source address, with its options.
struct Bound {
    socket: Socket,
    address: SocketAddr,
}

fn bind(config: &SendConfig) -> Result<(Bound, Refusals), SendError> {
    let version = check_destinations(config)?;
    let source = source_address(config, version)?;
    let domain = match version {
        IpVersion::V4 => Domain::IPV4,
        IpVersion::V6 => Domain::IPV6,
    };
    let socket = step("open a UDP socket", Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)))?;
    let mut refusals = Refusals::default();
    if version == IpVersion::V6 {
        refusals.tolerate(OptionalSetting::OnlyVersion6, socket.set_only_v6(true));
    }
    step("bind to the source address", socket.bind(&source.into()))?;
    let timeout = socket.set_write_timeout(Some(STALL_TIMEOUT));
    refusals.tolerate(OptionalSetting::SendTimeout, timeout);
    // The granted size may be smaller; then the sender waits more often.
    let size = socket.set_send_buffer_size(config.send_buffer);
    refusals.tolerate(OptionalSetting::SendBuffer, size);
    refusals.tolerate(OptionalSetting::NoFragments, forbid_fragments(&socket, version));
    set_traffic_class(&socket, version, config.dscp, &mut refusals)?;
    if config.destinations.iter().any(|d| matches!(d, ChannelAddress::Broadcast(_))) {
        step("allow broadcast", socket.set_broadcast(true))?;
    }
    if let Some(interface) = &config.interface {
        direct_to_interface(&socket, version, interface, source, &mut refusals)?;
    }
    set_multicast_reach(&socket, version, config, &mut refusals);
    let local = step("read the local address", socket.local_addr())?;
    let address = local.as_socket().unwrap_or(source);
    Ok((Bound { socket, address }, refusals))
}

/// A socket that sends the packets of one session's channels.
#[derive(Debug)]
pub struct SendSocket {
    socket: Socket,
    /// For each destination one or more hosts or groups.
    destinations: Vec<Vec<Host>>,
    /// By [`Host::route`].
    fits: Vec<Fit>,
    /// The last MTU drop, which may have ended.
    mtu_drop: Option<MtuDrop>,
    /// What it was opened with, and what has become of its interface.
    attachment: Attachment,
    refusals: Refusals,
    local_address: SocketAddr,
    interface: Option<(String, u32)>,
    offload: bool,
    /// The current value of `UDP_SEGMENT`; 0: off.
    segment_size_set: usize,
    sent: Sent,
    losses: SendLosses,
    /// At most one for each cause, in the order of time.
    first_losses: Vec<SendLoss>,
}

impl SendSocket {
    /// Opens a socket for all destinations of `config`.
    ///
    /// # Errors
    /// The configuration is invalid ([`SendError`] says which part), or the system returns an
    /// error.
    pub fn new(config: &SendConfig) -> Result<Self, SendError> {
        let (bound, refusals) = bind(config)?;
        let interface_index = config.interface.as_ref().map_or(0, |interface| interface.index);
        let routes = fit::routes(config);
        let route_count = routes.iter().flatten().max().map_or(0, |last| last + 1);
        let hosts = |(destination, routes): (&ChannelAddress, Vec<usize>)| {
            let addresses = addresses(destination, interface_index).into_iter();
            addresses.zip(routes).map(|(address, route)| Host { address, route }).collect()
        };
        Ok(Self {
            socket: bound.socket,
            destinations: config.destinations.iter().zip(routes).map(hosts).collect(),
            fits: vec![Fit::default(); route_count],
            mtu_drop: None,
            attachment: Attachment::new(config),
            refusals,
            local_address: bound.address,
            interface: config.interface.as_ref().map(|i| (i.name.clone(), i.mtu)),
            offload: config.offload && cfg!(any(target_os = "linux", target_os = "android")),
            segment_size_set: 0,
            sent: Sent::default(),
            losses: SendLosses::default(),
            first_losses: Vec::new(),
        })
    }

    /// Checks that datagrams with `size` bytes of payload fit the MTU of every interface that they
    /// leave this host by, as far as the routing table tells. Sends nothing.
    ///
    /// # Errors
    /// [`SendError::TooLarge`].
    pub fn check_size(&self, size: usize) -> Result<(), SendError> {
        let header = IpVersion::of(self.local_address.ip()).header_size();
        let check = |name: &str, mtu: u32| match size + header <= mtu as usize {
            true => Ok(()),
            false => Err(SendError::TooLarge { size, interface: name.to_owned(), mtu: Some(mtu) }),
        };
        if let Some((name, mtu)) = &self.interface {
            return check(name, *mtu);
        }
        let interfaces = step("list the network interfaces", Interfaces::list())?;
        let hosts = self.destinations.iter().flatten();
        hosts
            .filter_map(|host| interfaces.towards(host.address.as_socket()?.ip()))
            .try_for_each(|interface| check(&interface.name, interface.mtu))
    }

    /// Sends `contents`, split into datagrams of `segment_size` bytes (the last may be shorter), to
    /// the destination with this index. Empty contents send no datagram.
    ///
    /// Returns when the kernel has accepted everything, or rejected it for a temporary reason,
    /// which is counted ([`Sent::lost`], [`SendSocket::losses`]). Blocks while the send buffer is
    /// full.
    ///
    /// # Errors
    /// Only permanent errors; see [`SendError`].
    pub fn send_batch(
        &mut self,
        destination: usize,
        contents: &[u8],
        segment_size: usize,
    ) -> Result<Sent, SendError> {
        let count = self.destinations.len();
        if destination >= count || segment_size == 0 {
            return Err(SendError::Misuse { destination, count, segment_size });
        }
        let hosts = std::mem::take(&mut self.destinations[destination]);
        let mut sent = Sent::default();
        let mut result = Ok(());
        for host in &hosts {
            result = result.and(self.send_to(host, contents, segment_size, &mut sent));
        }
        self.destinations[destination] = hosts;
        self.reattach();
        self.sent += sent;
        result.map(|()| sent)
    }

    /// Totals of everything sent so far.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// Totals of everything lost inside this host so far, by reason.
    pub fn losses(&self) -> SendLosses {
        self.losses
    }

    /// The first loss for each cause that has occurred, in the order of time.
    pub fn first_losses(&self) -> &[SendLoss] {
        &self.first_losses
    }

    /// The hosts of all destinations, if the routing table chooses the interface.
    pub fn unicast_hosts(&self) -> impl Iterator<Item = IpAddr> {
        let hosts = self.destinations.iter().flatten().filter(|_| self.interface.is_none());
        hosts.filter_map(|host| Some(host.address.as_socket()?.ip()))
    }

    /// What the system refused when it was opened, and it does without.
    pub fn ungranted(&self) -> &[Ungranted] {
        self.refusals.list()
    }

    /// The last change of the interface, and its number, from 1.
    pub fn interface_change(&self) -> Option<(u64, &InterfaceChange)> {
        self.attachment.last_change()
    }

    /// The last period in which datagrams no longer fitted the MTU. They count as
    /// [`SendLosses::too_large`]. The period ends when a datagram of that size is sent again.
    pub fn mtu_drop(&self) -> Option<&MtuDrop> {
        self.mtu_drop.as_ref()
    }

    /// True while the kernel segments GSO batches. Becomes `false` permanently when the kernel or
    /// the device rejects one.
    pub fn uses_offload(&self) -> bool {
        self.offload
    }

    /// The source address of the datagrams, which a source-specific receiver names. Its IP is
    /// unspecified if the routing table chooses.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    fn send_to(
        &mut self,
        host: &Host,
        contents: &[u8],
        segment_size: usize,
        sent: &mut Sent,
    ) -> Result<(), SendError> {
        let segments = (MAX_PAYLOAD_SIZE / segment_size).clamp(1, MAX_SEGMENTS);
        for batch in contents.chunks(segment_size.saturating_mul(segments)) {
            let (offload, reasons) = (self.offload, self.reasons_of_links());
            if batch.len() > segment_size && self.send_gso_batch(host, batch, segment_size, sent)? {
                continue;
            }
            for datagram in batch.chunks(segment_size) {
                self.disable_segmentation(datagram, host)?;
                self.send_one(host, datagram, segment_size, sent)?;
            }
            if self.reasons_of_links() > reasons {
                // The MTU or the interface was the reason for the rejection, not the offload.
                self.offload = offload;
            }
        }
        Ok(())
    }

    /// Datagrams that were lost because of the MTU, the route or the interface.
    fn reasons_of_links(&self) -> u64 {
        self.losses.too_large + self.losses.unreachable
    }

    /// Sends a GSO batch in one call. `false` if offload is not available.
    fn send_gso_batch(
        &mut self,
        host: &Host,
        batch: &[u8],
        segment_size: usize,
        sent: &mut Sent,
    ) -> Result<bool, SendError> {
        if !self.offload || self.set_segment_size(segment_size).is_err() {
            self.offload = false;
            return Ok(false);
        }
        let taken = self.take(host, batch, segment_size, sent);
        match taken {
            // EINVAL: the kernel does not support it, or (before Linux 6.9) a segment exceeds the
            // MTU, which the attempt without offload will show. EIO: the device does not support
            // it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                self.offload = false;
                Ok(false)
            }
            Err(error) => self.lose(host, batch, segment_size, sent, error).map(|()| true),
            Ok(()) => Ok(true),
        }
    }

    /// Sends a datagram, or a GSO batch if the socket's segment size is set.
    fn send_one(
        &mut self,
        host: &Host,
        contents: &[u8],
        segment_size: usize,
        sent: &mut Sent,
    ) -> Result<(), SendError> {
        match self.take(host, contents, segment_size, sent) {
            Ok(()) => Ok(()),
            Err(error) => self.lose(host, contents, segment_size, sent, error),
        }
    }

    /// One system call.
    fn take(
        &mut self,
        host: &Host,
        contents: &[u8],
        segment_size: usize,
        sent: &mut Sent,
    ) -> io::Result<()> {
        loop {
            match self.socket.send_to(contents, &host.address) {
                Ok(_) => {
                    self.fits[host.route].on_taken(contents.len().min(segment_size));
                    sent.datagrams += contents.len().div_ceil(segment_size) as u64;
                    sent.payload_bytes += contents.len() as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts what the kernel rejected for a temporary reason.
    fn lose(
        &mut self,
        host: &Host,
        contents: &[u8],
        segment_size: usize,
        sent: &mut Sent,
        error: io::Error,
    ) -> Result<(), SendError> {
        let datagrams = contents.len().div_ceil(segment_size) as u64;
        let size = contents.len().min(segment_size);
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            self.on_misfit(host.route, size)?;
        }
        let to = host.address.as_socket().unwrap_or(self.local_address);
        let Some((cause, errno)) = passing_cause(&error).zip(error.raw_os_error()) else {
            return Err(SendError::System { to, error });
        };
        let counter = self.losses.counter(cause);
        if *counter == 0 {
            self.first_losses.push(SendLoss { cause, to, errno });
        }
        *counter += datagrams;
        sent.lost += datagrams;
        if cause == LossCause::Unreachable {
            self.look_for_interface();
        }
        Ok(())
    }

    /// Handles a rejected datagram of `size` bytes, which exceeds the MTU of the route. An error if
    /// the kernel never accepted one of that size.
    fn on_misfit(&mut self, route: usize, size: usize) -> Result<(), SendError> {
        let interface = self.interface.as_ref();
        match self.fits[route].on_misfit(size) {
            Misfit::NeverFitted => {
                return Err(SendError::TooLarge {
                    size,
                    interface: interface.map_or("the route".to_owned(), |(name, _)| name.clone()),
                    mtu: interface.map(|(_, mtu)| *mtu),
                });
            }
            Misfit::DropBegins => {
                let number = self.mtu_drop.as_ref().map_or(1, |last| last.number + 1);
                let interface = interface.map(|(name, _)| name.clone());
                self.mtu_drop = Some(MtuDrop { number, payload_size: size, interface });
            }
            Misfit::DropGoesOn => {}
        }
        Ok(())
    }

    /// Ensures that a single datagram is not segmented by the size of an earlier GSO batch.
    fn disable_segmentation(&mut self, datagram: &[u8], host: &Host) -> Result<(), SendError> {
        // Without offload the option is not set: the system may not support it.
        if self.segment_size_set == 0 || (self.offload && datagram.len() <= self.segment_size_set) {
            return Ok(());
        }
        let to = host.address.as_socket().unwrap_or(self.local_address);
        self.set_segment_size(0).map_err(|error| SendError::System { to, error })
    }

    /// Sets the kernel's segment size (0: no segmentation).
    fn set_segment_size(&mut self, size: usize) -> io::Result<()> {
        if size == self.segment_size_set {
            return Ok(());
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        sys::set_int(
            &self.socket,
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            i32::try_from(size).map_err(io::Error::other)?,
        )?;
        self.segment_size_set = size;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupError;
    use crate::namespace::{Namespace, NamespaceError};

    fn loopback_sender(change: impl FnOnce(&mut SendConfig)) -> Result<SendSocket, SendError> {
        let interfaces = Interfaces::list().unwrap();
        let to = ChannelAddress::Multicast("239.255.0.1:9".parse().unwrap());
        let mut config = SendConfig::new(interfaces.loopback().unwrap(), vec![to]);
        change(&mut config);
        SendSocket::new(&config)
    }

    #[test]
    fn invalid_configurations_are_refused_with_the_reason() {
        let refused = |change: fn(&mut SendConfig)| loopback_sender(change).unwrap_err();
        assert!(matches!(
            refused(
                |c| c.destinations = vec![ChannelAddress::Multicast(([224, 0, 0, 5], 9).into())]
            ),
            SendError::Group(GroupError::LinkControl(_))
        ));
        assert!(matches!(refused(|c| c.destinations.clear()), SendError::NoDestination));
        assert!(matches!(
            refused(|c| c.destinations.push(ChannelAddress::Unicast(Vec::new()))),
            SendError::NoDestination
        ));
        assert!(matches!(
            refused(|c| c
                .destinations
                .push(ChannelAddress::Multicast("[ff15::1]:9".parse().unwrap()))),
            SendError::MixedVersions
        ));
        assert!(matches!(refused(|c| c.interface = None), SendError::InterfaceRequired));
        assert!(matches!(refused(|c| c.dscp = Some(64)), SendError::Dscp(64)));
        assert!(matches!(
            refused(|c| c.source = Some([192, 0, 2, 254].into())),
            SendError::Setup { step: "bind to the source address", .. }
        ));
    }

    #[test]
    fn multicast_reaches_as_far_as_configured_and_by_default_the_local_network() {
        let sender = loopback_sender(|_| ()).unwrap();
        assert_eq!(sender.socket.multicast_ttl_v4().unwrap(), 1);
        assert!(sender.socket.multicast_loop_v4().unwrap());
        let sender = loopback_sender(|c| (c.hop_limit, c.loopback) = (255, false)).unwrap();
        assert_eq!(sender.socket.multicast_ttl_v4().unwrap(), 255);
        assert!(!sender.socket.multicast_loop_v4().unwrap());
    }

    #[test]
    fn the_largest_code_point_fills_the_upper_six_bits() {
        let sender = loopback_sender(|c| c.dscp = Some(63)).unwrap();
        assert_eq!(sender.socket.tos_v4().unwrap(), 0b1111_1100);
    }

    #[test]
    fn a_send_to_no_channel_or_of_no_size_is_refused() {
        let mut sender = loopback_sender(|_| ()).unwrap();
        assert!(matches!(sender.send_batch(1, b"x", 1), Err(SendError::Misuse { count: 1, .. })));
        assert!(matches!(sender.send_batch(0, b"x", 0), Err(SendError::Misuse { .. })));
        assert_eq!(sender.send_batch(0, b"", 1).unwrap(), Sent::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn refused_offload_is_remembered_and_every_datagram_goes_all_the_same() {
        let mut sender = loopback_sender(|_| ()).unwrap();
        // The kernel cannot segment packets without checksums: it returns EINVAL for a GSO batch.
        sys::set_int(&sender.socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        assert!(sender.uses_offload());
        let sent = sender.send_batch(0, &[7; 1000], 300).unwrap();
        assert!(!sender.uses_offload());
        assert_eq!(sent, Sent { datagrams: 4, payload_bytes: 1000, lost: 0 });
        // Offload stays off, even if it would work again.
        sys::set_int(&sender.socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 0).unwrap();
        assert_eq!(sender.send_batch(0, &[7; 600], 300).unwrap().datagrams, 2);
        assert!(!sender.uses_offload());
        assert_eq!(sender.sent(), Sent { datagrams: 6, payload_bytes: 1600, lost: 0 });
    }

    /// A network namespace whose loopback interface has this MTU. `None`, with a message, if this
    /// process may not create one.
    fn network(mtu: u32) -> Option<Namespace> {
        match Namespace::new() {
            Ok(namespace) => {
                namespace.ip(&format!("link set lo up mtu {mtu}")).unwrap();
                Some(namespace)
            }
            Err(NamespaceError::NotPermitted) => {
                fontana_testing::skip("network namespaces need root");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn datagrams_are_lost_while_the_mtu_is_too_low_and_sent_when_it_is_back() {
        let cases: [fn(&mut SendConfig); 4] = [
            |_| (),
            |c| c.offload = false,
            |c| *c = SendConfig::unicast(vec![vec!["127.0.0.1:9".parse().unwrap()]]),
            |c| *c = SendConfig::unicast(vec![vec!["[::1]:9".parse().unwrap()]]),
        ];
        for case in cases {
            let Some(network) = network(1500) else { return };
            let mut sender = network.within(|| loopback_sender(case)).unwrap().unwrap();
            let offload = sender.uses_offload();
            // Two datagrams of 1400 bytes and a short one, which fits the lower MTU.
            let batch = [7; 2 * 1400 + 10];
            let whole = Sent { datagrams: 3, payload_bytes: batch.len() as u64, lost: 0 };
            assert_eq!(sender.send_batch(0, &batch, 1400).unwrap(), whole);
            for number in 1..=2 {
                network.ip("link set lo mtu 1300").unwrap();
                for _ in 0..3 {
                    let sent = sender.send_batch(0, &batch, 1400).unwrap();
                    assert!(sent.lost >= 2 && sent.lost + sent.datagrams == 3, "{sent:?}");
                    // A short one alone is sent, and does not end the drop.
                    assert_eq!(sender.send_batch(0, &[7; 10], 1400).unwrap().datagrams, 1);
                }
                let interface = sender.interface.as_ref().map(|(name, _)| name.clone());
                let drop = MtuDrop { number, payload_size: 1400, interface };
                assert_eq!(sender.mtu_drop(), Some(&drop));
                network.ip("link set lo mtu 1500").unwrap();
                assert_eq!(sender.send_batch(0, &batch, 1400).unwrap(), whole);
                assert_eq!(sender.uses_offload(), offload);
            }
            assert_eq!(sender.losses().too_large, sender.sent().lost);
        }
    }

    #[test]
    fn a_size_is_checked_against_the_mtu_of_the_way_out() {
        let Some(network) = network(1300) else { return };
        let cases: [fn(&mut SendConfig); 2] =
            [|_| (), |c| *c = SendConfig::unicast(vec![vec!["127.0.0.1:9".parse().unwrap()]])];
        for case in cases {
            let checked = |size| {
                let sender = loopback_sender(case).unwrap();
                (sender.check_size(size), sender.sent())
            };
            // 1300 less 28 of headers is the largest payload that fits.
            let (fits, sent) = network.within(|| checked(1272)).unwrap();
            assert!(fits.is_ok() && sent == Sent::default(), "{fits:?}");
            let refused = network.within(|| checked(1273)).unwrap().0.unwrap_err();
            let SendError::TooLarge { size: 1273, interface, mtu: Some(1300) } = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(interface, "lo");
        }
    }

    #[test]
    fn a_datagram_that_never_fitted_is_refused_with_the_mtu() {
        let Some(network) = network(1300) else { return };
        for offload in [true, false] {
            let sender = network.within(|| loopback_sender(|c| c.offload = offload));
            let mut sender = sender.unwrap().unwrap();
            // 1300 less 28 of headers is the largest payload that fits.
            assert_eq!(sender.send_batch(0, &[7; 2 * 1272], 1272).unwrap().datagrams, 2);
            let refused = sender.send_batch(0, &[7; 2 * 1273], 1273).unwrap_err();
            let SendError::TooLarge { size: 1273, interface, mtu: Some(1300) } = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((interface.as_str(), sender.mtu_drop()), ("lo", None));
        }
    }
}
