//! Jobs of a receiver that fail: they end their object, and no other one.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, receiver_config, run, sender,
};
use fontana_proto::{ReceiverEvent, ReceiverLimits};
use fontana_wire::Toi;
use std::time::Duration;

#[test]
fn an_object_that_cannot_be_recovered_does_not_delay_the_others() {
    let shapes = [(40 * usize::from(T), 4), (40 * usize::from(T), 2)];
    for failing in [Toi(1), Toi(2)] {
        let content = Content::new(&shapes, 5);
        let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
        let mut config = receiver_config();
        config.limits = ReceiverLimits { max_recoveries: 1, ..config.limits };
        let mut receivers = [ReceiverDriver::new(config, 0.2, 3)];
        receivers[0].runner.cannot_recover = Some(failing);
        run(&mut senders, &mut receivers, Duration::from_secs(5));
        let events = &receivers[0].events;
        let is_failed = |e: &ReceiverEvent| matches!(e, ReceiverEvent::ObjectFailed { toi, .. } if *toi == failing);
        let is_done = |e: &ReceiverEvent| matches!(e, ReceiverEvent::ObjectDone { toi, .. } if *toi != failing);
        assert!(events.iter().any(is_failed), "{events:?}");
        assert!(events.iter().any(is_done), "{events:?}");
        assert!(matches!(events.last(), Some(ReceiverEvent::GivenUp { .. })), "{events:?}");
    }
}
