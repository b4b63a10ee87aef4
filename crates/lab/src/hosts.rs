//! The endpoints over real sockets: a sender and its receivers on hosts of this machine, in real
//! time, on real bytes. What a simulation says of the same sessions can be compared with it.
//!
//! Hosts are network namespaces of this process ([`network`]), every channel is a multicast group
//! that receivers join and leave as they go, and between the switch and each of them a
//! [relay](crate::relay) runs the link of the simulator: with the same random stream, the same
//! packets are lost.

mod network;

use crate::bytes::Pump;
use crate::claim::{Claim, Printed};
use crate::relay::{DirectionStats, FrameLink, Relay};
use fontana_net::clock::Wakefulness;
use fontana_net::{
    ChannelAddress, Clock, FrameError, NamespaceError, ReceiveConfig, ReceiveError, ReceiveSocket,
    ReceiveThread, ReceiveThreadConfig, SendConfig, SendError, SendSocket, ThreadError, thread,
};
use fontana_proto::{
    ChannelId, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant, JobRunner,
    ReceiveDone, ReceiveJob, Receiver, ReceiverEvent, Sender, SplitMix64,
};
use fontana_sim::{IdRunner, LinkConfig};
use network::{Network, NetworkHost, Switch};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Longest wait, so that the end is soon noticed.
const ATTENTION: Duration = Duration::from_millis(20);
/// A receiver's sockets hand over 2 MB at most before it looks: a second of the fastest session.
const RECEIVE_MEMORY: ReceiveThreadConfig =
    ReceiveThreadConfig { batches: 8, batch_size: 256 << 10 };
/// Of all channels: nobody else is on these hosts.
const PORT: u16 = 7701;

/// Why sessions cannot be run between hosts of this machine.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The process has not the rights, or this machine lacks something that networks are made with.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The system does not say which interfaces there are.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// An interface that was made is not there.
    #[error("the interface {interface} is gone")]
    Missing {
        /// Its name.
        interface: String,
    },
    /// A relay could not relay.
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
    /// An endpoint asked for a job that makes no sense.
    #[error("a mistake of Fontana: {0}")]
    Job(&'static str),
}

/// Whether sessions can be run here: makes a network, and lets it go.
///
/// # Errors
/// What is in the way.
pub(crate) fn check() -> Result<(), HostsError> {
    Network::new(vec![line(LinkConfig::default(), 0)]).map(drop)
}

/// For tests: the same, and skips aloud where the rights are missing.
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

/// The way to a receiver, with the random stream that the first link of a simulation has.
fn line(link: LinkConfig, seed: u64) -> FrameLink {
    FrameLink::new(link, SplitMix64::new(seed, 1))
}

/// Columns of experiments between hosts: [`Received::lost_here`], and [`Received::late`] in
/// milliseconds.
pub(crate) const LOST_HERE: &str = "lost here";
pub(crate) const LATE: &str = "ms late";

/// A claim on [`LOST_HERE`]. What this machine loses is no loss of the link, and is in no
/// simulation.
pub(crate) fn nothing_lost_here() -> Claim {
    Claim::new(
        "here",
        "not of the paper: packets that this machine lost itself, and not the links",
        Printed::AtMost(0.0),
        0.0,
        |table| match table.numbers(LOST_HERE, &[]) {
            none if none.is_empty() => f64::NAN,
            lost => lost.iter().sum(),
        },
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
    /// From the switch.
    pub(crate) link: LinkConfig,
    /// Draws the link's losses.
    pub(crate) seed: u64,
    /// Of the run. A host that starts at 0 has joined before anything is sent.
    pub(crate) starts_after: Duration,
}

/// What became of a receiver.
#[derive(Debug)]
pub(crate) struct Received<R> {
    pub(crate) driver: Driver<Receiver, R>,
    /// Since the run began.
    pub(crate) reception_complete: Option<Instant>,
    pub(crate) complete: Option<Instant>,
    /// Most channels that it was joined to.
    pub(crate) layers: usize,
    /// Packets that this machine lost itself: at the sender, in the relay, or in front of the
    /// sockets.
    pub(crate) lost_here: u64,
    /// By how much the relay sent a packet later than the link says, at most.
    pub(crate) late: Duration,
}

/// Runs a session until every receiver is complete, or for `limit`.
///
/// # Errors
/// [`HostsError`] if there is no network to be had, or it fails.
pub(crate) fn run<R>(
    sending: SenderHost,
    receiving: Vec<ReceiverHost<R>>,
    limit: Duration,
) -> Result<Vec<Received<R>>, HostsError>
where
    R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str> + Send,
{
    let lines = receiving.iter().map(|host| line(host.link.clone(), host.seed));
    let Network { sender, receivers, relays, switch } = Network::new(lines.collect())?;
    // A sender that is woken late leaves packets out, and the reception takes longer for it. Where
    // there is no such request, the run is as good as the machine.
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
            RelayedNetwork { sender, receivers, switch, limit: Instant::ZERO + limit, over };
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

/// Ends the run when dropped: all threads of it read this flag. Also when an error or a panic
/// leaves the scope that waits for them.
struct EndRun<'a>(&'a AtomicBool);

impl Drop for EndRun<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a thread of a run has found.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, HostsError> {
    thread.join().map_err(|_| HostsError::Job("a thread of a run has panicked"))
}

/// Hosts whose network is being relayed.
#[derive(Debug)]
struct RelayedNetwork<'a> {
    sender: NetworkHost,
    receivers: Vec<NetworkHost>,
    switch: Switch,
    limit: Instant,
    over: &'a AtomicBool,
}

impl RelayedNetwork<'_> {
    fn run<R>(
        &self,
        sending: SenderHost,
        receiving: Vec<ReceiverHost<R>>,
    ) -> Result<Vec<Received<R>>, HostsError>
    where
        R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str> + Send,
    {
        let mut places = Vec::new();
        for (receiving, host) in receiving.into_iter().zip(&self.receivers) {
            // A receiver that is there from the beginning has joined before the clock starts.
            let is_early = receiving.starts_after.is_zero();
            let early =
                if is_early { Some(host.namespace.within(|| join_base(host))??) } else { None };
            places.push((receiving, host, early));
        }
        let socket =
            self.sender.namespace.within(|| send_socket(&self.sender, sending.channels))??;
        self.switch.settle();
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let _end = EndRun(self.over);
            let sending = thread::spawn_scoped(scope, "lab sender", move || {
                // Without a sender, nothing arrives any more.
                let _end = EndRun(self.over);
                sending.run(socket, clock, self.over)
            })?;
            let receive = |(receiving, host, early)| {
                thread::spawn_scoped(scope, "lab receiver", move || {
                    RunningReceiver::new(receiving, host, clock).run(early, self.limit, self.over)
                })
            };
            let threads = places.into_iter().map(receive).collect::<Result<Vec<_>, _>>()?;
            let received: Vec<_> = threads.into_iter().map(joined).collect();
            self.over.store(true, Ordering::Relaxed);
            let unsent = joined(sending)??;
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

/// Administratively scoped, this site only (RFC 2365).
const fn group(channel: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(239, 255, 76, channel))
}

fn channel_config(host: &NetworkHost, channel: u8) -> ReceiveConfig {
    ReceiveConfig::multicast(group(channel), PORT, &host.interface)
}

/// Joins channel 0. To be called on the host.
fn join_base(host: &NetworkHost) -> Result<ReceiveThread, HostsError> {
    let base = ReceiveSocket::open_all(&channel_config(host, 0))?;
    ReceiveThread::spawn(base, RECEIVE_MEMORY).map_err(HostsError::Drain)
}

/// To be called on the host.
fn send_socket(host: &NetworkHost, channels: u8) -> Result<SendSocket, HostsError> {
    let to = |channel| ChannelAddress::Multicast(SocketAddr::new(group(channel), PORT));
    let destinations = (0..channels.max(1)).map(to).collect();
    Ok(SendSocket::new(&SendConfig::new(&host.interface, destinations))?)
}

impl SenderHost {
    /// Sends until the run is over. Returns how many packets its host did not send.
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
                let Destination::Channel(ChannelId(channel)) = to;
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
    /// What was received through a relay that has done this, there and back.
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

    /// Waits for datagrams, until something else is due, and hands them over.
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
        let batch = batch.as_datagrams();
        self.received.driver.endpoint.handle_datagrams(now(self.clock), &batch);
        self.poll(&batch, sockets)
    }
}
