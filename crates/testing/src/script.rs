//! The bytes of a fuzzer as a sequence of choices.

use crate::words::Words;

/// Choices that bytes make, one after the other. After the last byte noise continues them, with the
/// bytes as its seed. So each input is a sequence of any length, a corpus of long sequences is
/// small, and a fuzzer that changes a byte changes one choice.
///
/// ```
/// use fontana_testing::Script;
///
/// let mut script = Script::new(&[3, 0x12, 0x34]);
/// assert_eq!((script.below(2), script.u16()), (1, 0x1234));
/// assert_eq!(script.u64(), Script::new(&[3, 0x12, 0x34]).skip(3).u64());
/// ```
#[derive(Clone, Debug)]
pub struct Script<'a> {
    bytes: &'a [u8],
    noise: Words,
}

impl<'a> Script<'a> {
    /// Steps of the sequence that a test of state makes of an input.
    pub const STEPS: usize = 128;

    /// The choices of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        // FNV-1a.
        let seed = bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Self { bytes, noise: Words::new(seed) }
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        let Some((&byte, rest)) = self.bytes.split_first() else {
            return self.noise.next_word() as u8;
        };
        self.bytes = rest;
        byte
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// A number less than `limit`, of one byte.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn below(&mut self, limit: u8) -> u8 {
        self.u8() % limit
    }

    /// True once in `count` times.
    pub fn once_in(&mut self, count: u8) -> bool {
        self.below(count) == 0
    }

    /// One of the items.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[usize::from(self.u16()) % items.len()]
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.u8()).collect()
    }

    /// A number of any magnitude: the low bits of eight bytes.
    pub fn magnitude(&mut self) -> u64 {
        let bits = self.below(64);
        self.u64() >> bits
    }

    /// The script after `count` more bytes.
    #[must_use]
    pub fn skip(mut self, count: usize) -> Self {
        (0..count).for_each(|_| _ = self.u8());
        self
    }
}
