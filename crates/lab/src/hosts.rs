//! The endpoints over real sockets: a sender and its receivers on hosts of this machine, in real time, on real
//! bytes. What a simulation says of the same sessions can be compared with it.
//!
//! Hosts are network namespaces of this process ([`network`]), every channel is a multicast group that
//! receivers join and leave as they go, and between the switch and each of them a [relay](crate::relay)
//! runs the link of the simulator: with the same random stream, the same packets are lost.

mod network;

use crate::bytes::Pump;
use crate::claim::{Claim, Printed};
use crate::relay::{DirectionStats, Line, Relay};
use fontana_net::clock::Wakefulness;
use fontana_net::{
    Clock, Destination, FrameError, NamespaceError, ReceiveConfig, ReceiveError, ReceiveSocket,
    ReceiveThread, ReceiveThreadConfig, SendConfig, SendError, SendSocket,
};
use fontana_proto::{
    ChannelId, Datagram, Endpoint, Event, Instant, Output, Receiver, Sender, SplitMix64, drain,
};
use fontana_sim::{HeardBytes, IdContent, IdJobs, Jobs, LinkConfig};
use network::{Host, Network, Switch};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
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
fn line(link: LinkConfig, seed: u64) -> Line {
    Line::new(link, SplitMix64::new(seed, 1))
}

/// Columns of experiments between hosts: [`Heard::lost_here`], and [`Heard::late`] in milliseconds.
pub(crate) const LOST_HERE: &str = "lost here";
pub(crate) const LATE: &str = "ms late";

/// A claim on [`LOST_HERE`]. What this machine loses is no loss of the link, and is in no simulation.
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

/// Who sends.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) sender: Sender,
    pub(crate) content: Arc<IdContent>,
    pub(crate) pump: Pump,
    pub(crate) channels: u8,
}

/// Who receives.
#[derive(Debug)]
pub(crate) struct Listener<J> {
    pub(crate) receiver: Receiver,
    pub(crate) jobs: J,
    /// From the switch.
    pub(crate) link: LinkConfig,
    /// Draws the link's losses.
    pub(crate) seed: u64,
    /// Of the run. Who starts at 0 has joined before anything is sent.
    pub(crate) starts_after: Duration,
}

/// What became of a receiver.
#[derive(Debug)]
pub(crate) struct Heard<J> {
    pub(crate) receiver: Receiver,
    pub(crate) jobs: J,
    /// Since the run began.
    pub(crate) heard_enough: Option<Instant>,
    pub(crate) complete: Option<Instant>,
    /// Most channels that it was joined to.
    pub(crate) layers: usize,
    /// Packets that this machine lost itself: at the sender, in the relay, or in front of the sockets.
    pub(crate) lost_here: u64,
    /// By how much the relay sent a packet later than the link says, at most.
    pub(crate) late: Duration,
}

/// Runs a session until every receiver is complete, or for `limit`.
///
/// # Errors
/// [`HostsError`] if there is no network to be had, or it fails.
pub(crate) fn perform<J: Jobs + Send>(
    source: Source,
    listeners: Vec<Listener<J>>,
    limit: Duration,
) -> Result<Vec<Heard<J>>, HostsError> {
    let lines = listeners.iter().map(|listener| line(listener.link.clone(), listener.seed));
    let Network { sender, receivers, relays, switch } = Network::new(lines.collect())?;
    // A sender that is woken late leaves packets out, and the reception takes longer for it. Where there is
    // no such request, the run is as good as the machine.
    let _wakefulness = Wakefulness::request();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let relay = |mut relay: Relay| {
            scope.spawn(move || {
                let result = relay.run(|| over.load(Ordering::Relaxed));
                // Nobody need wait for what does not come any more.
                over.store(true, Ordering::Relaxed);
                result.map(|()| relay.stats())
            })
        };
        let relaying: Vec<_> = relays.into_iter().map(relay).collect();
        let stage = Stage { sender, receivers, switch, limit: Instant::ZERO + limit, over };
        let heard = stage.perform(source, listeners);
        over.store(true, Ordering::Relaxed);
        let relayed: Vec<_> = relaying.into_iter().map(joined).collect();
        heard?
            .into_iter()
            .zip(relayed)
            .map(|(heard, relayed)| Ok(heard.relayed(relayed??)))
            .collect()
    })
}

/// What a thread of a run has found.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, HostsError> {
    thread.join().map_err(|_| HostsError::Job("a thread of a run has panicked"))
}

/// Hosts with a network that works, until it is over.
#[derive(Debug)]
struct Stage<'a> {
    sender: Host,
    receivers: Vec<Host>,
    switch: Switch,
    limit: Instant,
    over: &'a AtomicBool,
}

impl Stage<'_> {
    fn perform<J: Jobs + Send>(
        &self,
        source: Source,
        listeners: Vec<Listener<J>>,
    ) -> Result<Vec<Heard<J>>, HostsError> {
        let mut places = Vec::new();
        for (listener, host) in listeners.into_iter().zip(&self.receivers) {
            // Who is there from the beginning has joined before the clock starts.
            let is_early = listener.starts_after.is_zero();
            let early = if is_early { Some(host.namespace.within(|| tune(host))??) } else { None };
            places.push((listener, host, early));
        }
        let socket =
            self.sender.namespace.within(|| send_socket(&self.sender, source.channels))??;
        self.switch.settle();
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                let result = source.pour(socket, clock, self.over);
                // Nobody need wait for what does not come any more.
                self.over.store(true, Ordering::Relaxed);
                result
            });
            let listen = |(listener, host, early)| {
                scope.spawn(move || {
                    Ear::new(listener, host, clock).listen(early, self.limit, self.over)
                })
            };
            let ears: Vec<_> = places.into_iter().map(listen).collect();
            let heard: Vec<_> = ears.into_iter().map(joined).collect();
            self.over.store(true, Ordering::Relaxed);
            let unsent = joined(sending)??;
            let with_unsent =
                |heard: Heard<J>| Heard { lost_here: heard.lost_here + unsent, ..heard };
            heard.into_iter().map(|heard| heard?.map(with_unsent)).collect()
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

fn channel_config(host: &Host, channel: u8) -> ReceiveConfig {
    ReceiveConfig::multicast(group(channel), PORT, &host.interface)
}

/// Joins channel 0. To be called on the host.
fn tune(host: &Host) -> Result<ReceiveThread, HostsError> {
    let base = ReceiveSocket::open_all(&channel_config(host, 0))?;
    ReceiveThread::spawn(base, RECEIVE_MEMORY).map_err(HostsError::Drain)
}

/// To be called on the host.
fn send_socket(host: &Host, channels: u8) -> Result<SendSocket, HostsError> {
    let to = |channel| Destination::Multicast(SocketAddr::new(group(channel), PORT));
    let destinations = (0..channels.max(1)).map(to).collect();
    Ok(SendSocket::new(&SendConfig::new(&host.interface, destinations))?)
}

/// Lets an endpoint say all it has to say, and does its jobs.
fn carry_on<E: Endpoint>(
    endpoint: &mut E,
    jobs: &mut impl Jobs,
    now: Instant,
    payload: &[u8],
    mut act: impl FnMut(Output, &[u8]) -> Result<(), HostsError>,
) -> Result<(), HostsError> {
    let (mut header, mut dones) = (Vec::new(), VecDeque::new());
    loop {
        let flow = drain(endpoint, now, &mut header, |output, header| {
            let result = match output {
                Output::Job(job) => match jobs.carry_out(now, job, HeardBytes::of(payload)) {
                    Ok(outcome) => {
                        dones.extend(outcome.map(|outcome| outcome.done));
                        Ok(())
                    }
                    Err(reason) => Err(HostsError::Job(reason)),
                },
                output => act(output, header),
            };
            result.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        });
        if let ControlFlow::Break(error) = flow {
            return Err(error);
        }
        let Some(done) = dones.pop_front() else { return Ok(()) };
        endpoint.handle_done(now, done);
    }
}

impl Source {
    /// Returns how many packets its host did not send.
    fn pour(
        mut self,
        mut socket: SendSocket,
        clock: Clock,
        over: &AtomicBool,
    ) -> Result<u64, HostsError> {
        fontana_net::clock::wake_promptly();
        let Self { sender, content, pump, .. } = &mut self;
        let (mut jobs, mut packet) = (IdJobs::new(Arc::clone(content)), Vec::new());
        while !over.load(Ordering::Relaxed) {
            let at = now(clock);
            if sender.poll_timeout().is_some_and(|due| due <= at) {
                sender.handle_timeout(at);
            }
            carry_on(sender, &mut jobs, at, &[], |output, header| {
                let Output::Transmit { to, symbol } = output else { return Ok(()) };
                let fontana_proto::Destination::Channel(ChannelId(channel)) = to;
                packet.clear();
                packet.extend_from_slice(header);
                if let Some(symbol) = symbol {
                    pump.write(&symbol, &mut packet);
                }
                socket.send_batch(channel.into(), &packet, packet.len())?;
                Ok(())
            })?;
            let next = at + ATTENTION;
            let due = sender.poll_timeout().map_or(next, |due| due.min(next));
            clock.sleep_until(due.as_nanos());
        }
        Ok(socket.sent().lost)
    }
}

impl<J> Heard<J> {
    /// What was heard by a relay that has done this, there and back.
    fn relayed(self, directions: [DirectionStats; 2]) -> Self {
        let lost = directions.iter().map(DirectionStats::lost_here).sum::<u64>();
        let late = directions.iter().fold(self.late, |late, stats| late.max(stats.latest));
        Self { lost_here: self.lost_here + lost, late, ..self }
    }
}

/// A listener at work.
#[derive(Debug)]
struct Ear<'a, J> {
    heard: Heard<J>,
    host: &'a Host,
    clock: Clock,
    starts_at: Instant,
    joined: BTreeSet<u8>,
}

impl<'a, J: Jobs> Ear<'a, J> {
    fn new(listener: Listener<J>, host: &'a Host, clock: Clock) -> Self {
        let Listener { receiver, jobs, starts_after, .. } = listener;
        let heard = Heard {
            receiver,
            jobs,
            heard_enough: None,
            complete: None,
            layers: 0,
            lost_here: 0,
            late: Duration::ZERO,
        };
        let starts_at = Instant::ZERO + starts_after;
        Self { heard, host, clock, starts_at, joined: BTreeSet::new() }
    }

    fn listen(
        mut self,
        early: Option<ReceiveThread>,
        limit: Instant,
        over: &AtomicBool,
    ) -> Result<Heard<J>, HostsError> {
        self.host.namespace.enter()?;
        self.clock.sleep_until(self.starts_at.as_nanos());
        let sockets = early.map_or_else(|| tune(self.host), Ok)?;
        loop {
            let at = now(self.clock);
            if self.heard.receiver.poll_timeout().is_some_and(|due| due <= at) {
                self.heard.receiver.handle_timeout(at);
            }
            self.carry_on(&[], &sockets)?;
            if self.heard.complete.is_some() || at >= limit || over.load(Ordering::Relaxed) {
                return Ok(self.heard);
            }
            self.take_in(at, &sockets)?;
        }
    }

    fn carry_on(&mut self, payload: &[u8], sockets: &ReceiveThread) -> Result<(), HostsError> {
        let Heard { receiver, jobs, heard_enough, complete, layers, .. } = &mut self.heard;
        let joined = &mut self.joined;
        carry_on(receiver, jobs, now(self.clock), payload, |output, _| {
            match output {
                Output::Join(ChannelId(channel)) => {
                    sockets.channels().join(channel, &channel_config(self.host, channel))?;
                    joined.insert(channel);
                    *layers = joined.len().max(*layers);
                }
                Output::Leave(ChannelId(channel)) => {
                    sockets.channels().leave(channel);
                    joined.remove(&channel);
                }
                Output::Event(Event::HeardEnough) => *heard_enough = Some(now(self.clock)),
                Output::Event(Event::Complete) => *complete = Some(now(self.clock)),
                _ => {}
            }
            Ok(())
        })
    }

    /// Waits for datagrams, until something else is due, and hands them over.
    fn take_in(&mut self, at: Instant, sockets: &ReceiveThread) -> Result<(), HostsError> {
        let next = at + ATTENTION;
        let due = self.heard.receiver.poll_timeout().map_or(next, |due| due.min(next));
        let batch = match sockets.batches().recv_timeout(self.clock.until(due.as_nanos())) {
            Ok(batch) => batch,
            Err(error) if error.is_disconnected() => {
                return Err(HostsError::Drain(io::Error::other("the sockets were given up")));
            }
            Err(_) => return Ok(()),
        };
        let lost = batch.loss().kernel_drops + batch.loss().local_drops;
        let mut untold = lost - self.heard.lost_here;
        self.heard.lost_here = lost;
        for datagram in batch.datagrams() {
            let received = Datagram {
                source: datagram.source.ip(),
                channel: ChannelId(datagram.channel),
                congestion_experienced: false,
                dropped_before: std::mem::take(&mut untold),
                payload: datagram.payload,
            };
            self.heard.receiver.handle_datagram(now(self.clock), &received);
            self.carry_on(datagram.payload, sockets)?;
            if self.heard.complete.is_some() {
                break;
            }
        }
        Ok(())
    }
}
