//! An honest mirror beside others that do whatever a script says: what the receiver has learned of
//! them must not keep it from completing, once they are silent.

use super::source::Source;
use super::tests::{NO_CODE, Reception, SYMBOL, TORNADO, status};
use super::*;
use crate::web::failure::MirrorFailure as Failure;
use fontana_proto::ReceiverLimits;
use fontana_testing::Script;

/// The mirrors that a script plays. The honest one is the last.
const STRANGERS: usize = 2;
/// Longest silence before the thread of a mirror gives a request up.
const SILENCE: Duration = Duration::from_secs(10);
/// Virtual time in which the honest mirror brings everything, once the others are silent.
const LIVE_WITHIN: Duration = Duration::from_secs(30);

struct Play {
    reception: Reception,
    /// The order that each mirror has.
    orders: Vec<Option<Given>>,
}

/// An order, as the thread of a mirror carries it out.
struct Given {
    order: Order,
    since: Instant,
    /// The next byte of the file that its server sends.
    at: usize,
    end: usize,
}

impl Given {
    fn new(order: Order, since: Instant) -> Self {
        let (at, end) = match &order {
            Order::File { .. } => (0, 0),
            Order::Fetch(fetch) => (fetch.bytes.start as usize, fetch.bytes.end as usize),
        };
        Self { order, since, at, end }
    }
}

impl Play {
    fn new(scheme: fontana_fec::FecScheme) -> Self {
        let reception = Reception::new(STRANGERS + 1, scheme, ReceiverLimits::default());
        Self { reception, orders: (0..=STRANGERS).map(|_| None).collect() }
    }

    fn drive(&mut self, time: Duration) {
        self.reception.drive_after(time);
        let now = self.reception.now;
        for (order, queue) in self.orders.iter_mut().zip(&self.reception.orders) {
            if let Ok(next) = queue.try_recv() {
                assert!(order.is_none(), "an order before the last one has ended");
                *order = Some(Given::new(next, now));
            }
        }
    }

    /// Whether the answer to a mirror's order is not needed any more.
    fn is_cut(&self, mirror: usize) -> bool {
        self.reception.mirrors.mirrors[mirror].need.left() == 0
    }

    fn end(&mut self, mirror: usize, what: Done) {
        self.orders[mirror] = None;
        self.reception.report(mirror, what);
    }

    /// The server of a mirror sends the next symbols that were requested of it, after `change`. The
    /// order ends with its last byte.
    fn send(&mut self, mirror: usize, symbols: usize, change: impl FnOnce(&mut [u8])) {
        let Some(given) = &mut self.orders[mirror] else { return };
        let part = given.at..given.end.min(given.at + symbols * SYMBOL);
        let is_last = part.end == given.end;
        given.at = part.end;
        let mut bytes = self.reception.file[part.clone()].to_vec();
        change(&mut bytes);
        if !bytes.is_empty() {
            self.reception.report(mirror, Done::Bytes { at: part.start as u64, bytes });
        }
        if is_last || self.is_cut(mirror) {
            self.end(mirror, Done::Ended);
        }
    }

    /// The honest mirror carries out its order.
    fn be_honest(&mut self) {
        match self.orders[STRANGERS].as_ref().map(|given| &given.order) {
            // It has no shelf.
            Some(Order::File { path, .. }) => {
                let (path, what) = (path.to_string(), String::new());
                let failure = Failure::Status { path, status: 404, what, retry_after: None };
                self.end(STRANGERS, Done::Failed(failure));
            }
            Some(Order::Fetch(_)) if self.is_cut(STRANGERS) => self.end(STRANGERS, Done::Ended),
            Some(Order::Fetch(_)) => self.send(STRANGERS, usize::MAX / SYMBOL / 2, |_| ()),
            None => {}
        }
    }

    /// A stranger does something with its order.
    fn be_strange(&mut self, mirror: usize, script: &mut Script<'_>) {
        let Some(given) = &self.orders[mirror] else { return };
        let symbols = usize::from(script.below(40));
        let what = script.below(12);
        if let Order::File { .. } = given.order {
            let bytes = script.take(symbols);
            match what {
                0..4 => self.end(mirror, Done::File(bytes, None)),
                _ => self.end(mirror, Done::Failed(failure(script))),
            }
            return;
        }
        match what {
            0..4 => self.send(mirror, symbols, |_| ()),
            4..6 => self.send(mirror, symbols, |bytes| {
                let at = usize::from(script.u8()) % bytes.len().max(1);
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1);
            }),
            6 => self.send(mirror, symbols, |bytes| bytes.fill(0)),
            7 if script.once_in(2) => self.send_whole(mirror),
            7 => self.lack(mirror, symbols, script),
            8..11 => self.end(mirror, Done::Failed(failure(script))),
            _ if self.is_cut(mirror) => self.end(mirror, Done::Ended),
            _ => {}
        }
    }

    /// The server lacks some bytes, and sends parts of symbols around them.
    fn lack(&mut self, mirror: usize, symbols: usize, script: &mut Script<'_>) {
        let Some(given) = &mut self.orders[mirror] else { return };
        let at = given.at as u64;
        let end = given.end.min(given.at + symbols * SYMBOL + 7);
        given.at = end.next_multiple_of(SYMBOL).min(given.end);
        let (bytes, is_last) = (at..end as u64, given.at == given.end);
        let failure = status(404, None);
        self.reception.report(mirror, Done::Missing { bytes, failure });
        let length = script.below(SYMBOL as u8);
        let part = script.take(length.into());
        if !part.is_empty() {
            let at = end as u64;
            self.reception.report(mirror, Done::Part { at, bytes: part });
        }
        if is_last {
            self.end(mirror, Done::Ended);
        }
    }

    /// The server knows no ranges: it sends the file from its beginning.
    fn send_whole(&mut self, mirror: usize) {
        self.reception.report(mirror, Done::Sequential);
        let length = self.reception.file.len();
        if let Some(given) = &mut self.orders[mirror] {
            let needed = (length - given.at) as u64;
            (given.at, given.end) = (0, length);
            self.reception.mirrors.mirrors[mirror].need.set(needed);
        }
    }

    /// What the receiver waits for, in words.
    fn state(&self) -> String {
        let Mirrors { doubtful, mirrors, common, .. } = &self.reception.mirrors;
        let Common { wholes, pull, .. } = common;
        let of = |mirror: &MirrorState| {
            let MirrorState { source, work, retries_at, dropped, .. } = mirror;
            format!("{source:?}, {work:?}, {retries_at:?}, {dropped:?}")
        };
        let mirrors: Vec<_> = mirrors.iter().map(of).collect();
        let lacking: Vec<_> = pull.lacking().iter().collect();
        format!("{:?}: {mirrors:#?}, {lacking:?}, {wholes:?}, {doubtful:?}", self.reception.now)
    }

    /// Strangers are silent. Their threads give up what they have been asked for.
    fn be_silent(&mut self) {
        for mirror in 0..STRANGERS {
            let now = self.reception.now;
            let Some(given) = &self.orders[mirror] else { continue };
            if self.is_cut(mirror) {
                self.end(mirror, Done::Ended);
            } else if now.saturating_since(given.since) >= SILENCE {
                self.end(mirror, Done::Failed(Failure::Silent(SILENCE)));
            }
        }
    }
}

/// Any failure of a request.
fn failure(script: &mut Script<'_>) -> Failure {
    let path = || "file".to_owned();
    match script.below(12) {
        0 => Failure::Connection("refused".into()),
        1 => Failure::Silent(SILENCE),
        2 => Failure::Drip,
        3 => status(503, Some(Duration::from_secs(script.u64()))),
        4 => status(404, None),
        5 => Failure::Range { path: path(), what: "another".into() },
        6 => Failure::Certificate("expired".into()),
        7 => Failure::Redirect { path: path(), what: "has no address" },
        8 => Failure::Rebound,
        9 => Failure::NoAddress { path: path() },
        _ => Failure::Cut,
    }
}

/// Plays a script, and then waits until the honest mirror has completed the reception.
fn play(input: &[u8]) {
    let mut script = Script::new(input);
    let mut play = Play::new(if script.once_in(2) { NO_CODE } else { TORNADO });
    for mirror in 0..STRANGERS {
        // Their first requests have been answered, or not.
        if script.once_in(2) {
            play.reception.mirrors.mirrors[mirror].source = Source::Unknown;
        }
    }
    // Nothing is known of the honest mirror either.
    play.reception.mirrors.mirrors[STRANGERS].source = Source::Unknown;
    for _ in 0..Script::STEPS {
        let time = Duration::from_millis(u64::from(script.u16()) % 2_000);
        play.drive(time);
        let mirror = usize::from(script.below(STRANGERS as u8));
        play.be_strange(mirror, &mut script);
    }
    let silent_since = play.reception.now;
    while !play.reception.is_complete {
        play.drive(Duration::from_millis(200));
        play.be_silent();
        play.be_honest();
        let waited = play.reception.now.saturating_since(silent_since);
        assert!(waited < LIVE_WITHIN, "not complete: {}", play.state());
    }
    assert!(play.reception.reports()[STRANGERS].dropped.is_none());
}

#[test]
fn an_honest_mirror_completes_a_reception_whatever_the_others_did() {
    // Symbols of an earlier request among those of a block that another mirror sends as a whole;
    // such a block of a mirror that was dropped at its end; and two that are silent, and take over
    // a request from each other, beside one that has answered in no time, or was never asked.
    let silent = [
        0x00, 0x46, 0xbb, 0x00, 0xe9, 0x52, 0x5a, 0xf7, 0xa5, 0x3e, 0xcb, 0xf2, 0x05, 0xab, 0x6f,
        0x23, 0x6e, 0x48, 0x2f, 0xc9, 0x26, 0x83, 0x5a, 0x3c, 0x7d, 0xd3, 0x18, 0x9a, 0xeb, 0x69,
        0xe1,
    ];
    let not_asked = [
        0xe1, 0x87, 0x7b, 0xce, 0xec, 0x91, 0x7b, 0x95, 0x35, 0xa2, 0x9f, 0xeb, 0x78, 0x3c, 0x73,
        0xb0, 0x9a,
    ];
    let known = [&[0x0b, 0, 9, 0x0c, 0x0d, 0x7a][..], &[0x21, 0xad], &silent, &not_asked];
    known.into_iter().for_each(play);
    bolero::check!().with_iterations(2_000).for_each(play);
}

/// No number of failures ends a reception: the only mirror is asked again, each time after half a
/// minute at most.
#[test]
fn the_only_mirror_is_asked_again_whatever_it_has_answered() {
    let failures = [
        Failure::Connection("refused".into()),
        Failure::Silent(SILENCE),
        Failure::Drip,
        Failure::Certificate("expired".into()),
        Failure::Rebound,
        Failure::Far,
        status(408, None),
        status(429, Some(Duration::from_secs(20))),
        status(500, None),
        status(503, None),
        status(503, Some(Duration::ZERO)),
        status(503, Some(Duration::MAX)),
    ];
    for failure in failures {
        let mut play = Play::new(NO_CODE);
        play.reception.mirrors.has_group = false;
        // Alone.
        for mirror in 0..STRANGERS {
            let failure = Failure::Wrong(2);
            play.reception.mirrors.drop_mirror(play.reception.now, mirror, failure, None);
        }
        play.reception.mirrors.take_events();
        for _ in 0..100 {
            let since = play.reception.now;
            while play.orders[STRANGERS].is_none() {
                play.drive(Duration::from_millis(500));
            }
            let waited = play.reception.now.saturating_since(since);
            assert!(waited <= Duration::from_secs(31), "{failure}: {waited:?}");
            play.end(STRANGERS, Done::Failed(failure.clone()));
        }
        let events = play.reception.mirrors.take_events();
        assert_eq!(events.len(), 1, "it is told once: {events:?}");
        let since = play.reception.now;
        while !play.reception.is_complete {
            play.drive(Duration::from_millis(500));
            play.be_honest();
            let waited = play.reception.now.saturating_since(since);
            assert!(waited < Duration::from_secs(31) + LIVE_WITHIN, "after {failure}");
        }
    }
}
