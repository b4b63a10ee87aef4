//! Scales of axes: ranges, ticks and their labels.

use crate::chart::Axis;

/// About as many ticks has a linear axis.
const TICKS: f64 = 6.0;
/// Share of the range that is left free at either end.
const AIR: f64 = 0.04;

/// The range of an axis. Places are values, or their logarithms if it is logarithmic.
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

/// A tick, and its label.
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Scale {
    /// The scale that has room for these values.
    pub(super) fn covering(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self { low: 0.0, high: 1.0, logarithmic: axis.logarithmic };
        let places: Vec<f64> =
            values.map(|value| scale.place(value)).filter(|place| place.is_finite()).collect();
        let least = places.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = places.iter().copied().reduce(f64::max).unwrap_or(1.0);
        // A margin, which is also the width if all values are equal.
        let air = ((most - least) * AIR).max(1e-3 * most.abs()).max(1e-9);
        (scale.low, scale.high) = (least - air, most + air);
        // Quantities near 0 are seen from 0 on.
        if !axis.logarithmic && least >= 0.0 && least < 0.4 * most {
            scale.low = 0.0;
        }
        scale
    }

    /// Where a value is: 0 at the low end, 1 at the high one.
    pub(super) fn share(&self, value: f64) -> f64 {
        (self.place(value) - self.low) / (self.high - self.low)
    }

    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.log10() } else { value }
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        if self.logarithmic { self.decades() } else { self.steps() }
    }

    fn steps(&self) -> Vec<Tick> {
        let about = (self.high - self.low) / TICKS;
        let power = 10_f64.powf(about.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= about);
        let step = factor.unwrap_or(10.0) * power;
        // As many digits as the step has.
        let digits = (0..12)
            .find(|&digits| {
                let scaled = step * 10_f64.powi(digits);
                (scaled - scaled.round()).abs() < 1e-6 * scaled
            })
            .unwrap_or(12) as usize;
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let tick = |index: i64| {
            let value = index as f64 * step;
            Tick { value, label: grouped(&format!("{value:.digits$}")) }
        };
        (first..=last).map(tick).collect()
    }

    fn decades(&self) -> Vec<Tick> {
        let (from, to) = (self.low.floor() as i32, self.high.floor() as i32);
        let whole = (self.low.ceil() as i32..=to).count();
        // Every third of many, and steps between few.
        let (every, steps): (i32, &[f64]) = match whole {
            0..=2 => (1, &[1.0, 2.0, 5.0]),
            3..=8 => (1, &[1.0]),
            _ => (2, &[1.0]),
        };
        let all = (from..=to).filter(|decade| decade % every == 0);
        let all = all.flat_map(|decade| steps.iter().map(move |&step| (step, decade)));
        let value = |step: f64, decade: i32| step * 10_f64.powi(decade);
        let seen: Vec<_> = all
            .filter(|&(step, decade)| (0.0..=1.0).contains(&self.share(value(step, decade))))
            .collect();
        // All labels of an axis are of one kind.
        let is_short = seen.iter().all(|(_, decade)| (-3..=5).contains(decade));
        let style = if is_short { TickStyle::Numbers } else { TickStyle::Powers };
        let tick =
            |(step, decade)| Tick { value: value(step, decade), label: style.label(step, decade) };
        seen.into_iter().map(tick).collect()
    }
}

/// How the ticks of decades are written.
#[derive(Clone, Copy)]
enum TickStyle {
    /// As numbers: for decades that have short ones.
    Numbers,
    /// As powers of ten, but for 1 and 10.
    Powers,
}

impl TickStyle {
    /// A step of a decade.
    fn label(self, step: f64, decade: i32) -> String {
        let number = step * 10_f64.powi(decade);
        match (self, decade) {
            (_, 0 | 1) => format!("{number:.0}"),
            (Self::Numbers, 2..) => grouped(&format!("{number:.0}")),
            (Self::Numbers, _) => {
                let digits = usize::try_from(-decade).unwrap_or_default();
                format!("{number:.digits$}")
            }
            (Self::Powers, _) => {
                let exponent: String = decade.to_string().chars().map(superscript).collect();
                if step == 1.0 { format!("10{exponent}") } else { format!("{step}·10{exponent}") }
            }
        }
    }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

/// Groups the digits of a number of five and more by threes.
fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.trim_start_matches('-').len();
    if digits < 5 {
        return number.to_owned();
    }
    let mut text = String::new();
    let sign = whole.len() - digits;
    for (index, digit) in whole.chars().enumerate() {
        if index > sign && (whole.len() - index) % 3 == 0 {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::covering(axis, values.iter().copied());
        scale.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers() {
        let linear = Axis::linear("");
        assert_eq!(labels(linear, &[1.0, 1.1]), ["1.00", "1.02", "1.04", "1.06", "1.08", "1.10"]);
        assert_eq!(
            labels(linear, &[3.0, 28_000.0]),
            ["0", "5000", "10\u{a0}000", "15\u{a0}000", "20\u{a0}000", "25\u{a0}000"]
        );
        assert_eq!(labels(linear, &[-1.0, 1.0]), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades() {
        let logarithmic = Axis::logarithmic("");
        assert_eq!(labels(logarithmic, &[1.0, 40.0]), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(logarithmic, &[1e-3, 2.0]), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(
            labels(logarithmic, &[1e2, 1e5]),
            ["100", "1000", "10\u{a0}000", "100\u{a0}000"]
        );
    }

    #[test]
    fn decades_of_long_numbers_are_all_powers() {
        let logarithmic = Axis::logarithmic("");
        assert_eq!(labels(logarithmic, &[1e-5, 1e-2]), ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]);
        assert_eq!(labels(logarithmic, &[1e4, 1e7]), ["10⁴", "10⁵", "10⁶", "10⁷"]);
        assert_eq!(labels(logarithmic, &[1.0, 1e6])[..3], ["1", "10", "10²"]);
    }

    #[test]
    fn nothing_and_one_value_have_a_scale() {
        for values in [vec![], vec![1.0], vec![f64::NAN, 0.0]] {
            let scale = Scale::covering(Axis::linear(""), values.into_iter());
            assert!(scale.high > scale.low && !scale.ticks().is_empty());
        }
    }
}
