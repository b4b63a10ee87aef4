//! The endpoints over real sockets: a sender and its receivers on this host's loopback interface, in real
//! time, on real bytes. What a simulation says of the same sessions can be compared with it.
//!
//! Every channel is a multicast group, joined and left by the receivers as they go. Between its sockets and
//! a receiver is a [`Link`] of the simulator, with its losses, queue and delay, as [`crate::relay`] puts one
//! between hosts.

use crate::bytes::Pump;
use fontana_net::{
    Clock, Destination, Interface, Interfaces, IpVersion, ReceiveConfig, ReceiveError,
    ReceiveSocket, ReceiveThread, ReceiveThreadConfig, SendConfig, SendError, SendSocket, doctor,
};
use fontana_proto::{
    ChannelId, Datagram, Endpoint, Event, Instant, Output, Receiver, Sender, SplitMix64, drain,
};
use fontana_sim::{Fate, IdContent, IdJobs, Jobs, Link, LinkConfig};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest wait, so that the end is soon noticed.
const ATTENTION: Duration = Duration::from_millis(20);
/// Of IP and UDP, which links are charged beside the payload.
const HEADERS: u32 = 28;
/// A receiver's sockets hand over 2 MB at most before it looks: a second of the fastest session.
const RECEIVE_MEMORY: ReceiveThreadConfig =
    ReceiveThreadConfig { batches: 8, batch_size: 256 << 10 };

/// Why sessions cannot be run on this host.
#[derive(Debug, thiserror::Error)]
pub enum LoopbackError {
    /// The system does not say which interfaces there are.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// There is no loopback interface.
    #[error("there is no loopback interface that is up")]
    Missing,
    /// What is sent to a group there is not heard.
    #[error("multicast does not come back on {interface}: {finding}")]
    Deaf {
        /// Which interface.
        interface: String,
        /// What was found instead.
        finding: String,
    },
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

/// Whether sessions can be run here.
///
/// # Errors
/// What is in the way.
pub fn check() -> Result<(), LoopbackError> {
    let interface = interface()?;
    let found = doctor::multicast(&interface, IpVersion::V4, false);
    if found.verdict == doctor::Verdict::Good {
        return Ok(());
    }
    Err(LoopbackError::Deaf { interface: interface.name, finding: found.text })
}

fn interface() -> Result<Interface, LoopbackError> {
    let interfaces = Interfaces::list().map_err(LoopbackError::Interfaces)?;
    interfaces.loopback().cloned().ok_or(LoopbackError::Missing)
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
    /// Behind its sockets.
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
    /// Datagrams that this host lost in front of it.
    pub(crate) dropped: u64,
}

/// Runs a session until every receiver is complete, or for `limit`.
///
/// # Errors
/// [`LoopbackError`] if the sockets refuse.
pub(crate) fn perform<J: Jobs + Send>(
    source: Source,
    listeners: Vec<Listener<J>>,
    limit: Duration,
) -> Result<Vec<Heard<J>>, LoopbackError> {
    let air = Air::new()?;
    // Sockets of those who are there from the beginning, before the clock starts.
    let tune = |listener: Listener<J>| {
        let early = listener.starts_after.is_zero().then(|| air.tune());
        early.transpose().map(|early| (listener, early))
    };
    let listeners = listeners.into_iter().map(tune).collect::<Result<Vec<_>, _>>()?;
    let socket = air.send_socket(source.channels)?;
    let (clock, over) = (Clock::start(), AtomicBool::new(false));
    let limit = Instant::ZERO + limit;
    std::thread::scope(|scope| {
        let (air, over) = (&air, &over);
        let sending = scope.spawn(move || {
            let result = source.pour(socket, clock, over);
            // Nobody need wait for what does not come any more.
            over.store(true, Ordering::Relaxed);
            result
        });
        let listen = |(listener, early): (Listener<J>, Option<ReceiveThread>)| {
            scope.spawn(move || Ear::new(listener).listen(air, early, clock, limit, over))
        };
        let ears: Vec<_> = listeners.into_iter().map(listen).collect();
        let heard: Vec<_> = ears.into_iter().map(|ear| ear.join()).collect();
        over.store(true, Ordering::Relaxed);
        let panicked = || LoopbackError::Job("a thread of a run has panicked");
        sending.join().map_err(|_| panicked())??;
        heard.into_iter().map(|heard| heard.map_err(|_| panicked())?).collect()
    })
}

fn now(clock: Clock) -> Instant {
    Instant::from_nanos(clock.now_nanos())
}

/// The groups of a run.
#[derive(Debug)]
struct Air {
    interface: Interface,
    port: u16,
}

impl Air {
    fn new() -> Result<Self, LoopbackError> {
        let interface = interface()?;
        // A port that nobody has: the system's choice.
        let first = ReceiveConfig::multicast(group(0), 0, &interface);
        let port = ReceiveSocket::open(&first)?.port();
        Ok(Self { interface, port })
    }

    fn config(&self, channel: u8) -> ReceiveConfig {
        ReceiveConfig::multicast(group(channel), self.port, &self.interface)
    }

    fn tune(&self) -> Result<ReceiveThread, LoopbackError> {
        let base = ReceiveSocket::open_all(&self.config(0))?;
        ReceiveThread::spawn(base, RECEIVE_MEMORY).map_err(LoopbackError::Drain)
    }

    fn send_socket(&self, channels: u8) -> Result<SendSocket, LoopbackError> {
        let to = |channel| Destination::Multicast(SocketAddr::new(group(channel), self.port));
        let destinations = (0..channels.max(1)).map(to).collect();
        let config = SendConfig::new(&self.interface, destinations);
        // 0: what is sent here stays here.
        Ok(SendSocket::new(&SendConfig { hop_limit: 0, ..config })?)
    }
}

/// Administratively scoped, this site only (RFC 2365). Runs differ by their ports.
const fn group(channel: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(239, 255, 76, channel))
}

/// Lets an endpoint say all it has to say, and does its jobs.
fn carry_on<E: Endpoint>(
    endpoint: &mut E,
    jobs: &mut impl Jobs,
    now: Instant,
    payload: &[u8],
    mut act: impl FnMut(Output, &[u8]) -> Result<(), LoopbackError>,
) -> Result<(), LoopbackError> {
    let (mut header, mut dones) = (Vec::new(), VecDeque::new());
    loop {
        let flow = drain(endpoint, now, &mut header, |output, header| {
            let result = match output {
                Output::Job(job) => match jobs.carry_out(now, job, payload) {
                    Ok(outcome) => {
                        dones.extend(outcome.map(|outcome| outcome.done));
                        Ok(())
                    }
                    Err(reason) => Err(LoopbackError::Job(reason)),
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
    fn pour(
        mut self,
        mut socket: SendSocket,
        clock: Clock,
        over: &AtomicBool,
    ) -> Result<(), LoopbackError> {
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
        Ok(())
    }
}

/// A listener at work.
#[derive(Debug)]
struct Ear<J> {
    heard: Heard<J>,
    link: Link,
    random: SplitMix64,
    starts_at: Instant,
    joined: BTreeSet<u8>,
    /// What the link has passed, and when it arrives.
    on_link: VecDeque<(Instant, Parcel)>,
    /// Drops that the receiver has not been told of.
    untold: u64,
}

#[derive(Debug)]
struct Parcel {
    source: IpAddr,
    channel: ChannelId,
    payload: Vec<u8>,
}

impl<J: Jobs> Ear<J> {
    fn new(listener: Listener<J>) -> Self {
        let Listener { receiver, jobs, link, seed, starts_after } = listener;
        Self {
            heard: Heard {
                receiver,
                jobs,
                heard_enough: None,
                complete: None,
                layers: 0,
                dropped: 0,
            },
            link: Link::new(link),
            // The stream of the first link of a simulation.
            random: SplitMix64::new(seed, 1),
            starts_at: Instant::ZERO + starts_after,
            joined: BTreeSet::new(),
            on_link: VecDeque::new(),
            untold: 0,
        }
    }

    fn listen(
        mut self,
        air: &Air,
        early: Option<ReceiveThread>,
        clock: Clock,
        limit: Instant,
        over: &AtomicBool,
    ) -> Result<Heard<J>, LoopbackError> {
        clock.sleep_until(self.starts_at.as_nanos());
        let sockets = early.map_or_else(|| air.tune(), Ok)?;
        loop {
            let at = now(clock);
            if self.heard.receiver.poll_timeout().is_some_and(|due| due <= at) {
                self.heard.receiver.handle_timeout(at);
            }
            self.carry_on(clock, &[], air, &sockets)?;
            while self.on_link.front().is_some_and(|(due, _)| *due <= at) {
                let Some((_, parcel)) = self.on_link.pop_front() else { break };
                let datagram = Datagram {
                    source: parcel.source,
                    channel: parcel.channel,
                    congestion_experienced: false,
                    dropped_before: std::mem::take(&mut self.untold),
                    payload: &parcel.payload,
                };
                self.heard.receiver.handle_datagram(at, &datagram);
                self.carry_on(clock, &parcel.payload, air, &sockets)?;
            }
            if self.heard.complete.is_some() || at >= limit || over.load(Ordering::Relaxed) {
                return Ok(self.heard);
            }
            self.take_in(clock, at, &sockets)?;
        }
    }

    fn carry_on(
        &mut self,
        clock: Clock,
        payload: &[u8],
        air: &Air,
        sockets: &ReceiveThread,
    ) -> Result<(), LoopbackError> {
        let Heard { receiver, jobs, heard_enough, complete, layers, .. } = &mut self.heard;
        let joined = &mut self.joined;
        carry_on(receiver, jobs, now(clock), payload, |output, _| {
            match output {
                Output::Join(ChannelId(channel)) => {
                    sockets.channels().join(channel, &air.config(channel))?;
                    joined.insert(channel);
                    *layers = joined.len().max(*layers);
                }
                Output::Leave(ChannelId(channel)) => {
                    sockets.channels().leave(channel);
                    joined.remove(&channel);
                }
                Output::Event(Event::HeardEnough) => *heard_enough = Some(now(clock)),
                Output::Event(Event::Complete) => *complete = Some(now(clock)),
                _ => {}
            }
            Ok(())
        })
    }

    /// Waits for datagrams, until something else is due, and puts them on the link.
    fn take_in(
        &mut self,
        clock: Clock,
        at: Instant,
        sockets: &ReceiveThread,
    ) -> Result<(), LoopbackError> {
        let due = [self.heard.receiver.poll_timeout(), self.on_link.front().map(|next| next.0)];
        let due = due.into_iter().flatten().fold(at + ATTENTION, Instant::min);
        let batch = match sockets.batches().recv_timeout(clock.until(due.as_nanos())) {
            Ok(batch) => batch,
            Err(error) if error.is_disconnected() => {
                return Err(LoopbackError::Drain(io::Error::other("the sockets were given up")));
            }
            Err(_) => return Ok(()),
        };
        let at = now(clock);
        let lost = batch.loss().kernel_drops + batch.loss().local_drops;
        self.untold += lost - self.heard.dropped;
        self.heard.dropped = lost;
        for datagram in batch.datagrams() {
            let bytes = datagram.payload.len() as u32 + HEADERS;
            if let Fate::Arrives(arrival) = self.link.offer(at, bytes, &mut self.random) {
                let parcel = Parcel {
                    source: datagram.source.ip(),
                    channel: ChannelId(datagram.channel),
                    payload: datagram.payload.to_vec(),
                };
                self.on_link.push_back((arrival.at, parcel));
            }
        }
        Ok(())
    }
}
