//! Primes, by which the codes of RFC 5053 and RFC 6330 choose their sizes.

/// The smallest prime that is at least `n`, which is below 2^16. By trial division: it runs a few
/// times for a block.
pub(crate) fn prime_from(n: u32) -> u32 {
    (n..).find(|&n| is_prime(n)).unwrap_or(n)
}

fn is_prime(n: u32) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_prime_may_be_the_number_itself() {
        let primes = [(0, 2), (1, 2), (2, 2), (3, 3), (4, 5), (24, 29), (8_419, 8_419)];
        for (n, prime) in primes {
            assert_eq!(prime_from(n), prime, "from {n}");
        }
    }
}
