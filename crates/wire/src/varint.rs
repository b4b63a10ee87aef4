//! Unsigned integers of 1 to 10 bytes (LEB128): seven bits per byte, least significant first. The
//! upper bit of a byte is set if another byte follows. Only the shortest form of a value is
//! accepted, so that a manifest has one encoding.

use crate::bytes::Reader;

/// Parses a value; `None` if the bytes end too early, are not the shortest form, or exceed 64 bits.
pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = reader.u8()?;
        let bits = u64::from(byte & 0x7F);
        let shifted = bits << shift;
        if shifted >> shift != bits {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            // A last group of zero is redundant, unless it is the only group.
            return (byte != 0 || shift == 0).then_some(value);
        }
    }
    None
}

pub(crate) fn emit(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps signed values to unsigned ones: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
pub(crate) const fn from_signed(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(crate) const fn to_signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ ((value & 1) as i64).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_all(bytes: &[u8]) -> Option<u64> {
        let mut reader = Reader::new(bytes);
        parse(&mut reader).filter(|_| reader.is_empty())
    }

    #[test]
    fn values_at_the_edges_of_their_sizes_have_the_expected_bytes() {
        let cases: [(u64, &[u8]); 6] = [
            (0, &[0]),
            (0x7F, &[0x7F]),
            (0x80, &[0x80, 0x01]),
            (0x3FFF, &[0xFF, 0x7F]),
            (0x4000, &[0x80, 0x80, 0x01]),
            (u64::MAX, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            emit(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(parse_all(bytes), Some(value));
        }
    }

    #[test]
    fn longer_forms_larger_values_and_missing_bytes_are_refused() {
        assert_eq!(parse_all(&[]), None);
        assert_eq!(parse_all(&[0x80]), None);
        assert_eq!(parse_all(&[0x80, 0x00]), None);
        assert_eq!(parse_all(&[0xFF, 0x80, 0x00]), None);
        let mut too_large = [0xFF; 10];
        too_large[9] = 0x02;
        assert_eq!(parse_all(&too_large), None);
        assert_eq!(parse_all(&[0xFF; 11]), None);
    }

    proptest! {
        #[test]
        fn every_value_is_read_back(value: u64, signed: i64) {
            let mut out = Vec::new();
            emit(value, &mut out);
            prop_assert_eq!(parse_all(&out), Some(value));
            prop_assert_eq!(to_signed(from_signed(signed)), signed);
        }
    }
}
