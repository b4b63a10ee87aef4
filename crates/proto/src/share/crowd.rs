//! The other members: how many there are, how far, and how long to wait for them.

use crate::random::SplitMix64;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Members that are remembered. More of them change a wait by less than a tenth.
const MOST_MEMBERS: usize = 1_024;
/// Time after which a member that is silent is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Time in which half of what is known of round trips and reads is forgotten.
const HALVED_AFTER: Duration = Duration::from_secs(5);
/// Round trips below this count as this: a process does not answer at once.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(4);
/// Round trips above this count as this: any host can claim one.
const MOST_ROUND_TRIP: Duration = Duration::from_millis(200);
/// The first guess of a round trip: within a network.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(40);
/// The shortest pause of answers, and how many round trips it has, and times in which a block is
/// read and solved.
const LEAST_PAUSE: Duration = Duration::from_millis(200);
const ROUND_TRIPS_OF_PAUSE: u32 = 6;
const READS_OF_PAUSE: u32 = 2;
/// Reads above this count as this.
const MOST_READ: Duration = Duration::from_millis(500);
/// SRM's constants, in distances, which are half of a round trip: a request waits C1 to C1 + C2, an
/// answer D1 to D1 + D2 log2 of the number of members. C and D1 are those of ns-2; the logarithm is
/// that of the paper for members at equal distances (section 3.2, with base 10).
const C1: f64 = 2.0;
const C2: f64 = 2.0;
const D1: f64 = 1.0;
const D2: f64 = 1.0;

/// Others that send less than this part of what a member sends do not count as answering.
const SLOW: f64 = 8.0;

/// Symbols of a block that others have sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    first: Option<Instant>,
    count: u32,
}

impl Heard {
    /// Another one has arrived.
    pub(super) fn add(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.count = self.count.saturating_add(1);
    }

    /// The time since the first one.
    pub(super) fn time(&self, now: Instant) -> Duration {
        self.first.map_or(Duration::ZERO, |first| now.saturating_since(first))
    }

    /// Whether they come as fast as members send, which is so many in a second.
    pub(super) fn has_pace(&self, now: Instant, pace: f64) -> bool {
        self.count > 1 && f64::from(self.count) > pace * self.time(now).as_secs_f64() / SLOW
    }
}

#[derive(Debug)]
pub(super) struct Crowd {
    heard: BTreeMap<u32, Instant>,
    /// The longest round trip of late.
    round_trip: Duration,
    /// The longest time of late in which a block was read and solved, here or elsewhere.
    read: Duration,
    forgot_at: Instant,
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            heard: BTreeMap::new(),
            round_trip: FIRST_ROUND_TRIP,
            read: Duration::ZERO,
            forgot_at: Instant::ZERO,
        }
    }
}

impl Crowd {
    /// A member has sent a message.
    pub(super) fn on_message(&mut self, now: Instant, member: u32) {
        if self.heard.len() < MOST_MEMBERS || self.heard.contains_key(&member) {
            self.heard.insert(member, now);
        }
    }

    /// Forgets members that are silent, and times above the first guesses, which any host can
    /// claim. They halve in [`HALVED_AFTER`].
    pub(super) fn forget(&mut self, now: Instant) {
        self.heard.retain(|_, &mut at| now < at + FORGOTTEN_AFTER);
        let since = now.saturating_since(std::mem::replace(&mut self.forgot_at, now));
        let left = 0.5_f64.powf(since.as_secs_f64() / HALVED_AFTER.as_secs_f64());
        let above = self.round_trip.saturating_sub(FIRST_ROUND_TRIP);
        self.round_trip = self.round_trip - above + above.mul_f64(left);
        self.read = self.read.mul_f64(left);
    }

    /// Other members.
    pub(super) fn count(&self) -> u32 {
        self.heard.len() as u32
    }

    /// A member has measured its round trip. What is heard of others decides as well, but is
    /// forgotten.
    pub(super) fn on_measured(&mut self, round_trip: Duration) {
        self.follow(round_trip, 16);
    }

    /// Another member has said what the longest round trip and read are that it knows of.
    pub(super) fn on_others(&mut self, round_trip: Duration, read: Duration) {
        self.follow(round_trip, 64);
        self.read = followed(self.read, read.min(MOST_READ), 64);
    }

    /// A block was read and solved in this time.
    pub(super) fn on_read(&mut self, time: Duration) {
        self.read = followed(self.read, time.min(MOST_READ), 16);
    }

    fn follow(&mut self, round_trip: Duration, part: u32) {
        let round_trip = round_trip.clamp(LEAST_ROUND_TRIP, MOST_ROUND_TRIP);
        self.round_trip = followed(self.round_trip, round_trip, part);
    }

    /// The longest time of late in which a block was read and solved.
    pub(super) fn read(&self) -> Duration {
        self.read
    }

    /// The longest round trip of late.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// A pause of answers, after which a member asks again, or another one answers. It is longer
    /// than a member takes to read a block and to solve it. The round trip tells how busy hosts
    /// are.
    pub(super) fn pause(&self) -> Duration {
        let reads = self.read * READS_OF_PAUSE;
        LEAST_PAUSE.max(self.round_trip * ROUND_TRIPS_OF_PAUSE).max(reads)
    }

    /// How long an answer may take to begin. Members with a part of the block leave it for a pause
    /// to those that have all of it.
    pub(super) fn patience(&self, names_symbols: bool) -> Duration {
        if names_symbols { 3 * self.pause() } else { self.pause() }
    }

    /// A random wait before a request.
    pub(super) fn request_wait(&self, random: &mut SplitMix64) -> Duration {
        (self.round_trip / 2).mul_f64(C1 + C2 * random.unit())
    }

    /// A random wait before an answer.
    pub(super) fn answer_wait(&self, random: &mut SplitMix64) -> Duration {
        let members = f64::from((self.count() + 2).ilog2());
        (self.round_trip / 2).mul_f64(D1 + D2 * members * random.unit())
    }
}

/// An estimate that rises to a measurement at once, and falls by a part of the difference.
fn followed(before: Duration, now: Duration, part: u32) -> Duration {
    match before.checked_sub(now) {
        Some(above) => before - above / part,
        None => now,
    }
}
