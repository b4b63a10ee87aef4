//! Versions that are ignored, because a directory has had newer ones of their publisher.

use fontana::Rejection;
use fontana_console::units::Time;
use std::time::Duration;

/// The message and the hint of a follower that ignores an older version. `None` if it is the one
/// that the directory has, or ignored for another reason.
pub(super) fn ignored(source: &str, reason: Rejection) -> Option<(String, &'static str)> {
    let Rejection::OldVersion { version, newer_than } = reason else { return None };
    (version < newer_than).then(|| {
        let later = later(version, newer_than);
        let message = format!(
            "version {version} of {source} is ignored: this directory has had version {newer_than} \
             of the publisher{later}"
        );
        (
            message,
            "a publisher whose clock was ahead needs KEYFILE.version beside its key, to go \
                   on above that; another host may be sending an old version again",
        )
    })
}

/// The message if nothing else was sent.
pub(super) fn nothing_newer(place: &str, follows: bool, reason: Rejection) -> Option<String> {
    let Rejection::OldVersion { version, newer_than } = reason else { return None };
    // A follower wants more than the directory has, another receiver as much.
    let had = if follows { newer_than } else { newer_than.saturating_add(1) };
    Some(match version < had {
        true => format!(
            "the session on {place} is older than what this directory has had of the publisher: \
             version {version}, after version {had}{}",
            later(version, had)
        ),
        false => format!("nothing newer than version {had}, which is here, is sent on {place}"),
    })
}

/// How much later a version was made, if versions are times.
fn later(version: u64, had: u64) -> String {
    /// Milliseconds of the year 2001: what people count is less.
    const TIMES_BEGIN: u64 = 1_000_000_000_000;
    match version >= TIMES_BEGIN {
        true => format!(", made {} later", Time(Duration::from_millis(had - version))),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_ignores_older_versions_and_says_by_how_much() {
        let old = |version| {
            let reason = Rejection::OldVersion { version, newer_than: 1_795_132_800_000 };
            ignored("192.0.2.9", reason).map(|(message, _)| message)
        };
        assert_eq!(old(1_795_132_800_000), None, "it is here");
        let message = old(1_795_132_800_000 - 7_200_000).unwrap();
        assert!(
            message.starts_with("version 1795125600000 of 192.0.2.9 is ignored: "),
            "{message}"
        );
        assert!(message.ends_with("of the publisher, made 2 h 00 min later"), "{message}");
        assert!(old(7).unwrap().ends_with("version 1795132800000 of the publisher"));
        assert_eq!(ignored("192.0.2.9", Rejection::WrongKey), None);
    }

    #[test]
    fn what_a_directory_has_is_the_lowest_that_is_received_or_one_less_than_that() {
        let old = Rejection::OldVersion { version: 7, newer_than: 7 };
        let message = nothing_newer("here", false, old).unwrap();
        assert!(message.ends_with("version 7, after version 8"), "{message}");
        assert!(nothing_newer("here", true, old).unwrap().starts_with("nothing newer"));
    }
}
