//! Endpoints over real sockets: senders and receivers on hosts of this computer, in real time, on
//! real bytes, to compare with simulations of the same sessions.
//!
//! Hosts are network namespaces of this process ([`network`]). Each channel is a multicast group
//! that receivers join and leave. Between the switch and each receiver, a [relay](crate::relay)
//! runs the link of the simulator: with the same random stream, the same packets are lost.

mod network;

use crate::bytes::Pump;
use crate::claim::{Claim, Target};
use crate::relay::{DirectionStats, FrameLink, Relay};
use fontana_net::clock::Wakefulness;
use fontana_net::{
    ChannelAddress, Clock, FrameError, NamespaceError, ReceiveConfig, ReceiveError, ReceiveSocket,
    ReceiveThread, ReceiveThreadConfig, SendConfig, SendError, SendSocket, Switch, ThreadError,
    thread,
};
use fontana_proto::{
    ChannelId, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant, JobRunner,
    ReceiveDone, ReceiveJob, Receiver, ReceiverEvent, Sender, SplitMix64,
};
use fontana_sim::{IdRunner, LinkConfig};
use network::{Network, NetworkHost};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Longest wait, so that threads notice the end of a run soon.
const ATTENTION: Duration = Duration::from_millis(20);
/// Memory for received datagrams, 2 MB: a second of the fastest session.
const RECEIVE_MEMORY: ReceiveThreadConfig =
    ReceiveThreadConfig { batches: 8, batch_size: 256 << 10 };
/// UDP port of all channels. No other program uses these hosts.
const PORT: u16 = 7701;

/// An error of sessions between hosts of this computer.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The process lacks the privilege, or the system lacks what networks are made with.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The system does not list its interfaces.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// An interface that was created does not exist.
    #[error("the interface {interface} is gone")]
    Missing {
        /// Its name.
        interface: String,
    },
    /// A relay failed.
    #[error(transparent)]
    Relay(#[from] FrameError),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A channel could not be joined.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The sockets could not be drained.
    #[error("cannot receive: {0}")]
    Drain(#[source] io::Error),
    /// The system has no thread left for a host or a relay.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// A job of an endpoint is invalid.
    #[error("a mistake of Fontana: {0}")]
    Job(&'static str),
}

/// Checks that sessions can run on this computer: creates a network and removes it.
///
/// # Errors
/// The network could not be created.
pub(crate) fn check() -> Result<(), HostsError> {
    Network::new(1, vec![line(LinkConfig::default(), 0)]).map(drop)
}

/// For tests: the same check. Without the privilege, it reports that the test is skipped.
#[cfg(test)]
pub(crate) fn are_possible() -> bool {
    match check() {
        Err(HostsError::Namespace(NamespaceError::NotPermitted)) => {
            fontana_testing::skip("hosts on one machine need root");
            false
        }
        result => result.map(|()| true).expect("a network"),
    }
}

/// The link to a receiver, with the random stream of the first link of a simulation.
fn line(link: LinkConfig, seed: u64) -> FrameLink {
    FrameLink::new(link, SplitMix64::new(seed, 1))
}

/// What experiments between hosts say of this computer.
#[derive(Serialize, Deserialize)]
struct OnThisHost {
    /// [`Received::lost_here`].
    #[serde(rename = "lost here")]
    lost_here: f64,
}

impl OnThisHost {
    fn lost(rows: &[Self]) -> f64 {
        if rows.is_empty() { f64::NAN } else { rows.iter().map(|row| row.lost_here).sum() }
    }
}

/// A claim on the column `lost here`: packets that this computer loses are lost in no simulation.
pub(crate) fn nothing_lost_here() -> Claim {
    Claim::own(
        "here",
        "packets that this host lost, and not the links",
        Target::AtMost(0.0),
        0.0,
        OnThisHost::lost,
    )
}

/// The host that sends.
#[derive(Debug)]
pub(crate) struct SenderHost {
    pub(crate) driver: Driver<Sender, IdRunner>,
    /// Makes the bytes of its symbols.
    pub(crate) pump: Pump,
    pub(crate) channels: u8,
}

/// A host that receives.
#[derive(Debug)]
pub(crate) struct ReceiverHost<R> {
    pub(crate) receiver: Receiver,
    pub(crate) runner: R,
    /// The link from the switch.
    pub(crate) link: LinkConfig,
    /// Seed of the link's losses.
    pub(crate) seed: u64,
    /// Start of the host within the run. A host that starts at 0 joins before the sender starts.
    pub(crate) starts_after: Duration,
}

/// The result of a receiver.
#[derive(Debug)]
pub(crate) struct Received<R> {
    pub(crate) driver: Driver<Receiver, R>,
    /// Time since the start of the run; `None` if the receiver did not get so far.
    pub(crate) reception_complete: Option<Instant>,
    pub(crate) complete: Option<Instant>,
    /// Most channels that it was joined to at a time.
    pub(crate) layers: usize,
    /// Packets that this computer lost: at the sender, in the relay, or before the sockets.
    pub(crate) lost_here: u64,
    /// Longest delay of a packet beyond that of the link.
    pub(crate) late: Duration,
}

/// Runs a session until every receiver is complete, or for `limit`. Several senders are mirrors:
/// all send to the groups of the channels.
///
/// # Errors
/// [`HostsError`] if the network cannot be created, or fails.
pub(crate) fn run<R>(
    sending: Vec<SenderHost>,
    receiving: Vec<ReceiverHost<R>>,
    limit: Duration,
) -> Result<Vec<Received<R>>, HostsError>
where
    R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str> + Send,
{
    let lines = receiving.iter().map(|host| line(host.link.clone(), host.seed));
    let network = Network::new(sending.len(), lines.collect())?;
    let Network { senders, receivers, relays, switch } = network;
    // A sender that wakes up late skips packets, which makes the reception longer. On systems
    // without this request, the accuracy of the run depends on the host.
    let _wakefulness = Wakefulness::request();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let _end = EndRun(over);
        let relay = |mut relay: Relay| {
            thread::spawn_scoped(scope, "lab relay", move || {
                // Without a relay, nothing arrives any more.
                let _end = EndRun(over);
                relay.run(|| over.load(Ordering::Relaxed)).map(|()| relay.stats())
            })
        };
        let relaying = relays.into_iter().map(relay).collect::<Result<Vec<_>, _>>()?;
        let network =
            RelayedNetwork { senders, receivers, switch, limit: Instant::ZERO + limit, over };
        let received = network.run(sending, receiving)?;
        over.store(true, Ordering::Relaxed);
        let relayed: Vec<_> = relaying.into_iter().map(joined).collect();
        received
            .into_iter()
            .zip(relayed)
            .map(|(received, relayed)| Ok(received.relayed(relayed??)))
            .collect()
    })
}

/// Ends the run when dropped, also when an error or a panic leaves the scope: all threads of the
/// run read this flag.
struct EndRun<'a>(&'a AtomicBool);

impl Drop for EndRun<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Joins a thread of a run.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, HostsError> {
    thread.join().map_err(|_| HostsError::Job("a thread of a run has panicked"))
}

/// Hosts on a network whose relays run.
#[derive(Debug)]
struct RelayedNetwork<'a> {
    senders: Vec<NetworkHost>,
    receivers: Vec<NetworkHost>,
    switch: Switch,
    limit: Instant,
    over: &'a AtomicBool,
}

impl RelayedNetwork<'_> {
    fn run<R>(
        &self,
        sending: Vec<SenderHost>,
        receiving: Vec<ReceiverHost<R>>,
    ) -> Result<Vec<Received<R>>, HostsError>
    where
        R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str> + Send,
    {
        let mut places = Vec::new();
        for (receiving, host) in receiving.into_iter().zip(&self.receivers) {
            // A receiver that starts at 0 joins before the clock starts.
            let is_early = receiving.starts_after.is_zero();
            let early =
                if is_early { Some(host.namespace.within(|| join_base(host))??) } else { None };
            places.push((receiving, host, early));
        }
        let socket = |(sending, host): (SenderHost, &NetworkHost)| {
            let socket = host.namespace.within(|| send_socket(host, sending.channels))??;
            Ok::<_, HostsError>((sending, socket))
        };
        let sending: Vec<_> =
            sending.into_iter().zip(&self.senders).map(socket).collect::<Result<_, _>>()?;
        self.switch.settle();
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let _end = EndRun(self.over);
            let send = |(sending, socket): (SenderHost, SendSocket)| {
                thread::spawn_scoped(scope, "lab sender", move || {
                    // Without one of the senders, less arrives than the experiment says.
                    let _end = EndRun(self.over);
                    sending.run(socket, clock, self.over)
                })
            };
            let sending = sending.into_iter().map(send).collect::<Result<Vec<_>, _>>()?;
            let receive = |(receiving, host, early)| {
                thread::spawn_scoped(scope, "lab receiver", move || {
                    RunningReceiver::new(receiving, host, clock).run(early, self.limit, self.over)
                })
            };
            let threads = places.into_iter().map(receive).collect::<Result<Vec<_>, _>>()?;
            let received: Vec<_> = threads.into_iter().map(joined).collect();
            self.over.store(true, Ordering::Relaxed);
            let unsent = sending.into_iter().map(|sending| joined(sending)?);
            let unsent = unsent.sum::<Result<u64, _>>()?;
            let with_unsent = |received: Received<R>| Received {
                lost_here: received.lost_here + unsent,
                ..received
            };
            received.into_iter().map(|received| received?.map(with_unsent)).collect()
        })
    }
}

fn now(clock: Clock) -> Instant {
    Instant::from_nanos(clock.now_nanos())
}

/// Group of a channel: administratively scoped, site-local (RFC 2365).
const fn group(channel: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(239, 255, 76, channel))
}

fn channel_config(host: &NetworkHost, channel: u8) -> ReceiveConfig {
    ReceiveConfig::multicast(group(channel), PORT, &host.interface)
}

/// Joins channel 0. Must be called within the host's namespace.
fn join_base(host: &NetworkHost) -> Result<ReceiveThread, HostsError> {
    let base = ReceiveSocket::open_all(&channel_config(host, 0))?;
    ReceiveThread::spawn(base, RECEIVE_MEMORY).map_err(HostsError::Drain)
}

/// Opens the sender's socket. Must be called within the host's namespace.
fn send_socket(host: &NetworkHost, channels: u8) -> Result<SendSocket, HostsError> {
    let to = |channel| ChannelAddress::Multicast(SocketAddr::new(group(channel), PORT));
    let destinations = (0..channels.max(1)).map(to).collect();
    Ok(SendSocket::new(&SendConfig::new(&host.interface, destinations))?)
}

impl SenderHost {
    /// Sends until the run is over. Returns the number of packets that its host did not send.
    fn run(
        mut self,
        mut socket: SendSocket,
        clock: Clock,
        over: &AtomicBool,
    ) -> Result<u64, HostsError> {
        fontana_net::clock::wake_promptly();
        let Self { driver, pump, .. } = &mut self;
        let mut packet = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let at = now(clock);
            if driver.endpoint.poll_timeout().is_some_and(|due| due <= at) {
                driver.endpoint.handle_timeout(at);
            }
            while let Some(effect) =
                driver.poll(at, &DatagramBatch::EMPTY).map_err(HostsError::Job)?
            {
                let Effect::Transmit { to, symbol } = effect else { continue };
                // A sender uses channels only.
                let Destination::Channel(ChannelId(channel)) = to else { continue };
                packet.clear();
                packet.extend_from_slice(driver.header());
                if let Some(symbol) = symbol {
                    pump.write(&symbol, &mut packet);
                }
                socket.send_batch(channel.into(), &packet, packet.len())?;
            }
            let next = at + ATTENTION;
            let due = driver.endpoint.poll_timeout().map_or(next, |due| due.min(next));
            clock.sleep_until(due.as_nanos());
        }
        Ok(socket.sent().lost)
    }
}

impl<R> Received<R> {
    /// Adds the losses and delays of the relay, in both directions.
    fn relayed(self, directions: [DirectionStats; 2]) -> Self {
        let lost = directions.iter().map(DirectionStats::lost_here).sum::<u64>();
        let late = directions.iter().fold(self.late, |late, stats| late.max(stats.latest));
        Self { lost_here: self.lost_here + lost, late, ..self }
    }
}

/// A receiver that is running.
#[derive(Debug)]
struct RunningReceiver<'a, R> {
    received: Received<R>,
    host: &'a NetworkHost,
    clock: Clock,
    starts_at: Instant,
    joined: BTreeSet<u8>,
}

impl<'a, R> RunningReceiver<'a, R>
where
    R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str>,
{
    fn new(receiving: ReceiverHost<R>, host: &'a NetworkHost, clock: Clock) -> Self {
        let ReceiverHost { receiver, runner, starts_after, .. } = receiving;
        let received = Received {
            driver: Driver::new(receiver, runner),
            reception_complete: None,
            complete: None,
            layers: 0,
            lost_here: 0,
            late: Duration::ZERO,
        };
        let starts_at = Instant::ZERO + starts_after;
        Self { received, host, clock, starts_at, joined: BTreeSet::new() }
    }

    fn run(
        mut self,
        early: Option<ReceiveThread>,
        limit: Instant,
        over: &AtomicBool,
    ) -> Result<Received<R>, HostsError> {
        self.host.namespace.enter()?;
        self.clock.sleep_until(self.starts_at.as_nanos());
        let sockets = early.map_or_else(|| join_base(self.host), Ok)?;
        loop {
            let at = now(self.clock);
            let receiver = &mut self.received.driver.endpoint;
            if receiver.poll_timeout().is_some_and(|due| due <= at) {
                receiver.handle_timeout(at);
            }
            self.poll(&DatagramBatch::EMPTY, &sockets)?;
            if self.received.complete.is_some() || at >= limit || over.load(Ordering::Relaxed) {
                return Ok(self.received);
            }
            self.receive(at, &sockets)?;
        }
    }

    fn poll(
        &mut self,
        batch: &DatagramBatch<'_>,
        sockets: &ReceiveThread,
    ) -> Result<(), HostsError> {
        let at = now(self.clock);
        let Received { driver, reception_complete, complete, layers, .. } = &mut self.received;
        while let Some(effect) = driver.poll(at, batch).map_err(HostsError::Job)? {
            match effect {
                Effect::Join(ChannelId(channel)) => {
                    sockets.channels().join(channel, &channel_config(self.host, channel))?;
                    self.joined.insert(channel);
                    *layers = self.joined.len().max(*layers);
                }
                Effect::Leave(ChannelId(channel)) => {
                    sockets.channels().leave(channel);
                    self.joined.remove(&channel);
                }
                Effect::Event(ReceiverEvent::ReceptionComplete) => *reception_complete = Some(at),
                Effect::Event(ReceiverEvent::Complete) => *complete = Some(at),
                Effect::Event(_) | Effect::Transmit { .. } | Effect::Later { .. } => {}
            }
        }
        Ok(())
    }

    /// Waits for datagrams until a timeout is due, and handles them.
    fn receive(&mut self, at: Instant, sockets: &ReceiveThread) -> Result<(), HostsError> {
        let next = at + ATTENTION;
        let due = self.received.driver.endpoint.poll_timeout();
        let due = due.map_or(next, |due| due.min(next));
        let batch = match sockets.batches().recv_timeout(self.clock.until(due.as_nanos())) {
            Ok(batch) => batch,
            Err(error) if error.is_disconnected() => {
                return Err(HostsError::Drain(io::Error::other("the sockets were given up")));
            }
            Err(_) => return Ok(()),
        };
        self.received.lost_here = batch.loss().kernel_drops + batch.loss().local_drops;
        let DatagramBatch { slab, datagrams } = batch.as_datagrams();
        // One packet at a time, as in a simulation: on a busy computer a batch has more packets,
        // and those behind the last one that is needed are not counted.
        for datagram in datagrams {
            let batch = DatagramBatch::one(slab, datagram);
            self.received.driver.endpoint.handle_datagrams(now(self.clock), &batch);
            self.poll(&batch, sockets)?;
            if self.received.complete.is_some() {
                break;
            }
        }
        Ok(())
    }
}
