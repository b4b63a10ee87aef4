//! Boots of the host: bytes that were written during an earlier boot and not synced may be lost.

/// A boot of the host: the time from one start of its kernel to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// An unknown boot. It never equals another.
    pub(crate) const UNKNOWN: Self = Self([0; 16]);

    /// The present boot, as the kernel identifies it (random(4)). Unknown on systems other than
    /// Linux.
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self::parse(&text).unwrap_or(Self::UNKNOWN)
    }

    /// A UUID (RFC 9562).
    fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().bytes().filter(|&byte| byte != b'-');
        let nibbles: Option<Vec<u32>> = digits.map(|byte| char::from(byte).to_digit(16)).collect();
        let nibbles: [u32; 32] = nibbles?.try_into().ok()?;
        let (pairs, _) = nibbles.as_chunks::<2>();
        let mut id = [0; 16];
        for (byte, [high, low]) in id.iter_mut().zip(pairs) {
            *byte = (high << 4 | low) as u8;
        }
        Some(Self(id))
    }

    /// True if bytes written during one cannot have been lost before the other.
    pub(crate) fn is_same_boot(self, other: Self) -> bool {
        self == other && self != Self::UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_equals_itself_and_an_unknown_boot_equals_none() {
        let id = BootId::parse("0fe7d1f2-8f9c-4a1b-b1de-0000000000ff\n").unwrap();
        assert_eq!(id.0[..3], [0x0f, 0xe7, 0xd1]);
        assert_eq!(id.0[15], 0xff);
        assert!(id.is_same_boot(id));
        assert!(!id.is_same_boot(BootId::UNKNOWN));
        assert!(!BootId::UNKNOWN.is_same_boot(BootId::UNKNOWN));
        for wrong in
            ["", "0fe7d1f2", "0fe7d1f2-8f9c-4a1b-b1de-0000000000f", "g".repeat(32).as_str()]
        {
            assert_eq!(BootId::parse(wrong), None, "{wrong:?}");
        }
    }
}
