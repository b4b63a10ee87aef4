//! NTP seconds, the time format of FLUTE and EXT_TIME (RFC 5905, section 6).

/// Seconds from 1900-01-01 to 1970-01-01 (RFC 5905, figure 4).
const UNIX_EPOCH: u64 = 2_208_988_800;

/// Upper half of an NTP timestamp: seconds since 1900, modulo 2^32. It wraps in February 2036.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NtpSeconds(pub u32);

impl NtpSeconds {
    /// The NTP time of a time in unix seconds.
    pub const fn from_unix_seconds(unix_seconds: u64) -> Self {
        Self(unix_seconds.wrapping_add(UNIX_EPOCH) as u32)
    }

    /// The time in unix seconds, assuming that it lies within 68 years of `now_unix_seconds`.
    pub const fn to_unix_seconds(self, now_unix_seconds: u64) -> u64 {
        let now = Self::from_unix_seconds(now_unix_seconds);
        let difference = self.0.wrapping_sub(now.0) as i32;
        now_unix_seconds.saturating_add_signed(difference as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_nearest_to_now_is_used() {
        // 2036-02-07T06:28:16Z, when NTP seconds wrap to zero.
        let wrap = (1 << 32) - UNIX_EPOCH;
        assert_eq!(NtpSeconds::from_unix_seconds(wrap), NtpSeconds(0));
        for (then, now) in [(wrap - 1, wrap + 1), (wrap + 1, wrap - 1), (0, 5), (5, 0)] {
            assert_eq!(NtpSeconds::from_unix_seconds(then).to_unix_seconds(now), then);
        }
        // 2026-01-01T00:00:00Z.
        assert_eq!(NtpSeconds::from_unix_seconds(1_767_225_600), NtpSeconds(3_976_214_400));
    }
}
