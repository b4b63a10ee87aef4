//! Senders with a collection, and the answers that they get.

use super::plain::{CLOCK, Plain};
use fontana_proto::report::{
    Authentic, Authority, CollectorConfig, Expected, PacketCounts, ReportFacts,
};
use fontana_proto::{CollectionConfig, RepairBy, SendDone};
use fontana_wire::{
    Feedback, FeedbackDatagram, Hash, InstanceId, ReceiverId, ReceiverReport, ReceiverState,
    RollCallEcho, SealId, Tsi,
};

pub(crate) const INSTANCE: InstanceId = InstanceId([5; 16]);

pub(crate) const COLLECTOR: &str = "10.0.0.7:40007";

/// A collection of the reports of any receivers of session 5.
pub(crate) fn collection(repair: RepairBy, expected: Expected, seed: u64) -> CollectionConfig {
    let collector = CollectorConfig {
        expected,
        ..CollectorConfig::new(INSTANCE, Tsi(5), Hash([3; 32]), COLLECTOR.parse().unwrap(), seed)
    };
    CollectionConfig { repair, ..CollectionConfig::new(collector, 1_000) }
}

/// The facts of a receiver that loses this part of the packets.
pub(crate) fn facts(loss: f64) -> ReportFacts {
    let lost = (loss * 1e6) as u64;
    let packets = PacketCounts { received: 1_000_000 - lost, lost, ..PacketCounts::default() };
    ReportFacts { packets, ..ReportFacts::default() }
}

/// The report of a receiver in this state.
pub(crate) fn report(
    receiver: ReceiverId,
    label: &str,
    state: ReceiverState,
    round: u32,
) -> ReceiverReport {
    ReceiverReport {
        receiver,
        label: label.parse().unwrap(),
        started_unix_ms: CLOCK,
        round,
        echo: RollCallEcho::default(),
        state,
        permille: 500,
        symbols_lacking: 10,
        loss_ppm: 0,
        kernel_drops: 0,
        channels: 1,
        seconds: 1,
    }
}

/// An answer for which `by` vouches.
pub(crate) fn authentic(feedback: &Feedback, counter: u64, by: Authority) -> Authentic {
    let bytes = feedback.emit(SealId::from(INSTANCE), counter, None, None::<&Plain>);
    let opened = FeedbackDatagram::parse(&bytes).unwrap().open(None::<&Plain>).unwrap();
    Authentic { opened, by }
}

/// The same, of a datagram of a receiver without keys.
pub(crate) fn received(datagram: &[u8], by: Authority) -> SendDone {
    let opened = FeedbackDatagram::parse(datagram).unwrap().open(None::<&Plain>).unwrap();
    SendDone::Opened(Some(Box::new(Authentic { opened, by })))
}

/// The same, as the driver of a sender says it.
pub(crate) fn opened(feedback: &Feedback, counter: u64, by: Authority) -> SendDone {
    SendDone::Opened(Some(Box::new(authentic(feedback, counter, by))))
}
