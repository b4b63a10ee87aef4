//! The channels of a session, and sets of them.

/// One LCT channel of a session: a multicast group, identified here by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u8);

impl ChannelId {
    /// The channel that every receiver joins first, and the slowest one.
    pub const BASE: Self = Self(0);
}

/// A set of channels, one bit for each of the 256: a look-up per packet takes constant time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelSet {
    bits: [u64; 4],
    count: u16,
}

impl ChannelSet {
    /// True if `channel` is in the set.
    pub fn contains(&self, ChannelId(channel): ChannelId) -> bool {
        let word = self.bits.get(usize::from(channel >> 6)).copied().unwrap_or(0);
        word >> (channel & 63) & 1 == 1
    }

    /// Adds `channel`. False if the set contained it.
    pub fn insert(&mut self, channel: ChannelId) -> bool {
        let is_new = !self.contains(channel);
        if let Some(word) = self.bits.get_mut(usize::from(channel.0 >> 6)) {
            *word |= 1 << (channel.0 & 63);
        }
        self.count += u16::from(is_new);
        is_new
    }

    /// Removes `channel`. False if the set did not contain it.
    pub fn remove(&mut self, channel: ChannelId) -> bool {
        let was_there = self.contains(channel);
        if let Some(word) = self.bits.get_mut(usize::from(channel.0 >> 6)) {
            *word &= !(1 << (channel.0 & 63));
        }
        self.count -= u16::from(was_there);
        was_there
    }

    /// The number of channels.
    pub fn len(&self) -> usize {
        self.count.into()
    }

    /// True if the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The channels, in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ChannelId> + '_ {
        (0..=u8::MAX).map(ChannelId).filter(|&channel| self.contains(channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_channels_holds_all_256() {
        let mut set = ChannelSet::default();
        assert!(set.is_empty());
        for channel in [255, 0, 64, 63, 128].map(ChannelId) {
            assert!(set.insert(channel) && !set.insert(channel));
        }
        assert!(set.remove(ChannelId(64)) && !set.remove(ChannelId(64)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 128, 255].map(ChannelId));
        assert_eq!(set.iter().next_back(), Some(ChannelId(255)));
        assert_eq!(set.len(), 4);
    }
}
