//! How long each name has been unchanged, and when a version is due.

use fontana_store::{Found, Identity, Timestamp, Tree};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Names, in raw bytes, and their states.
pub(super) type States = BTreeMap<Vec<u8>, State>;

/// Everything that distinguishes two states of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    File(Identity),
    Directory(u32, Timestamp),
    Link(Vec<u8>),
}

impl State {
    /// The states of the entries of a tree.
    pub(super) fn of(tree: &Tree) -> States {
        let states = tree.entries.iter().filter_map(|entry| {
            let state = match &entry.found {
                Found::File(index) => Self::File(tree.files.file(*index).ok()?.identity()),
                Found::Directory { mode, modified } => Self::Directory(*mode, *modified),
                Found::Link { leads_to } => Self::Link(leads_to.clone()),
            };
            Some((entry.name.clone(), state))
        });
        states.collect()
    }

    /// The time of the last change, by the clock that wrote it, if the state contains it.
    fn changed(&self) -> Option<SystemTime> {
        let time = match self {
            Self::File(identity) => identity.changed,
            Self::Directory(_, modified) => *modified,
            Self::Link(_) => return None,
        };
        let seconds = u64::try_from(time.seconds).ok()?;
        UNIX_EPOCH.checked_add(Duration::new(seconds, time.nanoseconds))
    }
}

/// A name that exists, or has vanished not long ago.
#[derive(Clone, Debug)]
struct Name {
    /// `None` if it has vanished.
    state: Option<State>,
    /// When it got this state.
    since: Instant,
    /// When it was last unchanged for the settling time, or appeared.
    moving_since: Instant,
    /// A version was made, or found unnecessary, while it changed.
    is_considered: bool,
}

/// A moment, by two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) clock: SystemTime,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { instant: Instant::now(), clock: SystemTime::now() }
    }
}

/// The names of a publisher, and since when each is unchanged.
#[derive(Debug)]
pub(super) struct Settling {
    settle: Duration,
    started: Instant,
    names: BTreeMap<Vec<u8>, Name>,
    /// When the names were last observed.
    observed: Option<SystemTime>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A version is due.
    Prepare,
    /// None is due before then, unless something changes; without a limit if `None`.
    Wait(Option<Instant>),
}

impl Settling {
    pub(super) fn new(settle: Duration, started: Instant) -> Self {
        Self { settle, started, names: BTreeMap::new(), observed: None }
    }

    /// Compares the present states with those observed before. `is_prompt`: changes are observed
    /// when they are reported. Their times are then those of the files; otherwise, the clock of the
    /// files may be another host's, and a change counts from now on.
    pub(super) fn observe(&mut self, states: States, now: Moment, is_prompt: bool) {
        let settle = self.settle;
        let changed_at = |state: Option<&State>| match self.observed {
            Some(_) if !is_prompt => now.instant,
            last => {
                let time = state.and_then(State::changed).unwrap_or(now.clock);
                // Not before the last observation, which saw another state.
                let time = last.map_or(time, |last| time.max(last));
                let age = now.clock.duration_since(time).unwrap_or_default();
                now.instant.checked_sub(age.min(settle)).unwrap_or(now.instant)
            }
        };
        for (path, name) in &mut self.names {
            if name.state.is_some() && !states.contains_key(path) {
                name.change(None, changed_at(None), settle);
            }
        }
        for (path, state) in states {
            let since = changed_at(Some(&state));
            match self.names.get_mut(&path) {
                Some(name) if name.state.as_ref() == Some(&state) => {}
                Some(name) => name.change(Some(state), since, settle),
                None => {
                    let state = Some(state);
                    let new = Name { state, since, moving_since: since, is_considered: false };
                    self.names.insert(path, new);
                }
            }
        }
        self.names.retain(|_, name| name.state.is_some() || !name.is_settled(now.instant, settle));
        self.observed = Some(now.clock);
    }

    /// Whether a name is unchanged for the settling time. One that is unknown has vanished.
    pub(super) fn is_settled(&self, name: &[u8], now: Instant) -> bool {
        self.names.get(name).is_none_or(|name| name.is_settled(now, self.settle))
    }

    /// The names that have vanished not long ago.
    pub(super) fn vanished(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.names.iter().filter(|(_, name)| name.state.is_none()).map(|(path, _)| path)
    }

    /// The names of files and links that change, and for how long they have done so.
    pub(super) fn moving(&self, now: Instant) -> impl Iterator<Item = (&Vec<u8>, Duration)> {
        let is_content = |name: &Name| matches!(name.state, Some(State::File(_) | State::Link(_)));
        self.names
            .iter()
            .filter(move |(_, name)| is_content(name) && !name.is_settled(now, self.settle))
            .map(move |(path, name)| (path, now.saturating_duration_since(name.moving_since)))
    }

    /// What is to be done after the version that contained `sent`; `None` before the first one.
    ///
    /// A version is due when a name that has changed since is settled, or a name that is in it has
    /// changed for the settling time. It waits for other names that began to change since, but no
    /// longer than the settling time.
    pub(super) fn next(&self, sent: Option<&States>, now: Instant) -> Next {
        let (mut due, mut wait_for, mut wake) = (None, None, None);
        if sent.is_none() {
            due = Some(self.started);
        }
        for (path, name) in &self.names {
            let settles = name.since + self.settle;
            let before = sent.and_then(|sent| sent.get(path));
            if settles <= now {
                if sent.is_some() && before != name.state.as_ref() {
                    due = earliest(due, Some(settles));
                }
                continue;
            }
            wake = earliest(wake, Some(settles));
            let patience = name.moving_since + self.settle;
            if patience > now {
                wait_for = earliest(wait_for, Some(settles));
                wake = earliest(wake, Some(patience));
            } else if before.is_some() && before != name.state.as_ref() && !name.is_considered {
                due = earliest(due, Some(patience));
            }
        }
        let mut has_vanished = sent.into_iter().flat_map(States::keys);
        if has_vanished.any(|path| !self.names.contains_key(path)) {
            due = earliest(due, Some(now));
        }
        match due {
            Some(due) if wait_for.is_none() || due + self.settle <= now => Next::Prepare,
            Some(due) => Next::Wait(earliest(wake, Some(due + self.settle))),
            None => Next::Wait(wake),
        }
    }

    /// Records that what changes was considered for a version.
    pub(super) fn consider(&mut self) {
        self.names.values_mut().for_each(|name| name.is_considered = true);
    }
}

impl Name {
    fn is_settled(&self, now: Instant, settle: Duration) -> bool {
        self.since + settle <= now
    }

    fn change(&mut self, state: Option<State>, since: Instant, settle: Duration) {
        if self.is_settled(since, settle) {
            (self.moving_since, self.is_considered) = (since, false);
        }
        (self.state, self.since) = (state, since);
    }
}

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(2);

    /// Names with sizes that are observed at given times, in milliseconds.
    struct Scene {
        start: Moment,
        settling: Settling,
        sent: Option<States>,
    }

    impl Scene {
        fn new() -> Self {
            let start = Moment { instant: Instant::now() + 10 * SETTLE, clock: SystemTime::now() };
            Self { start, settling: Settling::new(SETTLE, start.instant), sent: None }
        }

        fn at(&self, time: u64) -> Moment {
            let time = Duration::from_millis(time);
            Moment { instant: self.start.instant + time, clock: self.start.clock + time }
        }

        fn state(&self, size: u64, changed: u64) -> State {
            let changed = self.at(changed).clock.duration_since(UNIX_EPOCH).unwrap();
            let changed = Timestamp {
                seconds: changed.as_secs() as i64,
                nanoseconds: changed.subsec_nanos(),
            };
            State::File(Identity { inode: (0, 1), size, modified: changed, changed })
        }

        fn states(&self, files: &[(&str, u64, u64)]) -> States {
            let state = |&(name, size, changed): &(&str, u64, u64)| {
                (name.as_bytes().to_vec(), self.state(size, changed))
            };
            files.iter().map(state).collect()
        }

        /// Observes files, with their sizes and the times at which they were written.
        fn observe(&mut self, time: u64, files: &[(&str, u64, u64)]) {
            let (states, now) = (self.states(files), self.at(time));
            self.settling.observe(states, now, true);
        }

        fn send(&mut self, files: &[(&str, u64, u64)]) {
            self.sent = Some(self.states(files));
            self.settling.consider();
        }

        /// The time until which nothing is to be done; `None` if a version is due.
        fn next(&self, time: u64) -> Option<u64> {
            match self.settling.next(self.sent.as_ref(), self.at(time).instant) {
                Next::Prepare => None,
                Next::Wait(until) => Some(until.map_or(u64::MAX, |until| {
                    until.saturating_duration_since(self.start.instant).as_millis() as u64
                })),
            }
        }
    }

    #[test]
    fn a_version_is_due_when_a_change_has_settled_and_none_after_it() {
        let mut scene = Scene::new();
        scene.observe(0, &[("a", 1, 0)]);
        assert_eq!(scene.next(0), Some(2_000));
        assert_eq!(scene.next(2_000), None);
        scene.send(&[("a", 1, 0)]);
        assert_eq!(scene.next(2_000), Some(u64::MAX));
        // Observed late, it counts from when it was written.
        scene.observe(5_200, &[("a", 1, 0), ("b", 1, 5_000)]);
        assert_eq!(scene.next(5_200), Some(7_000));
        assert_eq!(scene.next(7_000), None);
    }

    #[test]
    fn files_that_are_old_at_the_start_are_settled() {
        let mut scene = Scene::new();
        let old = scene.at(0).clock.duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 - 60;
        let time = Timestamp { seconds: old, nanoseconds: 0 };
        let identity = Identity { inode: (0, 1), size: 1, modified: time, changed: time };
        let states = [(b"a".to_vec(), State::File(identity))].into();
        let now = scene.at(0);
        scene.settling.observe(states, now, true);
        assert_eq!(scene.next(0), None);
    }

    #[test]
    fn a_file_that_always_changes_does_not_delay_others() {
        let mut scene = Scene::new();
        scene.observe(0, &[("a", 1, 0), ("log", 1, 0)]);
        scene.send(&[("a", 1, 0), ("log", 1, 0)]);
        let mut due = Vec::new();
        for step in 0..40 {
            let time = 10_000 + step * 500;
            // `a` is written once, at 20 s.
            let a = if time >= 20_000 { ("a", 2, 20_000) } else { ("a", 1, 0) };
            scene.observe(time, &[a, ("log", 2 + step, time)]);
            if scene.next(time).is_none() {
                due.push(time);
                scene.send(&[a, ("log", 1, 0)]);
            }
        }
        // The log itself once, as it may have to be left out, and the other file.
        assert_eq!(due, [12_000, 22_000]);
    }

    #[test]
    fn changes_that_follow_each_other_are_one_version_within_limits() {
        let mut scene = Scene::new();
        scene.observe(0, &[]);
        scene.send(&[]);
        scene.observe(10_000, &[("a", 1, 10_000)]);
        scene.observe(11_500, &[("a", 1, 10_000), ("b", 1, 11_500)]);
        assert_eq!(scene.next(12_000), Some(13_500));
        assert_eq!(scene.next(13_500), None);
        // New files without end: a version each settling time.
        scene.observe(13_000, &[("a", 1, 10_000), ("b", 1, 11_500), ("c", 1, 13_000)]);
        assert_eq!(scene.next(13_900), Some(14_000));
        assert_eq!(scene.next(14_000), None);
    }

    #[test]
    fn a_name_has_vanished_when_it_stays_away() {
        let mut scene = Scene::new();
        scene.observe(0, &[("a", 1, 0), ("b", 1, 0)]);
        scene.send(&[("a", 1, 0), ("b", 1, 0)]);
        scene.observe(10_000, &[("b", 1, 0)]);
        assert!(scene.settling.vanished().eq([b"a"]));
        assert!(!scene.settling.is_settled(b"a", scene.at(11_000).instant));
        scene.observe(11_000, &[("a", 1, 0), ("b", 1, 0)]);
        assert_eq!(scene.next(13_100), Some(u64::MAX));
        scene.observe(14_000, &[("b", 1, 0)]);
        assert_eq!(scene.next(15_000), Some(16_000));
        scene.observe(16_100, &[("b", 1, 0)]);
        assert_eq!(scene.next(16_100), None);
        scene.send(&[("b", 1, 0)]);
        assert_eq!(scene.next(16_200), Some(u64::MAX));
    }
}
