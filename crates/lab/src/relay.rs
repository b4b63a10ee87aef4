//! A link of the simulator between two real interfaces.
//!
//! A relay stands in the middle, in a network namespace or on a host of its own, takes every frame
//! that comes to one of two interfaces, and sends it out of the other one when and if
//! [`fontana_sim::Link`] says that it arrives: a queue before a transmitter, a wire with delay and
//! losses, in both directions, each with a random stream of its own. So what is measured between
//! real hosts, and in a simulation, has gone over the same link.
//!
//! ```no_run
//! use fontana_lab::relay::{LossModel, Relay, RelayConfig};
//! use fontana_net::Interfaces;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = RelayConfig {
//!     loss: LossModel::markov(0.05, 4.0),
//!     delay: Duration::from_millis(50),
//!     ..RelayConfig::default()
//! };
//! let interfaces = Interfaces::list()?;
//! let between = [interfaces.select(&"a".parse()?)?, interfaces.select(&"b".parse()?)?];
//! let mut relay = Relay::open(between, config.links())?;
//! relay.run(|| false)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`FrameLink`] is one direction as a value without a clock, of any link of the simulator; [`Relay`]
//! adds the sockets and the clock to two of them.

mod frame_link;

pub use fontana_sim::LossModel;
pub use frame_link::{FrameLink, FrameLinkStats};

use fontana_net::{Clock, FrameError, FrameSocket, Interface, clock};
use fontana_proto::{Instant, SplitMix64};
use fontana_sim::{DueEvent, LinkConfig, QueueLength};
use std::time::Duration;

/// Longest wait, so that a request to stop is soon noticed.
const ATTENTION: Duration = Duration::from_millis(100);

/// Frames that are taken from an interface before what is due is sent: some tens of microseconds of
/// work.
const AT_A_TIME: usize = 32;

/// What a relay does to frames, in either direction. The default one passes everything at once.
#[derive(Clone, Debug, Default)]
pub struct RelayConfig {
    /// What the wire loses.
    pub loss: LossModel,
    /// Of the wire, for every frame.
    pub delay: Duration,
    /// Mean of an exponentially distributed delay on top, which reorders nothing.
    pub jitter: Duration,
    /// The transmitter before the wire; `None` if it is so fast that there is never a queue.
    pub bottleneck: Option<Bottleneck>,
    /// The link is for every frame. Otherwise frames that keep the network together only have its
    /// delay: what is not IP, IGMP, and its likes in IPv6, neighbor and listener discovery.
    pub every_frame: bool,
    /// Where all randomness comes from.
    pub seed: u64,
}

/// A transmitter with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Bytes of IP packets, which is what links of the simulator are charged.
    pub rate_bytes_per_second: u64,
    /// Bytes that wait, at most, and at most [`FrameLink::ROOM`]. What finds no room is dropped.
    pub queue_bytes: u64,
}

impl Bottleneck {
    /// With a queue that takes `queue` of the transmitter's time when it is full.
    pub fn with_queue_of(queue: Duration, rate_bytes_per_second: u64) -> Self {
        let bytes = u128::from(rate_bytes_per_second) * queue.as_nanos() / 1_000_000_000;
        Self { rate_bytes_per_second, queue_bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }
}

impl RelayConfig {
    /// The two directions, from the first interface to the second one, and back: the same link,
    /// each with the random stream of its number, 0 and 1.
    pub fn links(&self) -> [FrameLink; 2] {
        [0, 1].map(|direction| {
            let link = FrameLink::new(self.link(), SplitMix64::new(self.seed, direction));
            if self.every_frame { link.for_every_frame() } else { link }
        })
    }

    fn link(&self) -> LinkConfig {
        let queue_bytes = self.bottleneck.map_or(u64::MAX, |bottleneck| bottleneck.queue_bytes);
        LinkConfig {
            rate_bytes_per_second: self.bottleneck.map(|b| b.rate_bytes_per_second),
            queue: QueueLength::Bytes(queue_bytes.min(FrameLink::ROOM as u64)),
            delay: self.delay,
            jitter: self.jitter,
            loss: self.loss.clone(),
            ..LinkConfig::default()
        }
    }
}

/// What has become of the frames of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// What became of the frames on the link.
    pub frames: FrameLinkStats,
    /// Sent out of the other interface.
    pub delivered: u64,
    /// Not taken by it.
    pub refused: u64,
    /// Lost before the relay saw them: it was too slow.
    pub missed: u64,
    /// By how much a frame was sent later than the link says, at most.
    pub latest: Duration,
}

impl DirectionStats {
    /// Frames that the relay itself has lost: those are no losses of the link.
    pub const fn lost_here(&self) -> u64 {
        self.frames.overflow + self.refused + self.missed
    }
}

/// Two interfaces with a link between them.
#[derive(Debug)]
pub struct Relay {
    ports: [FrameSocket; 2],
    /// From the port of the same number to the other one.
    links: [FrameLink; 2],
    stats: [DirectionStats; 2],
    clock: Clock,
}

impl Relay {
    /// Opens both interfaces, with a link from the first to the second one and one back. Frames that
    /// arrive from now on are relayed as soon as it [runs](Self::run).
    ///
    /// # Errors
    /// The process has not the rights, or one of them is down.
    pub fn open(between: [&Interface; 2], links: [FrameLink; 2]) -> Result<Self, FrameError> {
        let [a, b] = between;
        Ok(Self {
            ports: [FrameSocket::open(a)?, FrameSocket::open(b)?],
            links,
            stats: [DirectionStats::default(); 2],
            clock: Clock::start(),
        })
    }

    /// Relays on the calling thread until `is_stopped`, which is asked ten times a second at least.
    ///
    /// # Errors
    /// One of the interfaces went down.
    pub fn run(&mut self, is_stopped: impl Fn() -> bool) -> Result<(), FrameError> {
        clock::wake_promptly();
        while !is_stopped() {
            for from in 0..2 {
                self.deliver(from)?;
                self.take(from)?;
            }
            self.wait();
        }
        Ok(())
    }

    /// From the first interface to the second one, and back.
    pub fn stats(&self) -> [DirectionStats; 2] {
        [0, 1].map(|from| DirectionStats {
            frames: self.links[from].stats(),
            missed: self.ports[from].drops(),
            ..self.stats[from]
        })
    }

    /// Sends what has arrived at the far end.
    fn deliver(&mut self, from: usize) -> Result<(), FrameError> {
        let (link, stats) = (&mut self.links[from], &mut self.stats[from]);
        loop {
            let now = Instant::from_nanos(self.clock.now_nanos());
            let Some(DueEvent { at, event: frame }) = link.poll(now) else { return Ok(()) };
            let taken = self.ports[1 - from].send(&frame)?;
            *(if taken { &mut stats.delivered } else { &mut stats.refused }) += 1;
            stats.latest = stats.latest.max(now.saturating_since(at));
        }
    }

    /// Puts what has come on the link.
    fn take(&mut self, from: usize) -> Result<(), FrameError> {
        for _ in 0..AT_A_TIME {
            let Some(frame) = self.ports[from].recv()? else { break };
            self.links[from].offer(Instant::from_nanos(self.clock.now_nanos()), frame);
        }
        Ok(())
    }

    /// Until something comes or arrives.
    fn wait(&self) {
        let next = self.links.iter().filter_map(FrameLink::next_at).min();
        let remaining = next.map_or(ATTENTION, |at| self.clock.until(at.as_nanos()));
        if FrameSocket::wait(&self.ports, remaining.min(ATTENTION)).is_err() {
            // Out of memory for a moment. Not a loop that spins until there is some.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
