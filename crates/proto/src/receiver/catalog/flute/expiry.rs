//! Files that tables do not name any more, once those that named them have expired: the driver
//! deletes what it has written of them.
//!
//! Tables complement each other, so that one that does not name a file says nothing of it. A file
//! is out when the last table that has named it has expired, and another one, which has not, is
//! still sent. Silence deletes nothing, nor does a clock that is wrong: where it is fast all tables
//! have expired, and where it is slow none has.

use crate::job::Expired;
use crate::time::Instant;
use fontana_wire::parse_content_location;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time from the expiry of a file's last table to its deletion, in seconds: the table that names it
/// again may have been lost, and is repeated.
const GRACE: u64 = 10;
/// The same, for the table that is still sent.
pub(super) const HEARD_WITHIN: Duration = Duration::from_secs(GRACE);
/// Files that are remembered; a driver remembers no more of those that it has written. Others stay.
const MAX_FILES: usize = 16_384;

/// When the tables of complete files expire.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    /// The time at which the last table expires that has named a complete file, in Unix seconds, by
    /// the file's path.
    files: BTreeMap<String, u64>,
    /// No file is out before this time.
    next: u64,
    /// When the first table of this run of the receiver expires. Those of files that earlier runs
    /// have written are not known: a table that still names them is repeated before.
    first: Option<u64>,
    /// The files of earlier runs were reported.
    has_reported_earlier: bool,
    /// When files were looked for last.
    searched_at: Option<Instant>,
}

/// The path that a name stands for; the name itself, if it stands for none.
fn key(location: &str) -> String {
    parse_content_location(location).map_or_else(|_| location.to_owned(), |path| path.to_string())
}

/// Whether a table is out at this time, both in Unix seconds.
fn is_out(expires: u64, unix_seconds: u64) -> bool {
    expires.saturating_add(GRACE) < unix_seconds
}

impl Expiries {
    /// A table was read that expires then.
    pub(super) fn on_table(&mut self, expires: u64) {
        if self.first.is_none() {
            (self.first, self.next) = (Some(expires), expires);
        }
    }

    /// A table names a file.
    pub(super) fn name(&mut self, location: &str, expires: u64) {
        if self.files.is_empty() {
            return;
        }
        if let Some(known) = self.files.get_mut(&key(location)) {
            *known = expires.max(*known);
        }
    }

    /// A file is complete, or is not received.
    pub(super) fn keep(&mut self, location: &str, expires: u64) {
        let key = key(location);
        if self.files.len() < MAX_FILES || self.files.contains_key(&key) {
            let known = self.files.entry(key).or_insert(expires);
            *known = expires.max(*known);
            self.next = self.next.min(*known);
        }
    }

    /// Whether files may be out. At most once a second.
    pub(super) fn is_due(&self, now: Instant, unix_seconds: u64) -> bool {
        let lately = |at| now.saturating_since(at) < Duration::from_secs(1);
        let is_late = self.first.is_some() && is_out(self.next, unix_seconds);
        is_late && !self.searched_at.is_some_and(lately)
    }

    /// Takes the files that are out. `names_all`: whether the driver has opened every file that a
    /// table of this run names; if not, nothing is said of earlier runs yet.
    pub(super) fn take(
        &mut self,
        now: Instant,
        unix_seconds: u64,
        names_all: bool,
    ) -> Option<Expired> {
        self.searched_at = Some(now);
        let mut paths = Vec::new();
        self.files.retain(|path, expires| {
            let is_out = is_out(*expires, unix_seconds);
            if is_out {
                paths.push(path.clone());
            }
            !is_out
        });
        let is_first_out = self.first.is_some_and(|first| is_out(first, unix_seconds));
        let earlier = is_first_out && names_all && !self.has_reported_earlier;
        self.has_reported_earlier |= earlier;
        let next = self.files.values().min().copied().unwrap_or(u64::MAX);
        let waits = !self.has_reported_earlier;
        self.next = next.min(self.first.filter(|_| waits).unwrap_or(u64::MAX));
        (earlier || !paths.is_empty()).then_some(Expired { paths, earlier })
    }

    /// Whether a name is that of one of these files.
    pub(super) fn is_of(expired: &Expired, location: &str) -> bool {
        expired.paths.binary_search(&key(location)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(number)
    }

    fn taken(expiries: &mut Expiries, unix_seconds: u64) -> (Vec<String>, bool) {
        let taken = expiries.take(second(unix_seconds), unix_seconds, true);
        taken.map_or_else(Default::default, |expired| (expired.paths, expired.earlier))
    }

    #[test]
    fn a_file_is_out_ten_seconds_after_its_last_table() {
        let mut expiries = Expiries::default();
        expiries.on_table(100);
        expiries.keep("http://host/a", 100);
        expiries.keep("b", 100);
        expiries.name("./a", 200);
        assert!(!expiries.is_due(second(110), 110) && expiries.is_due(second(111), 111));
        assert_eq!(taken(&mut expiries, 111), (vec!["b".to_owned()], true));
        assert!(!expiries.is_due(second(210), 210) && expiries.is_due(second(211), 211));
        assert_eq!(taken(&mut expiries, 211), (vec!["a".to_owned()], false));
        assert!(!expiries.is_due(second(900), 900));
    }

    #[test]
    fn files_of_earlier_runs_wait_for_the_first_table_and_for_all_names() {
        let mut expiries = Expiries::default();
        assert!(!expiries.is_due(Instant::ZERO, u64::MAX), "no table");
        expiries.on_table(50);
        expiries.on_table(500);
        assert!(expiries.is_due(second(61), 61));
        assert!(expiries.take(second(61), 61, false).is_none());
        assert!(!expiries.is_due(second(61), 61), "once a second");
        assert!(expiries.is_due(second(62), 62));
        assert_eq!(taken(&mut expiries, 62), (Vec::new(), true));
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let mut expiries = Expiries::default();
        for number in 0..MAX_FILES as u64 + 2 {
            expiries.keep(&format!("{number}"), number);
        }
        assert_eq!(expiries.files.len(), MAX_FILES);
        assert!(expiries.files.contains_key("0"));
    }
}
