//! Runs of any [endpoints](Endpoint) between hosts: each has a thread, and the sockets of its host.
//!
//! ```text
//! sender ── emulator ── switch ─┬─ emulator ── receiver
//!                            └─ emulator ── receiver
//! ```
//!
//! Senders send to the groups of the channels. Receivers join and leave groups. If there is a link
//! back, receivers may also send to the first sender by unicast: the emulator before it applies
//! that link to all of these packets. Without one, senders are connected to the switch.

use super::HostsError;
use super::network::{Network, NetworkHost};
use super::together::{ATTENTION, EndRun, PORT, joined, now};
use crate::emulator::{DirectionStats, Emulator, FrameLink};
use fontana_net::clock::Wakefulness;
use fontana_net::{
    ChannelAddress, Clock, FeedbackSocket, IpVersion, ReceiveConfig, ReceiveSocket, ReceiveThread,
    ReceiveThreadConfig, SendConfig, SendSocket, Switch, thread,
};
use fontana_proto::{
    ChannelId, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant, JobRunner, SymbolId,
};
use fontana_sim::LinkStats;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// Memory for received datagrams, 2 MB: a second of the fastest session.
const RECEIVE_MEMORY: ReceiveThreadConfig =
    ReceiveThreadConfig { batches: 8, batch_size: 256 << 10 };

/// An endpoint with its runner, and what a run records of it.
pub(crate) trait HostedEndpoint: Send {
    /// The endpoint.
    type Endpoint: Endpoint;
    /// Runs its jobs. A job that takes virtual time is not supported: its answer is lost.
    type Runner: JobRunner<
            <Self::Endpoint as Endpoint>::Job,
            Done = <Self::Endpoint as Endpoint>::Done,
            Error = &'static str,
        >;

    /// The driver, which the run polls.
    fn driver(&mut self) -> &mut Driver<Self::Endpoint, Self::Runner>;

    /// Appends the bytes of a symbol to a packet.
    fn write_symbol(&mut self, _symbol: &SymbolId, _packet: &mut Vec<u8>) {}

    /// A packet has been given to the system.
    fn on_transmit(&mut self, _now: Instant, _packet: &[u8]) {}

    /// The endpoint has handled a received packet.
    fn on_deliver(&mut self, _now: Instant, _packet: &[u8]) {}

    /// The endpoint has joined a channel.
    fn on_join(&mut self, _channel: ChannelId) {}

    /// The endpoint has left a channel.
    fn on_leave(&mut self, _channel: ChannelId) {}

    /// The endpoint has reported an event.
    fn on_event(&mut self, now: Instant, event: <Self::Endpoint as Endpoint>::Event);

    /// Whether its part of the run is over. The run ends when this is so for all receivers.
    fn is_complete(&self) -> bool {
        false
    }
}

/// A receiver and its place in the network.
#[derive(Debug)]
pub(crate) struct LinkedEndpoint<H> {
    pub(crate) endpoint: H,
    /// The link from the switch.
    pub(crate) link: FrameLink,
    /// Start of the host within the run. A host that starts at 0 joins before the senders start.
    pub(crate) starts_after: Duration,
}

/// A run that has not started.
#[derive(Debug)]
pub(crate) struct EndpointRun<S, R> {
    pub(crate) senders: Vec<S>,
    pub(crate) receivers: Vec<LinkedEndpoint<R>>,
    /// Channels that the senders send to, from channel 0 on.
    pub(crate) channels: u8,
    /// The link from the switch to the first sender, which all receivers share; `None` if they do
    /// not send.
    pub(crate) link_back: Option<FrameLink>,
    /// End of the run, if some receivers are not complete by then.
    pub(crate) limit: Duration,
}

/// A host at the end of a run.
#[derive(Debug)]
pub(crate) struct HostOutcome<H> {
    pub(crate) endpoint: H,
    /// Packets that this computer lost: that the host did not send, in its emulator, or before its
    /// sockets.
    pub(crate) lost_here: u64,
    /// Longest delay of a packet beyond that of the link, in both directions of its emulator.
    pub(crate) late: Duration,
    /// Counters of the link to the host. Without an emulator all are 0.
    pub(crate) link: LinkStats,
}

/// The hosts at the end of a run, in their order.
#[derive(Debug)]
pub(crate) struct RunOutcome<S, R> {
    pub(crate) senders: Vec<HostOutcome<S>>,
    pub(crate) receivers: Vec<HostOutcome<R>>,
}

impl<S: HostedEndpoint, R: HostedEndpoint> EndpointRun<S, R> {
    /// Runs until every receiver is complete, or the time is over.
    ///
    /// # Errors
    /// [`HostsError`] if the network cannot be created, or fails.
    pub(crate) fn run(self) -> Result<RunOutcome<S, R>, HostsError> {
        let Self { senders, receivers, channels, link_back, limit } = self;
        let has_link_back = link_back.is_some();
        let mut links = Vec::new();
        let mut receiving = Vec::new();
        for LinkedEndpoint { endpoint, link, starts_after } in receivers {
            links.push(link);
            receiving.push((endpoint, starts_after));
        }
        let network = Network::new(senders.len(), link_back, links)?;
        let Network { senders: from, receivers: to, emulators, emulator_back, switch } = network;
        // A sender that wakes up late skips packets, which makes the reception longer. On systems
        // without this request, the accuracy of the run depends on the host.
        let _wakefulness = Wakefulness::request();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = &over;
            let _end = EndRun(over);
            let emulator = |emulator: Emulator| spawn_emulator(scope, emulator, over);
            let emulating = emulators.into_iter().map(emulator).collect::<Result<Vec<_>, _>>()?;
            let emulating_back = emulator_back.map(emulator).transpose()?;
            let hosts = EmulatedHosts { from, to, switch, channels, has_link_back, limit, over };
            let mut outcome = hosts.run(senders, receiving)?;
            over.store(true, Ordering::Relaxed);
            for (receiver, emulator) in outcome.receivers.iter_mut().zip(emulating) {
                receiver.add_emulator(joined(emulator)??);
            }
            if let Some((sender, emulator)) = outcome.senders.first_mut().zip(emulating_back) {
                sender.add_emulator(joined(emulator)??);
            }
            Ok(outcome)
        })
    }
}

type EmulatorThread<'scope> = ScopedJoinHandle<'scope, Result<[DirectionStats; 2], HostsError>>;

/// Runs an emulator until the run is over.
fn spawn_emulator<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut emulator: Emulator,
    over: &'scope AtomicBool,
) -> Result<EmulatorThread<'scope>, HostsError> {
    let emulating = move || {
        // Without an emulator, nothing arrives any more.
        let _end = EndRun(over);
        emulator.run(|| over.load(Ordering::Relaxed))?;
        Ok(emulator.stats())
    };
    Ok(thread::spawn_scoped(scope, "lab emulator", emulating)?)
}

impl<H> HostOutcome<H> {
    /// Adds the losses and delays of the emulator, in both directions.
    fn add_emulator(&mut self, directions: [DirectionStats; 2]) {
        self.lost_here += directions.iter().map(DirectionStats::lost_here).sum::<u64>();
        self.late = directions.iter().fold(self.late, |late, stats| late.max(stats.latest));
        let [towards, _] = directions;
        self.link = towards.frames.link;
    }
}

/// Hosts on a network whose emulators run.
#[derive(Debug)]
struct EmulatedHosts<'a> {
    from: Vec<NetworkHost>,
    to: Vec<NetworkHost>,
    switch: Switch,
    channels: u8,
    has_link_back: bool,
    limit: Duration,
    over: &'a AtomicBool,
}

impl EmulatedHosts<'_> {
    fn run<S: HostedEndpoint, R: HostedEndpoint>(
        &self,
        senders: Vec<S>,
        receivers: Vec<(R, Duration)>,
    ) -> Result<RunOutcome<S, R>, HostsError> {
        let first_sender = self.from.first().filter(|_| self.has_link_back);
        let feedback_to = first_sender.map(|host| SocketAddr::new(host.address, PORT));
        let mut receiving = Vec::new();
        for ((endpoint, starts_after), host) in receivers.into_iter().zip(&self.to) {
            let starts_at = Instant::ZERO + starts_after;
            let open = || HostSockets::of_receiver(host, feedback_to);
            // A receiver that starts at 0 joins before the clock starts.
            let is_early = starts_after.is_zero();
            let sockets = if is_early { Some(host.namespace.within(open)??) } else { None };
            receiving.push(WaitingReceiver { endpoint, host, feedback_to, starts_at, sockets });
        }
        let mut sending = Vec::new();
        for (index, (endpoint, host)) in senders.into_iter().zip(&self.from).enumerate() {
            let collects = self.has_link_back && index == 0;
            let open = || HostSockets::of_sender(host, self.channels, collects);
            sending.push((endpoint, host.namespace.within(open)??));
        }
        self.switch.settle();
        let clock = Clock::start();
        let limit = Instant::ZERO + self.limit;
        std::thread::scope(|scope| {
            let _end = EndRun(self.over);
            let send = |(endpoint, sockets)| {
                thread::spawn_scoped(scope, "lab sender", move || {
                    // Without one of the senders, less arrives than the experiment says.
                    let _end = EndRun(self.over);
                    RunningHost::new(endpoint, sockets, clock).run(limit, self.over)
                })
            };
            let sending = sending.into_iter().map(send).collect::<Result<Vec<_>, _>>()?;
            let mut running = Vec::new();
            for waiting in receiving {
                let run = move || waiting.start(clock)?.run(limit, self.over);
                running.push(thread::spawn_scoped(scope, "lab receiver", run)?);
            }
            let receivers: Vec<_> = running.into_iter().map(joined).collect();
            self.over.store(true, Ordering::Relaxed);
            let senders = sending.into_iter().map(|sender| joined(sender)?);
            Ok(RunOutcome {
                senders: senders.collect::<Result<_, _>>()?,
                receivers: receivers.into_iter().map(|host| host?).collect::<Result<_, _>>()?,
            })
        })
    }
}

/// A receiver that has not started.
#[derive(Debug)]
struct WaitingReceiver<'a, H> {
    endpoint: H,
    host: &'a NetworkHost,
    /// The first sender, if there is a link back.
    feedback_to: Option<SocketAddr>,
    starts_at: Instant,
    /// Its sockets, if it has joined already.
    sockets: Option<HostSockets<'a>>,
}

impl<'a, H: HostedEndpoint> WaitingReceiver<'a, H> {
    /// Waits for its start. Moves the calling thread to the host, where the endpoint joins further
    /// channels.
    fn start(mut self, clock: Clock) -> Result<RunningHost<'a, H>, HostsError> {
        self.host.namespace.enter()?;
        clock.sleep_until(self.starts_at.as_nanos());
        let sockets = match self.sockets.take() {
            Some(sockets) => sockets,
            None => HostSockets::of_receiver(self.host, self.feedback_to)?,
        };
        Ok(RunningHost::new(self.endpoint, sockets, clock))
    }
}

/// Group of a channel: administratively scoped, site-local (RFC 2365).
pub(super) const fn group(channel: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(239, 255, 76, channel))
}

fn channel_config(host: &NetworkHost, channel: u8) -> ReceiveConfig {
    ReceiveConfig::multicast(group(channel), PORT, &host.interface)
}

/// The sockets of a host.
#[derive(Debug)]
enum HostSockets<'a> {
    Sender {
        /// To the groups of the channels.
        channels: Box<SendSocket>,
        /// What receivers send; `None` without a link back, or if they send to another sender.
        feedback: Option<ReceiveThread>,
    },
    Receiver {
        host: &'a NetworkHost,
        /// The groups of the joined channels.
        channels: ReceiveThread,
        /// To the first sender; `None` without a link back.
        feedback: Option<ReturnPath>,
    },
}

/// The way from a receiver to the first sender.
#[derive(Debug)]
struct ReturnPath {
    socket: FeedbackSocket,
    to: SocketAddr,
}

impl HostSockets<'_> {
    /// Opens the sockets of a sender. Must be called within the host's namespace.
    fn of_sender(host: &NetworkHost, channels: u8, collects: bool) -> Result<Self, HostsError> {
        let to = |channel| ChannelAddress::Multicast(SocketAddr::new(group(channel), PORT));
        let destinations = (0..channels.max(1)).map(to).collect();
        let config = ReceiveConfig::unicast(SocketAddr::new(host.address, PORT));
        Ok(Self::Sender {
            channels: Box::new(SendSocket::new(&SendConfig::new(&host.interface, destinations))?),
            feedback: if collects { Some(receive_from(&config)?) } else { None },
        })
    }

    /// The packets that arrive; `None` if the host receives none.
    const fn receiving(&self) -> Option<&ReceiveThread> {
        match self {
            Self::Sender { feedback, .. } => feedback.as_ref(),
            Self::Receiver { channels, .. } => Some(channels),
        }
    }

    /// Gives a packet to the system. False if it has no room for it.
    fn transmit(&mut self, to: Destination, packet: &[u8]) -> Result<bool, HostsError> {
        match (self, to) {
            (Self::Sender { channels, .. }, Destination::Channel(ChannelId(channel))) => {
                channels.send_batch(channel.into(), packet, packet.len())?;
                Ok(true)
            }
            (Self::Receiver { feedback: Some(path), .. }, Destination::Sender(_)) => {
                Ok(path.socket.send(packet, path.to).is_ok())
            }
            (_, to) => Err(HostsError::Destination(to)),
        }
    }

    /// Packets that the sender's socket did not send.
    fn unsent(&self) -> u64 {
        match self {
            Self::Sender { channels, .. } => channels.sent().lost,
            Self::Receiver { .. } => 0,
        }
    }
}

impl<'a> HostSockets<'a> {
    /// Opens the sockets of a receiver, which joins channel 0. Must be called within the host's
    /// namespace.
    fn of_receiver(
        host: &'a NetworkHost,
        feedback_to: Option<SocketAddr>,
    ) -> Result<Self, HostsError> {
        let path = |to| {
            let socket = FeedbackSocket::open(IpVersion::V4).map_err(HostsError::Feedback)?;
            Ok::<_, HostsError>(ReturnPath { socket, to })
        };
        let channels = receive_from(&channel_config(host, 0))?;
        Ok(Self::Receiver { host, channels, feedback: feedback_to.map(path).transpose()? })
    }
}

fn receive_from(config: &ReceiveConfig) -> Result<ReceiveThread, HostsError> {
    let base = ReceiveSocket::open_all(config)?;
    ReceiveThread::spawn(base, RECEIVE_MEMORY).map_err(HostsError::Drain)
}

/// A host that is running.
#[derive(Debug)]
struct RunningHost<'a, H> {
    endpoint: H,
    sockets: HostSockets<'a>,
    clock: Clock,
    packet: Vec<u8>,
    /// Packets to the first sender that the system refused.
    unsent: u64,
    /// Packets that this host's sockets lost before they were read.
    unread: u64,
}

impl<'a, H: HostedEndpoint> RunningHost<'a, H> {
    const fn new(endpoint: H, sockets: HostSockets<'a>, clock: Clock) -> Self {
        Self { endpoint, sockets, clock, packet: Vec::new(), unsent: 0, unread: 0 }
    }

    fn run(mut self, limit: Instant, over: &AtomicBool) -> Result<HostOutcome<H>, HostsError> {
        fontana_net::clock::wake_promptly();
        loop {
            let at = self.now();
            let endpoint = &mut self.endpoint.driver().endpoint;
            if endpoint.poll_timeout().is_some_and(|due| due <= at) {
                endpoint.handle_timeout(at);
            }
            self.poll(&DatagramBatch::EMPTY)?;
            if self.endpoint.is_complete() || at >= limit || over.load(Ordering::Relaxed) {
                return Ok(HostOutcome {
                    lost_here: self.unsent + self.unread + self.sockets.unsent(),
                    endpoint: self.endpoint,
                    late: Duration::ZERO,
                    link: LinkStats::default(),
                });
            }
            self.receive(at)?;
        }
    }

    fn now(&self) -> Instant {
        now(self.clock)
    }

    /// Carries out what the endpoint wants; `batch` is what it has handled last.
    fn poll(&mut self, batch: &DatagramBatch<'_>) -> Result<(), HostsError> {
        let at = self.now();
        while let Some(effect) = self.endpoint.driver().poll(at, batch).map_err(HostsError::Job)? {
            match effect {
                Effect::Transmit { to, symbol } => self.transmit(at, to, symbol)?,
                Effect::Join(channel) => {
                    if let HostSockets::Receiver { host, channels, .. } = &self.sockets {
                        let config = channel_config(host, channel.0);
                        channels.channels().join(channel.0, &config)?;
                    }
                    self.endpoint.on_join(channel);
                }
                Effect::Leave(channel) => {
                    if let HostSockets::Receiver { channels, .. } = &self.sockets {
                        channels.channels().leave(channel.0);
                    }
                    self.endpoint.on_leave(channel);
                }
                Effect::Event(event) => self.endpoint.on_event(at, event),
                Effect::Later { .. } => {}
            }
        }
        Ok(())
    }

    fn transmit(
        &mut self,
        at: Instant,
        to: Destination,
        symbol: Option<SymbolId>,
    ) -> Result<(), HostsError> {
        self.packet.clear();
        self.packet.extend_from_slice(self.endpoint.driver().header());
        if let Some(symbol) = symbol {
            self.endpoint.write_symbol(&symbol, &mut self.packet);
        }
        let is_sent = self.sockets.transmit(to, &self.packet)?;
        self.unsent += u64::from(!is_sent);
        self.endpoint.on_transmit(at, &self.packet);
        Ok(())
    }

    /// Waits for datagrams until a timeout is due, and handles them.
    fn receive(&mut self, at: Instant) -> Result<(), HostsError> {
        let next = at + ATTENTION;
        let due = self.endpoint.driver().endpoint.poll_timeout();
        let due = due.map_or(next, |due| due.min(next));
        let Some(receiving) = self.sockets.receiving() else {
            self.clock.sleep_until(due.as_nanos());
            return Ok(());
        };
        let batch = match receiving.batches().recv_timeout(self.clock.until(due.as_nanos())) {
            Ok(batch) => batch,
            Err(error) if error.is_disconnected() => {
                return Err(HostsError::Drain(io::Error::other("the sockets were given up")));
            }
            Err(_) => return Ok(()),
        };
        self.unread = batch.loss().kernel_drops + batch.loss().local_drops;
        let DatagramBatch { slab, datagrams } = batch.as_datagrams();
        // One packet at a time, as in a simulation: on a busy computer a batch has more packets,
        // and those behind the last one that is needed are not counted.
        for datagram in datagrams {
            let batch = DatagramBatch::one(slab, datagram);
            let at = self.now();
            self.endpoint.driver().endpoint.handle_datagrams(at, &batch);
            for (_, packet) in batch.iter() {
                self.endpoint.on_deliver(at, packet);
            }
            self.poll(&batch)?;
            if self.endpoint.is_complete() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::LossModel;
    use crate::hosts;
    use crate::no_jobs::{NoEvent, NoJobs};
    use fontana_proto::{Output, SplitMix64};
    use fontana_sim::LinkConfig;
    use std::collections::VecDeque;
    use std::convert::Infallible;

    const PACKETS: u8 = 30;
    const SPACING: Duration = Duration::from_millis(10);
    /// The threads of the links may start after the sender's.
    const BEGINS: Duration = Duration::from_millis(500);
    /// Several times what the packets take.
    const LIMIT: Duration = Duration::from_secs(2);

    /// Sends the numbers from 0 on, or answers each packet with the number in it.
    #[derive(Debug, Default)]
    struct Numbers {
        sends: bool,
        next: u8,
        answers: VecDeque<u8>,
    }

    impl Endpoint for Numbers {
        type Job = Infallible;
        type Done = Infallible;
        type Event = NoEvent;

        fn handle_datagrams(&mut self, _now: Instant, batch: &DatagramBatch<'_>) {
            let numbers = batch.iter().filter_map(|(_, packet)| packet.first());
            self.answers.extend(numbers.filter(|_| !self.sends));
        }

        fn handle_done(&mut self, _now: Instant, done: Infallible) {
            match done {}
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_output(
            &mut self,
            now: Instant,
            header: &mut Vec<u8>,
        ) -> Option<Output<Infallible, NoEvent>> {
            let to = if let Some(number) = self.answers.pop_front() {
                header.push(number);
                Destination::Sender(([10, 0, 0, 1], 7701).into())
            } else {
                self.poll_timeout().filter(|&due| due <= now)?;
                header.push(self.next);
                self.next += 1;
                Destination::Channel(ChannelId::BASE)
            };
            Some(Output::Transmit { to, symbol: None })
        }

        fn poll_timeout(&self) -> Option<Instant> {
            let has_next = self.sends && self.next < PACKETS;
            has_next.then(|| Instant::ZERO + BEGINS + SPACING * self.next.into())
        }
    }

    /// Records the numbers that arrive.
    #[derive(Debug)]
    struct NumbersHost {
        driver: Driver<Numbers, NoJobs>,
        arrived: Vec<u8>,
    }

    impl HostedEndpoint for NumbersHost {
        type Endpoint = Numbers;
        type Runner = NoJobs;

        fn driver(&mut self) -> &mut Driver<Numbers, NoJobs> {
            &mut self.driver
        }

        fn on_deliver(&mut self, _now: Instant, packet: &[u8]) {
            self.arrived.extend(packet);
        }

        fn on_event(&mut self, _now: Instant, event: NoEvent) {
            match event {}
        }
    }

    fn host(sends: bool) -> NumbersHost {
        let endpoint = Numbers { sends, ..Numbers::default() };
        NumbersHost { driver: Driver::new(endpoint, NoJobs), arrived: Vec::new() }
    }

    fn link(loss: LossModel) -> FrameLink {
        FrameLink::new(LinkConfig::default().with_loss(loss), SplitMix64::new(1, 1))
    }

    fn receiver(loss: LossModel) -> LinkedEndpoint<NumbersHost> {
        LinkedEndpoint { endpoint: host(false), link: link(loss), starts_after: Duration::ZERO }
    }

    #[test]
    fn answers_of_all_receivers_pass_one_link_to_the_sender() {
        if !hosts::are_possible() {
            return;
        }
        let third = LossModel::Periodic { period: 3, first: 0 };
        let run = EndpointRun {
            senders: vec![host(true)],
            receivers: vec![receiver(LossModel::None), receiver(third)],
            channels: 1,
            link_back: Some(link(LossModel::Periodic { period: 2, first: 0 })),
            limit: LIMIT,
        };
        let RunOutcome { senders, receivers } = run.run().expect("hosts");
        let arrived: Vec<&[u8]> = receivers.iter().map(|host| &host.endpoint.arrived[..]).collect();
        let all: Vec<u8> = (0..PACKETS).collect();
        let not_third: Vec<u8> = all.iter().copied().filter(|number| number % 3 != 0).collect();
        assert_eq!(arrived, [all, not_third]);
        let [sender] = &senders[..] else { panic!("{senders:?}") };
        // 30 and 20 answers, of which the link loses every second one.
        assert_eq!((sender.link.offered, sender.endpoint.arrived.len()), (50, 25), "{sender:?}");
        assert_eq!(receivers[1].link.wire_drops, 10);
        let lost_here = receivers.iter().chain(&senders).map(|host| host.lost_here).sum::<u64>();
        assert_eq!(lost_here, 0);
    }

    #[test]
    fn a_run_without_a_link_back_fails_when_a_receiver_sends() {
        if !hosts::are_possible() {
            return;
        }
        let run = EndpointRun {
            senders: vec![host(true)],
            receivers: vec![receiver(LossModel::None)],
            channels: 1,
            link_back: None,
            limit: LIMIT,
        };
        let error = run.run().expect_err("the first answer has no way");
        assert!(matches!(error, HostsError::Destination(Destination::Sender(_))), "{error}");
    }
}
