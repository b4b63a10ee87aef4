//! What a run counts at the sender, from the packets alone.

use super::packet::{BmtpData, BmtpStatus};
use fontana_proto::Instant;
use fontana_sim::{HostEvent, NodeId, Observer, Packet};

/// Packets of one second, and status packets that arrived in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecondOfPackets {
    pub(super) sent: u32,
    pub(super) resent: u32,
    pub(super) statuses: u32,
    pub(super) naks: u32,
}

impl SecondOfPackets {
    /// The sums of several seconds.
    pub(super) fn sum(seconds: &[Self]) -> Self {
        seconds.iter().fold(Self::default(), |sum, each| Self {
            sent: sum.sent + each.sent,
            resent: sum.resent + each.resent,
            statuses: sum.statuses + each.statuses,
            naks: sum.naks + each.naks,
        })
    }
}

/// A payload, or the first one of a group.
#[derive(Clone, Copy, Debug)]
struct PayloadHistory {
    first_sent: Instant,
    times_sent: u32,
    /// The first request for it.
    first_nak: Option<Instant>,
}

/// Observes the sender.
#[derive(Debug)]
pub(super) struct FeedbackLog {
    sender: NodeId,
    /// When the sender begins.
    begins: Instant,
    seconds: Vec<SecondOfPackets>,
    payloads: Vec<PayloadHistory>,
}

impl FeedbackLog {
    pub(super) fn new(sender: NodeId, begins: Instant) -> Self {
        Self { sender, begins, seconds: Vec::new(), payloads: Vec::new() }
    }

    /// The seconds of the run, from the sender's first packet on.
    pub(super) fn seconds(&self) -> &[SecondOfPackets] {
        &self.seconds
    }

    /// Per cent of the payloads that were sent more than `times` times.
    pub(super) fn percent_sent_more_than(&self, times: u32) -> f64 {
        let more = self.payloads.iter().filter(|payload| payload.times_sent > times).count();
        100.0 * more as f64 / self.payloads.len() as f64
    }

    /// Mean number of seconds from when a payload is sent to when it is first requested, of those
    /// that are requested.
    pub(super) fn seconds_to_first_nak(&self) -> f64 {
        let wait = |payload: &PayloadHistory| {
            Some(payload.first_nak?.saturating_since(payload.first_sent).as_secs_f64())
        };
        let waits: Vec<f64> = self.payloads.iter().filter_map(wait).collect();
        crate::statistics::mean(&waits)
    }

    fn second(&mut self, now: Instant) -> Option<&mut SecondOfPackets> {
        let second = now.saturating_since(self.begins).as_secs() as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, SecondOfPackets::default());
        }
        self.seconds.get_mut(second)
    }

    /// The sender has sent a packet.
    pub(super) fn on_data(&mut self, now: Instant, data: BmtpData) {
        let place = data.data as usize;
        let is_resend = place < self.payloads.len();
        if let Some(payload) = self.payloads.get_mut(place) {
            payload.times_sent += 1;
        } else {
            self.payloads.push(PayloadHistory { first_sent: now, times_sent: 1, first_nak: None });
        }
        if let Some(second) = self.second(now) {
            second.sent += 1;
            second.resent += u32::from(is_resend);
        }
    }

    /// A status packet has arrived at the sender.
    pub(super) fn on_status(&mut self, now: Instant, status: BmtpStatus) {
        if let Some(second) = self.second(now) {
            second.statuses += 1;
            second.naks += u32::from(status.nak.is_some());
        }
        let payload = status.nak.and_then(|nak| self.payloads.get_mut(nak as usize));
        if let Some(payload) = payload {
            payload.first_nak.get_or_insert(now);
        }
    }
}

impl<Event: HostEvent> Observer<Event> for FeedbackLog {
    fn on_transmit(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let header = BmtpData::parse(&packet.header).filter(|_| node == self.sender);
        if let Some((header, _)) = header {
            self.on_data(now, header);
        }
    }

    fn on_deliver(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let status = (node == self.sender).then(|| BmtpStatus::parse(&packet.header)).flatten();
        if let Some(status) = status {
            self.on_status(now, status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn packets_count_in_their_second_and_repeated_ones_as_resends() {
        let mut log = FeedbackLog::new(NodeId(0), at(1));
        for (packet, (milliseconds, data)) in
            (0..).zip([(1, 0), (501, 1), (1_000, 0), (1_001, 2), (2_500, 0)])
        {
            let header = BmtpData { divisor: 1, interval_ms: 20_000, packet, data };
            log.on_data(at(milliseconds), header);
        }
        let status = |nak| BmtpStatus { interval_ms: 0, received: 0, lost: 0, nak };
        log.on_status(at(901), status(Some(0)));
        log.on_status(at(950), status(Some(0)));
        log.on_status(at(2_000), status(None));
        let second =
            |sent, resent, statuses, naks| SecondOfPackets { sent, resent, statuses, naks };
        assert_eq!(log.seconds(), [second(3, 1, 2, 2), second(1, 0, 1, 0), second(1, 1, 0, 0)]);
        assert_eq!(SecondOfPackets::sum(log.seconds()), second(5, 2, 3, 2));
        assert!((log.percent_sent_more_than(2) - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(log.seconds_to_first_nak(), 0.9);
    }
}
