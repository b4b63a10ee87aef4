//! Listens for the probes of other hosts.

use super::counts::Counts;
use super::place::Place;
use fontana::CancellationToken;
use fontana::net::{Batch, ReceiveConfig, ReceiveSocket};
use std::time::{Duration, Instant};

/// How long it waits for the first probe: as for an IGMP querier, a wait that users accept. A
/// sender pauses for milliseconds, and a switch takes less than a second to learn of a member.
const WAIT: Duration = Duration::from_secs(3);

/// How long it listens from the first probe on, at most: three cycles.
const ENOUGH: Duration = Duration::from_secs(13);

/// How often it looks whether to end.
const TICK: Duration = Duration::from_millis(100);

/// What arrived, and in which time.
pub(super) struct Listened {
    pub(super) counts: Counts,
    pub(super) time: Duration,
}

/// Listens for this time, or until whole steps of all kinds have arrived, or until `stop`.
pub(super) fn listen(
    place: &Place,
    limit: Option<Duration>,
    stop: &CancellationToken,
) -> Result<Listened, String> {
    let config = ReceiveConfig::multicast(place.group.ip(), place.group.port(), &place.interface);
    let mut socket = ReceiveSocket::open(&config).map_err(|error| error.to_string())?;
    let (mut batch, mut counts, mut dropped) = (Batch::default(), Counts::default(), 0);
    let started = Instant::now();
    loop {
        let time = started.elapsed();
        if stop.is_cancelled() || is_over(&counts, time, limit) {
            return Ok(Listened { counts, time });
        }
        socket.recv_batch(TICK, &mut batch).map_err(|error| error.to_string())?;
        for (datagram, payload) in batch.iter() {
            counts.take(datagram.from.ip(), payload, started.elapsed());
        }
        let now = socket.drops();
        counts.drop(now - dropped);
        dropped = now;
    }
}

fn is_over(counts: &Counts, time: Duration, limit: Option<Duration>) -> bool {
    match (limit, counts.first()) {
        (Some(limit), _) => time >= limit,
        (None, None) => time >= WAIT,
        (None, Some(first)) => counts.is_complete() || time >= first + ENOUGH,
    }
}
