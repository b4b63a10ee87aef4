//! A link of the simulator between two real interfaces.
//!
//! An emulator runs in a network namespace or on a host of its own, between two interfaces. It
//! takes each frame that one of them receives, and sends it out of the other one when and if a
//! [`fontana_sim::Link`] delivers it: a queue before a transmitter, and a wire with delay and
//! losses. Each direction has its own random stream. Measurements between real hosts and in
//! simulations therefore use the same link.
//!
//! ```no_run
//! use fontana_lab::emulator::{LossModel, Emulator, EmulatorConfig};
//! use fontana_net::Interfaces;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = EmulatorConfig {
//!     loss: LossModel::markov(0.05, 4.0),
//!     delay: Duration::from_millis(50),
//!     ..EmulatorConfig::default()
//! };
//! let interfaces = Interfaces::list()?;
//! let between = [interfaces.select(&"a".parse()?)?, interfaces.select(&"b".parse()?)?];
//! let mut emulator = Emulator::open(between, config.links())?;
//! emulator.run(|| false)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`FrameLink`] is one direction, a value without a clock. [`Emulator`] adds the sockets and the
//! clock to two of them.

mod frame_link;

pub use fontana_sim::LossModel;
pub use frame_link::{FrameLink, FrameLinkStats};

use fontana_net::{Clock, FrameError, FrameSocket, Interface, clock};
use fontana_proto::{Instant, SplitMix64};
use fontana_sim::{DueEvent, LinkConfig, QueueLength};
use std::time::Duration;

/// Longest wait, so that the emulator notices a request to stop soon.
const ATTENTION: Duration = Duration::from_millis(100);

/// Most frames that are read from an interface before frames that are due are sent: some tens of
/// microseconds of work.
const AT_A_TIME: usize = 32;

/// Configuration of an emulator, the same in both directions. By default it delivers all frames
/// immediately.
#[derive(Clone, Debug, Default)]
pub struct EmulatorConfig {
    /// Losses on the wire.
    pub loss: LossModel,
    /// Delay of the wire, the same for all frames.
    pub delay: Duration,
    /// Mean of an additional, exponentially distributed delay. It does not reorder frames.
    pub jitter: Duration,
    /// The transmitter before the wire; `None` for an infinitely fast one, which has no queue.
    pub bottleneck: Option<Bottleneck>,
    /// Whether the link applies to control frames too: frames other than IP, IGMP, and in IPv6
    /// neighbor and listener discovery. If not, they are only delayed.
    pub every_frame: bool,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A transmitter with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Rate in bytes of IP packets, which the simulator's links count too.
    pub rate_bytes_per_second: u64,
    /// Bytes that wait, at most, and at most [`FrameLink::ROOM`]. What finds no room is dropped.
    pub queue_bytes: u64,
}

impl Bottleneck {
    /// A transmitter with a queue that it sends in `queue` when it is full.
    pub fn with_queue_of(queue: Duration, rate_bytes_per_second: u64) -> Self {
        let bytes = u128::from(rate_bytes_per_second) * queue.as_nanos() / 1_000_000_000;
        Self { rate_bytes_per_second, queue_bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }
}

impl EmulatorConfig {
    /// The two directions, from the first interface to the second one and back. Both have the same
    /// configuration and the random streams 0 and 1.
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

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Counters of the link.
    pub frames: FrameLinkStats,
    /// Frames that were sent out of the other interface.
    pub delivered: u64,
    /// Frames that the other interface refused.
    pub refused: u64,
    /// Frames that were lost before the emulator read them, because it was too slow.
    pub missed: u64,
    /// Longest delay of a frame beyond that of the link.
    pub latest: Duration,
}

impl DirectionStats {
    /// Frames that the emulator lost, in addition to the losses of the link.
    pub const fn lost_here(&self) -> u64 {
        self.frames.overflow + self.refused + self.missed
    }
}

/// Two interfaces with a link between them.
#[derive(Debug)]
pub struct Emulator {
    ports: [FrameSocket; 2],
    /// The link from the port of the same number to the other port.
    links: [FrameLink; 2],
    stats: [DirectionStats; 2],
    clock: Clock,
}

impl Emulator {
    /// Opens both interfaces, with a link from the first to the second one and one back. Frames
    /// that arrive from now on are emulated as soon as it [runs](Self::run).
    ///
    /// # Errors
    /// The process lacks the privilege, or one of the interfaces is down.
    pub fn open(between: [&Interface; 2], links: [FrameLink; 2]) -> Result<Self, FrameError> {
        let [a, b] = between;
        Ok(Self {
            ports: [FrameSocket::open(a)?, FrameSocket::open(b)?],
            links,
            stats: [DirectionStats::default(); 2],
            clock: Clock::start(),
        })
    }

    /// Runs on the calling thread until `is_stopped` returns true. It is called at least ten
    /// times a second.
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

    /// Counters of the direction from the first interface to the second one, and of the other.
    pub fn stats(&self) -> [DirectionStats; 2] {
        [0, 1].map(|from| DirectionStats {
            frames: self.links[from].stats(),
            missed: self.ports[from].drops(),
            ..self.stats[from]
        })
    }

    /// Sends the frames that have arrived at the far end of a link.
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

    /// Reads frames and offers them to their link.
    fn take(&mut self, from: usize) -> Result<(), FrameError> {
        for _ in 0..AT_A_TIME {
            let Some(frame) = self.ports[from].recv()? else { break };
            self.links[from].offer(Instant::from_nanos(self.clock.now_nanos()), frame);
        }
        Ok(())
    }

    /// Waits until an interface receives a frame, or a frame arrives at the end of its link.
    fn wait(&self) {
        let next = self.links.iter().filter_map(FrameLink::next_at).min();
        let remaining = next.map_or(ATTENTION, |at| self.clock.until(at.as_nanos()));
        if FrameSocket::wait(&self.ports, remaining.min(ATTENTION)).is_err() {
            // Out of memory. Wait instead of spinning.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
