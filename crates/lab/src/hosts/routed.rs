//! Endpoints on hosts behind routers, in real time: members of one group, which all send.
//!
//! ```text
//! host ─── router ─── link ─── router ─── host
//! host ─── router ─── link ───┘
//! ```
//!
//! Each host is a network namespace, with a UDP socket that has joined the group. The routers and
//! the links between them are a thread of this process ([`Routers`]), which receives the frames of
//! all hosts. It forwards each at the time at which it arrives by the links, and not when the
//! thread wakes up. A late thread therefore delays only what it delivers to hosts, which is
//! measured.

use super::HostsError;
use super::network::{NetworkHost, named};
use super::routers::{Delivery, Routers, encapsulate, router_address};
use super::together::{ATTENTION, EndRun, PORT, joined, now};
use crate::no_jobs::NoJobs;
use fontana_net::clock::{self, Wakefulness};
use fontana_net::{Clock, FrameSocket, Interfaces, Namespace, ScopedSocket, Switch, thread};
use fontana_proto::{
    Datagram, DatagramBatch, Destination, Driver, Ecn, Effect, Endpoint, Instant, Port, SymbolId,
};
use fontana_sim::{DueEvent, NodeId, Topology};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) use super::routers::Traffic;

/// The group of all members: administratively scoped (RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 0);
/// TTL of datagrams without a limited scope: the default of Linux for unicast.
const TTL: u8 = ANY_HOPS + 1;
/// Links that a datagram without a limited scope may cross.
pub(crate) const ANY_HOPS: u8 = 63;
/// Most frames that are read from a host before frames that are due are delivered.
const AT_A_TIME: usize = 32;
/// Larger than any datagram of an endpoint.
const DATAGRAM_ROOM: usize = 2_048;
/// Time in which the kernel hands over what was sent before the end of a run.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// An endpoint without jobs that reads how many links its datagrams have crossed.
pub(crate) trait RoutedEndpoint: Endpoint<Job = Infallible, Done = Infallible> {
    /// The next datagram that is handled may still cross so many links.
    fn handle_hops_left(&mut self, datagram: &[u8], hops_left: u8);
    /// Whether it has received everything.
    fn is_complete(&self) -> bool;
}

/// The bytes behind the headers of datagrams.
pub(crate) trait Content {
    /// Appends the symbol of a datagram that begins with `header`.
    fn write(&self, header: &[u8], symbol: &SymbolId, to: &mut Vec<u8>);
    /// Takes the bytes of a received datagram.
    fn take(&mut self, datagram: &[u8]);
}

/// A host on a node.
#[derive(Debug)]
pub(crate) struct RoutedHost<E, C> {
    pub(crate) node: NodeId,
    pub(crate) endpoint: E,
    pub(crate) content: C,
    /// When it is first polled. Datagrams that arrive before are discarded.
    pub(crate) starts_after: Duration,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTime {
    /// It does not end before.
    pub(crate) least: Duration,
    /// It ends then, if some endpoints are not complete.
    pub(crate) most: Duration,
}

/// The result of a run.
pub(crate) struct RoutedRun<E: Endpoint, C, T> {
    /// In the order of the hosts.
    pub(crate) hosts: Vec<EndedHost<E, C>>,
    pub(crate) traffic: T,
    /// Datagrams that this computer lost, and not the links.
    pub(crate) lost_here: u64,
    /// Longest delay of a delivery or of a timeout beyond its time.
    pub(crate) late: Duration,
}

/// A host after a run.
pub(crate) struct EndedHost<E: Endpoint, C> {
    pub(crate) endpoint: E,
    pub(crate) content: C,
    /// The endpoint's events and their times since the start of the run.
    pub(crate) events: Vec<(Instant, E::Event)>,
}

/// Runs endpoints on the nodes of a graph, whose links lose and delay as in a simulation with this
/// seed. Routers subcast along the tree of the first host.
///
/// # Errors
/// [`HostsError`] if the network cannot be created, or fails.
pub(crate) fn run<E, C, T>(
    topology: &Topology,
    seed: u64,
    hosts: Vec<RoutedHost<E, C>>,
    traffic: T,
    time: RunTime,
) -> Result<RoutedRun<E, C, T>, HostsError>
where
    E: RoutedEndpoint<Event: Send> + Send,
    C: Content + Send,
    T: Traffic + Send,
{
    let nodes: Vec<NodeId> = hosts.iter().map(|host| host.node).collect();
    let RoutedNetwork { hosts: places, ports, .. } = RoutedNetwork::new(&nodes)?;
    let mut running = Vec::new();
    for (host, place) in hosts.into_iter().zip(&places) {
        let open = || ScopedSocket::open(&place.interface, GROUP, PORT);
        let socket = place.namespace.within(open)?.map_err(HostsError::Socket)?;
        running.push((host, socket));
    }
    // Without it, on a system without this request, the accuracy depends on the host.
    let _wakefulness = Wakefulness::request();
    let (over, is_routed) = (AtomicBool::new(false), AtomicBool::new(false));
    let complete: Vec<AtomicBool> = nodes.iter().map(|_| AtomicBool::new(false)).collect();
    let clock = Clock::start();
    std::thread::scope(|scope| {
        let (over, is_routed) = (&over, &is_routed);
        let _ends = [EndRun(over), EndRun(is_routed)];
        let mut router = Router::new(topology.clone(), seed, (nodes, ports), traffic, clock);
        let routing = thread::spawn_scoped(scope, "lab routers", move || {
            // Without routers, nothing arrives any more.
            let _end = EndRun(over);
            router.run(is_routed).map(|()| router)
        })?;
        let host = |((host, socket), complete)| {
            thread::spawn_scoped(scope, "lab host", move || {
                // Without one of the hosts, the others wait for it.
                let _end = EndRun(over);
                RunningHost::new(host, socket, clock).run(over, complete)
            })
        };
        let threads: Vec<_> =
            running.into_iter().zip(&complete).map(host).collect::<Result<_, _>>()?;
        let are_complete = || complete.iter().all(|host| host.load(Ordering::Relaxed));
        let (least, most) = (Instant::ZERO + time.least, Instant::ZERO + time.most);
        while !over.load(Ordering::Relaxed)
            && now(clock) < most
            && !(now(clock) >= least && are_complete())
        {
            std::thread::sleep(ATTENTION);
        }
        over.store(true, Ordering::Relaxed);
        let mut ended = threads
            .into_iter()
            .map(|thread| joined(thread)?)
            .collect::<Result<Vec<RunningHost<E, C>>, HostsError>>()?;
        // What the hosts have sent has to reach the routers before these are counted.
        std::thread::sleep(AFTERWARDS);
        is_routed.store(true, Ordering::Relaxed);
        let router = joined(routing)??;
        std::thread::sleep(AFTERWARDS);
        let mut received = 0;
        for host in &mut ended {
            host.discard()?;
            received += host.received;
        }
        let sent: u64 = ended.iter().map(|host| host.sent).sum();
        let unsent: u64 = ended.iter().map(|host| host.unsent).sum();
        let stats = router.routers.stats();
        let late = ended.iter().map(|host| host.late).fold(router.late, Duration::max);
        Ok(RoutedRun {
            traffic: router.traffic,
            lost_here: unsent
                + sent.abs_diff(stats.entered)
                + stats.overflow
                + router.refused
                + router.delivered.abs_diff(received),
            late,
            hosts: ended.into_iter().map(RunningHost::ended).collect(),
        })
    })
}

/// Hosts, and an interface to each in the namespace of the routers.
#[derive(Debug)]
struct RoutedNetwork {
    hosts: Vec<NetworkHost>,
    /// In the order of the hosts.
    ports: Vec<FrameSocket>,
}

impl RoutedNetwork {
    fn new(nodes: &[NodeId]) -> Result<Self, HostsError> {
        let middle = Namespace::silent()?;
        let namespaces =
            nodes.iter().map(|_| Namespace::silent()).collect::<Result<Vec<_>, _>>()?;
        let port = |number: usize| format!("port{number}");
        let mut commands = String::new();
        for (number, host) in namespaces.iter().enumerate() {
            let (port, interface, path) = (port(number), Switch::HOST_INTERFACE, host.path());
            commands.push_str(&format!(
                "link add {port} up type veth peer name {interface} netns {path}\n"
            ));
        }
        middle.ip(&commands)?;
        let hosts = nodes.iter().zip(namespaces).map(|(node, host)| routed_host(*node, host));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let ports = middle.within(|| {
            let interfaces = Interfaces::list().map_err(HostsError::Interfaces)?;
            let open = |number| Ok(FrameSocket::open(named(&interfaces, &port(number))?)?);
            (0..nodes.len()).map(open).collect::<Result<_, HostsError>>()
        })??;
        Ok(Self { hosts, ports })
    }
}

/// Gives a host the address of its node. All hosts have the same link address and no address
/// resolution, so routers need not answer requests for addresses or change frames.
fn routed_host(node: NodeId, namespace: Namespace) -> Result<NetworkHost, HostsError> {
    let (name, address) = (Switch::HOST_INTERFACE, node.address());
    namespace.ip(&format!(
        "link set {name} address 02:00:00:00:00:01 arp off\n\
         link set {name} up\n\
         addr add {address}/32 dev {name}\n\
         route add 10.0.0.0/8 dev {name}"
    ))?;
    let interfaces = namespace.within(Interfaces::list)?.map_err(HostsError::Interfaces)?;
    let interface = named(&interfaces, name)?.clone();
    Ok(NetworkHost { namespace, interface, address })
}

/// The thread of the routers.
#[derive(Debug)]
struct Router<T> {
    routers: Routers,
    /// In the order of the ports.
    nodes: Vec<NodeId>,
    ports: Vec<FrameSocket>,
    port_of: BTreeMap<NodeId, usize>,
    traffic: T,
    clock: Clock,
    delivered: u64,
    /// Frames that an interface did not take.
    refused: u64,
    late: Duration,
}

impl<T: Traffic> Router<T> {
    fn new(
        topology: Topology,
        seed: u64,
        (nodes, ports): (Vec<NodeId>, Vec<FrameSocket>),
        traffic: T,
        clock: Clock,
    ) -> Self {
        Self {
            routers: Routers::new(topology, seed, nodes.first().copied().unwrap_or(NodeId(0))),
            port_of: nodes.iter().copied().zip(0..).collect(),
            nodes,
            ports,
            traffic,
            clock,
            delivered: 0,
            refused: 0,
            late: Duration::ZERO,
        }
    }

    /// Forwards until `is_over`, and then counts what has arrived.
    fn run(&mut self, is_over: &AtomicBool) -> Result<(), HostsError> {
        clock::wake_promptly();
        loop {
            let ends = is_over.load(Ordering::Relaxed);
            while self.take()? && ends {}
            if ends {
                return Ok(());
            }
            self.deliver()?;
            let next = self.routers.next_at();
            let wait = next.map_or(ATTENTION, |at| self.clock.until(at.as_nanos()));
            if FrameSocket::wait(&self.ports, wait.min(ATTENTION)).is_err() {
                // Out of memory. Wait instead of spinning.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Reads frames of all hosts. Returns whether there were any.
    fn take(&mut self) -> Result<bool, HostsError> {
        let mut is_any = false;
        for (port, &node) in self.ports.iter_mut().zip(&self.nodes) {
            for _ in 0..AT_A_TIME {
                let Some(frame) = port.recv()? else { break };
                self.routers.enter(now(self.clock), node, frame);
                is_any = true;
            }
        }
        Ok(is_any)
    }

    /// Delivers the frames that are due.
    fn deliver(&mut self) -> Result<(), HostsError> {
        let until = now(self.clock);
        while let Some(DueEvent { at, event }) = self.routers.poll(until, &mut self.traffic) {
            let Delivery { node, frame } = event;
            let port = self.port_of.get(&node).and_then(|&port| self.ports.get(port));
            // A router without a host.
            let Some(port) = port else { continue };
            let is_taken = port.send(&frame)?;
            *(if is_taken { &mut self.delivered } else { &mut self.refused }) += 1;
            self.late = self.late.max(now(self.clock).saturating_since(at));
        }
        Ok(())
    }
}

/// A host that is running.
struct RunningHost<E: Endpoint, C> {
    driver: Driver<E, NoJobs>,
    content: C,
    node: NodeId,
    starts_at: Instant,
    socket: ScopedSocket,
    clock: Clock,
    events: Vec<(Instant, E::Event)>,
    packet: Vec<u8>,
    sent: u64,
    /// Datagrams that the system did not send.
    unsent: u64,
    received: u64,
    late: Duration,
}

impl<E: RoutedEndpoint, C: Content> RunningHost<E, C> {
    fn new(host: RoutedHost<E, C>, socket: ScopedSocket, clock: Clock) -> Self {
        let RoutedHost { node, endpoint, content, starts_after } = host;
        Self {
            driver: Driver::new(endpoint, NoJobs),
            content,
            node,
            starts_at: Instant::ZERO + starts_after,
            socket,
            clock,
            events: Vec::new(),
            packet: Vec::new(),
            sent: 0,
            unsent: 0,
            received: 0,
            late: Duration::ZERO,
        }
    }

    fn ended(self) -> EndedHost<E, C> {
        let Self { driver, content, events, .. } = self;
        EndedHost { endpoint: driver.endpoint, content, events }
    }

    fn run(mut self, over: &AtomicBool, complete: &AtomicBool) -> Result<Self, HostsError> {
        clock::wake_promptly();
        self.clock.sleep_until(self.starts_at.as_nanos());
        self.discard()?;
        while !over.load(Ordering::Relaxed) {
            let at = now(self.clock);
            if let Some(due) = self.driver.endpoint.poll_timeout().filter(|due| *due <= at) {
                self.late = self.late.max(at.saturating_since(due));
                self.driver.endpoint.handle_timeout(at);
            }
            self.poll(&DatagramBatch::EMPTY)?;
            complete.store(self.driver.endpoint.is_complete(), Ordering::Relaxed);
            self.receive(at)?;
        }
        Ok(self)
    }

    /// Counts what has arrived, and takes none of it.
    fn discard(&mut self) -> Result<(), HostsError> {
        let mut buffer = [0; DATAGRAM_ROOM];
        while self.socket.recv(&mut buffer).map_err(HostsError::Drain)?.is_some() {
            self.received += 1;
        }
        Ok(())
    }

    /// Waits for datagrams until a timeout is due, and handles them one by one, as a simulation
    /// does.
    fn receive(&mut self, at: Instant) -> Result<(), HostsError> {
        let next = at + ATTENTION;
        let due = self.driver.endpoint.poll_timeout().map_or(next, |due| due.min(next));
        self.socket.wait(self.clock.until(due.as_nanos())).map_err(HostsError::Drain)?;
        let mut slab = [0; DATAGRAM_ROOM];
        for _ in 0..AT_A_TIME {
            let received = self.socket.recv(&mut slab).map_err(HostsError::Drain)?;
            let Some(received) = received else { break };
            self.received += 1;
            let Some(bytes) = slab.get(..received.length) else { continue };
            let datagram = Datagram {
                from: received.from,
                port: Port::BASE,
                ecn: Ecn::NotEct,
                dropped_before: 0,
                payload: 0..received.length as u32,
            };
            let batch = DatagramBatch::one(bytes, &datagram);
            self.content.take(bytes);
            self.driver.endpoint.handle_hops_left(bytes, received.ttl.saturating_sub(1));
            self.driver.endpoint.handle_datagrams(now(self.clock), &batch);
            self.poll(&batch)?;
        }
        Ok(())
    }

    fn poll(&mut self, batch: &DatagramBatch<'_>) -> Result<(), HostsError> {
        let at = now(self.clock);
        while let Some(effect) = self.driver.poll(at, batch).map_err(HostsError::Job)? {
            match effect {
                Effect::Transmit { to, symbol } => self.transmit(to, symbol)?,
                Effect::Event(event) => self.events.push((at, event)),
                // The socket has joined the group.
                Effect::Join(_) | Effect::Leave(_) | Effect::Later { .. } => {}
            }
        }
        Ok(())
    }

    fn transmit(&mut self, to: Destination, symbol: Option<SymbolId>) -> Result<(), HostsError> {
        let header = self.driver.header();
        self.packet.clear();
        self.packet.extend_from_slice(header);
        if let Some(symbol) = symbol {
            self.content.write(header, &symbol, &mut self.packet);
        }
        let (to, ttl) = match to {
            Destination::Channel(_) => (SocketAddrV4::new(GROUP, PORT), TTL),
            Destination::Scoped { hops, .. } => {
                (SocketAddrV4::new(GROUP, PORT), hops.saturating_add(1))
            }
            Destination::Peer(to) => (SocketAddrV4::new(ipv4(to.ip())?, PORT), TTL),
            Destination::Subcast { router, .. } => {
                let from = ipv4(self.node.address())?;
                let inner = encapsulate(from, (GROUP, PORT), TTL, &self.packet);
                self.packet = inner.ok_or(HostsError::Job("a packet is too long for IP"))?;
                let node = NodeId::of(router).ok_or(HostsError::Job("there is no such router"))?;
                (SocketAddrV4::new(ipv4(router_address(node))?, PORT), TTL)
            }
            Destination::Sender(_) | Destination::Site => {
                return Err(HostsError::Job("the group has neither one sender nor sites"));
            }
        };
        let is_sent = self.socket.send(&self.packet, to, ttl).is_ok();
        *(if is_sent { &mut self.sent } else { &mut self.unsent }) += 1;
        Ok(())
    }
}

fn ipv4(address: IpAddr) -> Result<Ipv4Addr, HostsError> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(HostsError::Job("hosts have addresses of IPv4")),
    }
}
