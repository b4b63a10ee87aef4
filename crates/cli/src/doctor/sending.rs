//! Sends probes to their group, with TTL 1 and nowhere else.

use super::place::Place;
use super::probe::{Cycle, Probe, Step};
use fontana::CancellationToken;
use fontana::net::doctor::{Finding, Verdict};
use fontana::net::{ChannelAddress, IpVersion, SendConfig, SendError, SendSocket};
use fontana_console::units::{Count, Time};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How often it looks which probes are due.
const TICK: Duration = Duration::from_millis(1);

/// Largest number of probes that leave at once, if the system did not run this thread in time.
const MAX_BURST: u32 = 32;

/// A share of probes that did not leave this host of which the other host hears too little.
const TOO_MANY_LOST: f64 = 0.005;

/// Steps that take longer than this factor were not sent at their rate.
const TOO_SLOW: f64 = 1.2;

/// What was sent.
pub(super) struct Sent {
    pub(super) finding: Finding,
    /// Nearly all probes have left this host.
    pub(super) is_good: bool,
}

/// Sends for this time, or until `stop`.
pub(super) fn send(place: &Place, limit: Duration, stop: &CancellationToken) -> Sent {
    let subject = format!("probes to {} on {}", place.group, place.interface.name);
    let result = Sending::new(place).and_then(|mut sending| {
        let started = Instant::now();
        sending.run(started, limit, stop).map_err(|error| error.to_string())?;
        Ok(sending.finding(started.elapsed()))
    });
    let (verdict, text) = result.unwrap_or_else(|error| (Verdict::Bad, error));
    let finding = Finding { subject, verdict, text, remedy: None };
    Sent { finding, is_good: verdict == Verdict::Good }
}

struct Sending {
    socket: SendSocket,
    cycle: Cycle,
    run: u64,
    /// The largest factor by which a step took longer than it should.
    slowest: f64,
    buffer: Vec<u8>,
}

impl Sending {
    fn new(place: &Place) -> Result<Self, String> {
        let interface = &place.interface;
        let header = IpVersion::of(place.group.ip()).header_size();
        let payload = (interface.mtu as usize).saturating_sub(header);
        let cycle = Cycle::of(payload, interface.bits_per_second())
            .ok_or_else(|| format!("no probe fits the MTU of {} bytes", interface.mtu))?;
        let to = ChannelAddress::Multicast(place.group);
        let mut config = SendConfig::new(interface, vec![to]);
        // A doctor on this host is no other host.
        config.loopback = false;
        config.offload = false;
        let socket = SendSocket::new(&config).map_err(|error| error.to_string())?;
        let run = RandomState::new().hash_one(0_u8);
        Ok(Self { socket, cycle, run, slowest: 1.0, buffer: Vec::new() })
    }

    fn run(
        &mut self,
        started: Instant,
        limit: Duration,
        stop: &CancellationToken,
    ) -> Result<(), SendError> {
        let is_over = || stop.is_cancelled() || started.elapsed() >= limit;
        for step in 0.. {
            let begun = Instant::now();
            let kind = self.cycle.step(step);
            let (count, pace) = (self.cycle.probes(kind), self.cycle.per_second(kind));
            let mut sent = 0;
            while sent < count {
                if is_over() {
                    return Ok(());
                }
                let due = (begun.elapsed().as_secs_f64() * pace) as u32 + 1;
                let burst = due.min(count).saturating_sub(sent).min(MAX_BURST);
                for index in sent..sent + burst {
                    self.send_one(step, index)?;
                }
                sent += burst;
                std::thread::sleep(TICK);
            }
            if matches!(kind, Step::Rate(_)) {
                let factor = begun.elapsed().as_secs_f64() * pace / f64::from(count);
                self.slowest = self.slowest.max(factor);
            }
        }
        Ok(())
    }

    fn send_one(&mut self, step: u32, index: u32) -> Result<(), SendError> {
        self.buffer.clear();
        Probe { run: self.run, cycle: self.cycle, step, index }.emit(&mut self.buffer);
        self.socket.send_batch(0, &self.buffer, self.buffer.len()).map(drop)
    }

    fn finding(&self, elapsed: Duration) -> (Verdict, String) {
        let sent = self.socket.sent();
        let largest = self.cycle.sizes().last().copied().unwrap_or_default();
        let probes = Count(sent.datagrams, "packet");
        let text = format!("{probes} of at most {largest} bytes sent in {}", Time(elapsed));
        let all = sent.datagrams + sent.lost;
        if sent.lost as f64 > TOO_MANY_LOST * all as f64 {
            let reason = self.socket.first_losses().first();
            let reason = reason.map(|loss| loss.error().to_string()).unwrap_or_default();
            let text = format!("{text}, {} did not leave this host: {reason}", sent.lost);
            let verdict = if sent.datagrams == 0 { Verdict::Bad } else { Verdict::Warning };
            return (verdict, text);
        }
        if self.slowest > TOO_SLOW {
            let slowest = self.slowest;
            let text = format!("{text}, but up to {slowest:.1} times slower than they say");
            return (Verdict::Warning, text);
        }
        (Verdict::Good, text)
    }
}
