//! The paper's formulas, section V-A.1.

/// Equation (2): reception inefficiency with `senders` equal senders at stretch factor `stretch`
/// and decoding inefficiency `epsilon`.
pub(crate) fn equal_senders(senders: u32, stretch: f64, epsilon: f64) -> f64 {
    let senders = f64::from(senders);
    senders * stretch * (1.0 - (1.0 - epsilon / stretch).powf(1.0 / senders))
}

/// The series for two equal senders, as far as the paper prints it.
pub(crate) fn two_senders_series(stretch: f64, epsilon: f64) -> f64 {
    let share = epsilon / stretch;
    epsilon * (1.0 + share / 4.0 + share * share / 8.0)
}

/// Packets expected from each sender until `needed` of `encoding_symbols` are distinct, by the
/// recursion of equation (1): senders of these relative rates, the first of which is not 0.
pub(crate) fn recursion(rates: &[u32], encoding_symbols: f64, needed: f64) -> Vec<f64> {
    let share = |rate: u32| f64::from(rate) / f64::from(rates.first().copied().unwrap_or(1));
    let distinct = |first: f64| {
        rates.iter().fold(0.0, |z, &rate| z + share(rate) * first * (1.0 - z / encoding_symbols))
    };
    // The number of distinct packets grows with the packets of the first sender: bisection.
    let (mut low, mut high) = (0.0, encoding_symbols);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if distinct(middle) < needed { low = middle } else { high = middle }
    }
    rates.iter().map(|&rate| share(rate) * high).collect()
}

/// Expected total number of packets from two senders whose packets arrive in the order of `turn`
/// (0 or 1, repeated), by the exact distribution of the packets that both have sent: of `a` packets
/// of one sender and `b` of the other, `j` are the same with the hypergeometric probability
/// `C(a, j) C(n - a, b - j) / C(n, b)`.
pub(crate) fn two_senders_exact(turn: &[usize], encoding_symbols: u32, needed: u32) -> f64 {
    let logarithms = LogFactorials::up_to(encoding_symbols);
    let mut sent = [0_u32; 2];
    // The sum of the probabilities that t packets were not enough.
    let mut expected = 0.0;
    for &sender in turn.iter().cycle() {
        let [a, b] = sent;
        // With more than this many in common, a + b packets are not enough.
        let spare = i64::from(a) + i64::from(b) - i64::from(needed);
        let enough: f64 = (0..=spare.min(i64::from(a.min(b))))
            .map(|j| logarithms.hypergeometric(encoding_symbols, a, b, j as u32))
            .sum();
        expected += (1.0 - enough).max(0.0);
        if enough > 1.0 - 1e-12 || a.max(b) == encoding_symbols {
            break;
        }
        if let Some(count) = sent.get_mut(sender) {
            *count += 1;
        }
    }
    expected
}

struct LogFactorials(Vec<f64>);

impl LogFactorials {
    fn up_to(n: u32) -> Self {
        let mut sum = 0.0;
        let mut logarithm = |i: u32| {
            sum += if i == 0 { 0.0 } else { f64::from(i).ln() };
            sum
        };
        Self((0..=n).map(&mut logarithm).collect())
    }

    fn of(&self, n: u32) -> f64 {
        self.0.get(n as usize).copied().unwrap_or(f64::NAN)
    }

    fn binomial(&self, n: u32, k: u32) -> f64 {
        if k > n { f64::NEG_INFINITY } else { self.of(n) - self.of(k) - self.of(n - k) }
    }

    fn hypergeometric(&self, n: u32, a: u32, b: u32, j: u32) -> f64 {
        (self.binomial(a, j) + self.binomial(n - a, b - j) - self.binomial(n, b)).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recursion_of_equal_rates_is_equation_2() {
        for senders in 1..=5 {
            let packets = recursion(&vec![1; senders as usize], 4000.0, 1055.0);
            let total: f64 = packets.iter().sum();
            assert!((total / 1000.0 - equal_senders(senders, 4.0, 1.055)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_exact_sum_of_a_tiny_case_is_what_counting_gives() {
        // Two packets, both needed, one of each sender in turn: the first packet of the second
        // sender is the other one half of the time, and otherwise the third packet is.
        assert!((two_senders_exact(&[0, 1], 2, 2) - 2.5).abs() < 1e-9);
        // One packet of two suffices.
        assert!((two_senders_exact(&[0, 1], 2, 1) - 1.0).abs() < 1e-9);
    }
}
