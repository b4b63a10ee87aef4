//! Objects that are collected several times under one TOI: a sender that was restarted gives it to
//! another file, or the bytes of a collection turn out to be wrong.
//!
//! Each collection is an object of its own, so that the answer to a job on an earlier one changes
//! nothing. Its number is above the 112 bits that a TOI has on the wire.

use fontana_wire::Toi;

/// Bits of a TOI on the wire.
const WIRE_BITS: u32 = Toi::MAX.0.count_ones();

/// The object that is collected from packets of `toi`, for the time with this number. The first
/// collection has number 0, and is named as the packets are. Numbers wrap: by then, no job of a
/// collection with the same number is left.
pub(crate) fn object_of(toi: Toi, number: u16) -> Toi {
    Toi(sent_toi(toi).0 | u128::from(number) << WIRE_BITS)
}

/// The TOI in the packets of an object.
pub fn sent_toi(object: Toi) -> Toi {
    Toi(object.0 & Toi::MAX.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_of_a_toi_are_different_objects_with_the_same_packets() {
        for toi in [Toi(1), Toi::MAX] {
            assert_eq!(object_of(toi, 0), toi);
            let objects = [0, 1, u16::MAX].map(|number| object_of(toi, number));
            assert!(objects.iter().all(|&object| sent_toi(object) == toi));
            assert!(objects.is_sorted() && objects[0] != objects[1] && objects[1] != objects[2]);
            assert_eq!(object_of(objects[2], 1), objects[1]);
        }
    }
}
