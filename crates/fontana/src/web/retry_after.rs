//! The field `Retry-After` (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::http::{HeaderMap, header};

/// How long a server asks to wait: as seconds, or until a date by its own clock, which the field
/// `Date` has.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let wait = text(header::RETRY_AFTER)?.trim();
    if let Ok(seconds) = wait.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = unix_seconds(wait)?;
    let now = text(header::DATE).and_then(unix_seconds).unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    });
    Some(Duration::from_secs(until.saturating_sub(now)))
}

/// A date in the preferred format (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
fn unix_seconds(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = date.split_once(", ")?.1.split(' ');
    let day = words.next()?.parse::<u64>().ok().filter(|day| (1..=31).contains(day))?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year = words.next()?.parse::<u64>().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut time = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let mut below = |limit| time.next().flatten().filter(|&number| number < limit);
    let (hours, minutes, seconds) = (below(24)?, below(60)?, below(61)?);
    // Years begin in March: a leap day is the last one.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_the_rfc() {
        assert_eq!(unix_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(unix_seconds("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        for none in ["", "x", "Sun, 06 Nov", "Sun, 0 Nov 1994 08:49:37 GMT", "06 Nov 1994"] {
            assert_eq!(unix_seconds(none), None, "{none}");
        }
    }

    #[test]
    fn a_server_asks_to_wait_for_seconds_or_until_a_date_by_its_own_clock() {
        let wait = |fields: &[(header::HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.insert(name, value.parse().unwrap());
            }
            retry_after(&headers)
        };
        assert_eq!(wait(&[(header::RETRY_AFTER, "7")]), Some(Duration::from_secs(7)));
        let date = (header::RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT");
        let now = (header::DATE, "Sun, 06 Nov 1994 08:49:17 GMT");
        assert_eq!(wait(&[date.clone(), now]), Some(Duration::from_secs(20)));
        assert_eq!(wait(&[date]), Some(Duration::ZERO), "it has passed");
        assert_eq!(wait(&[(header::RETRY_AFTER, "-1")]), None);
        assert_eq!(wait(&[]), None);
    }
}
