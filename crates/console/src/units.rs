//! Numbers with units, parsed and formatted.
//!
//! Rates are decimal and in bits per second (`100M` is 100 000 000 bit/s). Sizes are in bytes and
//! follow `dd`: `M` is 1 048 576 bytes, `MB` is 1 000 000. Output is decimal.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest integer up to which a 64-bit float is exact (2^53).
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// Splits `1.5G` into 1.5 and `G`. Rejects signs, exponents and words like `inf`.
fn number_and_unit(text: &str) -> Result<(f64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse().map_err(|_| "a number is missing".to_owned())?;
    Ok((number, unit.trim()))
}

fn scaled(number: f64, factor: f64) -> Result<u64, String> {
    let value = (number * factor).round();
    if value <= LARGEST { Ok(value as u64) } else { Err("the number is too large".to_owned()) }
}

/// Bits per second: `100M`, `1.5G`, `800k`, `1000000`; `bit`, `bit/s` or `bps` may follow.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text)?;
    let not_a_unit = || format!("{unit:?} is not a unit of bits per second: k, M, G");
    if unit.contains('B') {
        return Err(format!("{unit:?} is of bytes, and rates are in bits per second: k, M, G"));
    }
    let lower = unit.to_ascii_lowercase();
    let names = ["bit/s", "bits/s", "bps", "bit"];
    let factor = names.iter().find_map(|name| lower.strip_suffix(name)).unwrap_or(&lower).trim();
    let factor = match factor {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return Err(not_a_unit()),
    };
    scaled(number, factor)
}

/// Bytes: `128M`, `1.5G`, `64k`, `1GB`, `1g`, `1000000`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "k" | "K" | "kiB" | "KiB" => 1024.0,
        "m" | "M" | "MiB" => 1024.0 * 1024.0,
        "g" | "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        "t" | "T" | "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return Err(format!("{unit:?} is not a unit of bytes: k, M, G, T, kB, MB, GB, TB")),
    };
    scaled(number, factor)
}

/// A duration: `30`, `30s`, `500ms`, `2m`, `1.5h`, `1d`. Without a unit: seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text)?;
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("{unit:?} is not a unit of time: ms, s, m, h, d")),
    };
    scaled(number, seconds * 1e3).map(Duration::from_millis)
}

/// The lifetime of a signature: `30d`, `12h`; 0: without end.
pub fn parse_lifetime(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        short if !short.is_zero() && short < Duration::from_secs(10) => {
            Err("at least 10s, or 0 for no end: heads are sent every two seconds".into())
        }
        lifetime => Ok(lifetime),
    }
}

/// A percentage, in thousandths of the whole: `25`, `2.5%`.
pub fn parse_permille(text: &str) -> Result<u32, String> {
    let (number, unit) = number_and_unit(text)?;
    if !matches!(unit, "" | "%") {
        return Err(format!("{unit:?} is not a percent sign"));
    }
    u32::try_from(scaled(number, 10.0)?).map_err(|_| "the number is too large".to_owned())
}

/// A number of passes, in thousandths: `2`, `1.5`.
pub fn parse_passes(text: &str) -> Result<u32, String> {
    match number_and_unit(text)? {
        (number, "") => {
            u32::try_from(scaled(number, 1e3)?).map_err(|_| "the number is too large".to_owned())
        }
        (_, unit) => Err(format!("{unit:?} follows the number of passes")),
    }
}

/// A percentage of at most 100, as a share: `5`, `12.5%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    match number_and_unit(text)? {
        (number, "" | "%") if number <= 100.0 => Ok(number / 100.0),
        _ => Err("a percentage is 0 to 100".to_owned()),
    }
}

/// Bytes, for people: `24.0 MB`.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = decimal(self.0 as f64, &["bytes", "kB", "MB", "GB", "TB", "PB"]);
        match unit {
            "bytes" if self.0 == 1 => f.pad("1 byte"),
            "bytes" => f.pad(&format!("{number:.0} bytes")),
            unit => f.pad(&format!("{number:.1} {unit}")),
        }
    }
}

/// Bits per second, for people: `99.8 Mbit/s`.
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = decimal(self.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
        f.pad(&format!("{number:.1} {unit}"))
    }
}

/// A rate that a user asked for, with all its digits: `100 Mbit/s`, `1.25 Mbit/s`.
pub struct ExactRate(pub u64);

impl fmt::Display for ExactRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, usize, &str); 4] = [
            (1_000_000_000, 9, "Gbit/s"),
            (1_000_000, 6, "Mbit/s"),
            (1000, 3, "kbit/s"),
            (1, 0, "bit/s"),
        ];
        let largest = UNITS.into_iter().find(|(factor, ..)| self.0 >= *factor);
        let (factor, digits, unit) = largest.unwrap_or((1, 0, "bit/s"));
        let fraction = format!("{:0digits$}", self.0 % factor);
        let number = format!("{}.{fraction}", self.0 / factor);
        f.pad(&format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.')))
    }
}

/// Scales a number to the largest unit of which it is at least one. Each unit is 1000 of the
/// previous.
fn decimal(mut number: f64, units: &[&'static str]) -> (f64, &'static str) {
    let (&last, others) = units.split_last().unwrap_or((&"", &[]));
    for unit in others {
        // A number that would be rounded to 1000.0 becomes 1.0 of the next unit.
        if number < 999.95 {
            return (number, unit);
        }
        number /= 1000.0;
    }
    (number, last)
}

/// A duration, for people: `8.3 s`, `2 min 05 s`, `3 h 07 min`, `4 days 06 h`.
pub struct Time(pub Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        f.pad(&match seconds {
            0..60 if self.0.subsec_millis() == 0 => format!("{seconds} s"),
            0..60 => format!("{:.1} s", self.0.as_secs_f64()),
            60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
            3600..172_800 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
            _ => format!("{} days {:02} h", seconds / 86_400, seconds / 3600 % 24),
        })
    }
}

/// A share, for people: `5.0 %`; a dash if it is unknown.
pub struct Percent(pub Option<f64>);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(share) => f.pad(&format!("{:.1} %", share * 100.0)),
            None => f.pad("-"),
        }
    }
}

/// A number and a noun: `1 file`, `3 files`, `12 345 packets`.
pub struct Count(pub u64, pub &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() * 4 / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(' ');
            }
            grouped.push(digit);
        }
        let plural = if self.0 == 1 { "" } else { "s" };
        f.pad(&format!("{grouped} {}{plural}", self.1))
    }
}

/// A time in UTC, to the millisecond (RFC 3339).
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // The civil date of a day number: years begin in March, and an era has 400 of them.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let millisecond = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal_bits() {
        let cases = [
            ("100M", 100_000_000),
            ("1.5G", 1_500_000_000),
            ("800k", 800_000),
            ("8000", 8000),
            ("10 Mbit/s", 10_000_000),
            ("10Mbps", 10_000_000),
            ("1Gbit", 1_000_000_000),
            ("1g", 1_000_000_000),
            ("2.5 gbit/s", 2_500_000_000),
            ("100mbit", 100_000_000),
            ("0", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_rate(text), Ok(expected), "{text}");
        }
        for text in ["1GB", "10MB/s", "1GiB/s"] {
            assert!(parse_rate(text).is_err_and(|error| error.contains("of bytes")), "{text}");
        }
    }

    #[test]
    fn sizes_are_binary_unless_they_say_bytes() {
        let cases = [
            ("128M", 128 << 20),
            ("1.5G", 3 << 29),
            ("64k", 65_536),
            ("1MB", 1_000_000),
            ("1MiB", 1 << 20),
            ("2m", 2 << 20),
            ("1g", 1 << 30),
            ("7", 7),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        let cases =
            [("30", 30_000), ("0.25", 250), ("500ms", 500), ("2m", 120_000), ("1d", 86_400_000)];
        for (text, expected) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(expected)), "{text}");
        }
    }

    #[test]
    fn percentages_have_a_largest_value() {
        assert_eq!(parse_permille("25"), Ok(250));
        assert_eq!(parse_permille("2.5%"), Ok(25));
        assert_eq!(parse_permille("429496729.5"), Ok(u32::MAX));
        assert!(parse_permille("429496729.6").is_err());
        assert_eq!(parse_share("100%"), Ok(1.0));
        assert!(parse_share("100.1").is_err());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "M", "-1", "+1", "inf", "nan", "1e9", "1..2", "1X", "9007199254740993G"] {
            assert!(parse_rate(text).is_err(), "{text}");
            assert!(parse_size(text).is_err(), "{text}");
            assert!(parse_duration(text).is_err(), "{text}");
            assert!(parse_permille(text).is_err(), "{text}");
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_printed_has_at_most_three_digits_before_the_point() {
        let sizes = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (u64::MAX, "18446.7 PB"),
        ];
        for (bytes, expected) in sizes {
            assert_eq!(Bytes(bytes).to_string(), expected);
        }
        assert_eq!(Rate(99_800_000.0).to_string(), "99.8 Mbit/s");
        for (bits, expected) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (12_345, "12.345 kbit/s"),
            (1_250_000, "1.25 Mbit/s"),
            (100_000_000, "100 Mbit/s"),
            (1_000_000_008, "1.000000008 Gbit/s"),
        ] {
            assert_eq!(ExactRate(bits).to_string(), expected);
        }
        assert_eq!(Time(Duration::from_millis(8300)).to_string(), "8.3 s");
        assert_eq!(Time(Duration::from_secs(125)).to_string(), "2 min 05 s");
        assert_eq!(Time(Duration::from_secs(11_220)).to_string(), "3 h 07 min");
        assert_eq!(Percent(Some(0.0512)).to_string(), "5.1 %");
        assert_eq!(Percent(None).to_string(), "-");
        assert_eq!(Count(1, "file").to_string(), "1 file");
        assert_eq!(Count(1_234_567, "packet").to_string(), "1 234 567 packets");
    }

    #[test]
    fn times_are_civil_dates() {
        let at = |seconds: u64| rfc3339(UNIX_EPOCH + Duration::from_millis(seconds * 1_000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
    }
}
