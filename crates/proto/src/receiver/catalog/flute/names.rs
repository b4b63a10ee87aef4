//! Files with one name: the later one is a newer version of the earlier one.

use crate::time::Instant;
use fontana_wire::{Toi, parse_content_location};
use std::collections::BTreeMap;
use std::time::Duration;

/// Versions of a file that are received at the same time. The older one goes on until the newer one
/// is complete.
const MAX_VERSIONS: usize = 2;
/// Least time from a version to the one after the next: a sender that names each part of a growing
/// file as a file would replace it all the time.
const LEAST_FOR_TWO: Duration = Duration::from_millis(1500);

/// The names of files that are being received, or were lately.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, Versions>);

/// The versions of a file.
#[derive(Debug)]
struct Versions {
    /// Those that are received: their numbers, ascending, and their TOIs.
    open: BTreeMap<u64, Toi>,
    /// The last version that was announced, and when.
    last: (Toi, Instant),
    /// When the one before it was.
    before: Option<Instant>,
    /// It was refused.
    is_refused: bool,
}

/// What becomes of a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is received.
    Open,
    /// It is received in place of this one.
    InPlaceOf(Toi),
    /// Versions come too often: it is refused.
    TooMany,
    /// Versions still come too often.
    StillTooMany,
}

/// The path that a name stands for; the name itself, if it stands for none.
fn key(location: &str) -> String {
    parse_content_location(location).map_or_else(|_| location.to_owned(), |path| path.to_string())
}

impl Names {
    /// A new version of a file, with a number that is higher than those before.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        location: &str,
        toi: Toi,
        version: u64,
    ) -> Admission {
        let new =
            Versions { open: BTreeMap::new(), last: (toi, now), before: None, is_refused: false };
        let versions = self.0.entry(key(location)).or_insert(new);
        let (last, at) = versions.last;
        // A TOI that is defined again is no further file.
        if last != toi {
            versions.last = (toi, now);
            let before = versions.before.replace(at);
            if before.is_some_and(|at| now.saturating_since(at) < LEAST_FOR_TWO) {
                let was_refused = std::mem::replace(&mut versions.is_refused, true);
                return if was_refused { Admission::StillTooMany } else { Admission::TooMany };
            }
            versions.is_refused = false;
        }
        versions.open.insert(version, toi);
        if versions.open.len() > MAX_VERSIONS
            && let Some((_, oldest)) = versions.open.pop_first()
        {
            return Admission::InPlaceOf(oldest);
        }
        Admission::Open
    }

    /// A version is not received any more.
    pub(super) fn leave(&mut self, location: &str, version: u64) {
        if let Some(versions) = self.0.get_mut(&key(location)) {
            versions.open.remove(&version);
        }
    }

    /// A version is complete. Returns the older ones.
    pub(super) fn complete(&mut self, location: &str, version: u64) -> Vec<Toi> {
        let Some(versions) = self.0.get_mut(&key(location)) else { return Vec::new() };
        let newer = versions.open.split_off(&version.saturating_add(1));
        let mut older = std::mem::replace(&mut versions.open, newer);
        older.remove(&version);
        older.into_values().collect()
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets files that are not received any more.
    pub(super) fn prune(&mut self, now: Instant) {
        let is_lately = |versions: &Versions| now.saturating_since(versions.last.1) < LEAST_FOR_TWO;
        self.0.retain(|_, versions| !versions.open.is_empty() || is_lately(versions));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn two_versions_are_received_at_a_time_the_newest_ones() {
        let mut names = Names::default();
        let mut admit = |ms, toi, name| names.admit(at(ms), name, Toi(toi), toi as u64);
        assert_eq!(admit(0, 1, "a"), Admission::Open);
        assert_eq!(admit(0, 2, "./a"), Admission::Open, "two of one table");
        assert_eq!(admit(1_500, 3, "http://host/a"), Admission::InPlaceOf(Toi(1)));
        assert_eq!(admit(1_500, 4, "b"), Admission::Open);
        assert_eq!(names.complete("a", 3), [Toi(2)]);
        assert_eq!(names.complete("a", 3), []);
        assert_eq!(names.complete("b", 3), [], "an older one");
        names.leave("b", 4);
        names.prune(at(9_000));
        assert!(names.0.is_empty());
    }

    #[test]
    fn an_older_version_that_completes_leaves_the_newer_one() {
        let mut names = Names::default();
        names.admit(at(0), "a", Toi(1), 1);
        names.admit(at(900), "a", Toi(2), 2);
        assert_eq!(names.complete("a", 1), []);
        assert_eq!(names.admit(at(1_600), "a", Toi(3), 3), Admission::Open);
        assert_eq!(names.complete("a", 3), [Toi(2)]);
    }

    #[test]
    fn versions_that_come_too_often_are_refused() {
        let mut names = Names::default();
        let mut admit = |ms| names.admit(at(ms), "a", Toi(ms.into()), ms);
        assert_eq!([0, 1_000, 2_000].map(&mut admit)[1], Admission::Open);
        let fast: Vec<_> = (0..20).map(|n| admit(10_000 + 200 * n)).collect();
        let count = |fate| fast.iter().filter(|&&own| own == fate).count();
        assert_eq!(count(Admission::TooMany), 1);
        assert_eq!(count(Admission::StillTooMany), 17);
        assert_eq!(admit(20_000), Admission::InPlaceOf(Toi(10_000)));
        assert_eq!(
            (0..9)
                .filter(|n| names.admit(at(20_000 + n), "a", Toi(20_000), 9) != Admission::TooMany)
                .count(),
            9
        );
    }
}
