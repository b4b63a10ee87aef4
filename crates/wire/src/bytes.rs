//! Reader of big-endian values: takes them off the front of a slice without indexing.

/// The unread part of a slice. Every method takes its bytes off the front, or returns `None` and
/// leaves the rest unspecified. A parser stops at the first `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes that have not been read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// An unsigned integer of `count` bytes. The caller passes at most 16.
    #[inline]
    pub(crate) fn uint(&mut self, count: usize) -> Option<u128> {
        // Nearly every field has this width.
        if count == 4 { self.u32().map(u128::from) } else { self.uint_of_any_width(count) }
    }

    #[inline(never)]
    fn uint_of_any_width(&mut self, count: usize) -> Option<u128> {
        let bytes = self.take(count)?;
        Some(bytes.iter().fold(0, |value, &byte| value << 8 | u128::from(byte)))
    }
}

/// Size in bytes of this many 32-bit words.
pub(crate) const fn word_bytes(words: u8) -> usize {
    (words as usize) << 2
}

/// Appends the low `count` bytes of `value`, most significant first.
pub(crate) fn put_uint(value: u128, count: usize, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let skip = bytes.len().saturating_sub(count);
    out.extend(bytes.iter().skip(skip));
}
