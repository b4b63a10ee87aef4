//! Layers that a receiver takes whatever congestion control says.

use fontana_proto::{
    ChannelId, Instant, Level, Membership, PacketSeen, SequenceTracker, SubscriptionControl,
};

/// Layers of a receiver: the lowest ones, some at the start and the others later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenLayers {
    /// Layers that it joins at the start.
    pub(crate) first: u8,
    /// Layers that it joins altogether.
    pub(crate) all: u8,
    /// Time at which it joins the others.
    pub(crate) others_at: Instant,
}

impl TakenLayers {
    pub(crate) const fn control(self) -> LayersInTurn {
        LayersInTurn { taken: self, wanted: self.first, joined: 0 }
    }
}

/// Joins the layers of [`TakenLayers`].
#[derive(Debug)]
pub(crate) struct LayersInTurn {
    taken: TakenLayers,
    wanted: u8,
    joined: u8,
}

impl SubscriptionControl for LayersInTurn {
    fn on_packet(&mut self, _now: Instant, _packet: &PacketSeen) {}

    fn on_timeout(&mut self, now: Instant, _sequence: &mut SequenceTracker) {
        if now >= self.taken.others_at {
            self.wanted = self.taken.all;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.wanted < self.taken.all).then_some(self.taken.others_at)
    }

    fn poll_membership(&mut self) -> Option<Membership> {
        let next = (self.joined < self.wanted).then_some(Membership::Join(ChannelId(self.joined)));
        self.joined += u8::from(next.is_some());
        next
    }

    fn level(&self) -> Level {
        Level { channels: self.wanted, rate_bytes_per_second: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_others_are_joined_when_their_time_has_come() {
        let others_at = Instant::ZERO + Duration::from_secs(20);
        let mut control = TakenLayers { first: 2, all: 3, others_at }.control();
        let joins = |control: &mut LayersInTurn| {
            std::iter::from_fn(|| control.poll_membership()).collect::<Vec<_>>()
        };
        let join = |channel| Membership::Join(ChannelId(channel));
        assert_eq!(joins(&mut control), [join(0), join(1)]);
        assert_eq!(control.poll_timeout(), Some(others_at));
        let mut sequence = SequenceTracker::default();
        control.on_timeout(Instant::ZERO, &mut sequence);
        assert_eq!(joins(&mut control), []);
        control.on_timeout(others_at, &mut sequence);
        assert_eq!((joins(&mut control), control.poll_timeout()), (vec![join(2)], None));
        let mut control = TakenLayers { first: 3, all: 3, others_at }.control();
        assert_eq!((joins(&mut control).len(), control.poll_timeout()), (3, None));
    }
}
