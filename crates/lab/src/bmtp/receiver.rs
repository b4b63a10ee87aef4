//! A BMTP receiver (sections 3 to 5, and 7).

use super::missing::{MissingData, Repair};
use super::packet::{BmtpData, BmtpStatus};
use super::receive_rate::{PacketCounts, ReceiveRate};
use crate::no_jobs::NoEvent;
use fontana_proto::feedback::{answers, status_weight};
use fontana_proto::{ChannelId, DatagramBatch, Destination, Endpoint, Instant, Output, SplitMix64};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

/// A receiver: it records what it misses, and answers data packets at random.
#[derive(Debug)]
pub(super) struct BmtpReceiver {
    repair: Repair,
    most_weight: u32,
    random: SplitMix64,
    has_joined: bool,
    /// From the first packet on.
    reception: Option<OngoingReception>,
    /// The status packet to send next, and the sender's address.
    answer: Option<(SocketAddr, BmtpStatus)>,
}

#[derive(Debug)]
struct OngoingReception {
    missing: MissingData,
    rate: ReceiveRate,
}

impl BmtpReceiver {
    /// A receiver that has not joined yet. `most_weight`: the paper's K. Each receiver has random
    /// numbers of its own.
    pub(super) fn new(repair: Repair, most_weight: u32, random: SplitMix64) -> Self {
        Self { repair, most_weight, random, has_joined: false, reception: None, answer: None }
    }

    /// Packets or pieces that it misses.
    pub(super) fn missing(&self) -> u64 {
        self.reception.as_ref().map_or(0, |reception| reception.missing.count())
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, packet: &[u8]) {
        let Some((header, rest)) = BmtpData::parse(packet) else { return };
        let BmtpData { divisor, interval_ms, packet, data } = header;
        let repair = self.repair;
        let reception = self.reception.get_or_insert_with(|| {
            let interval = Duration::from_millis(interval_ms.into());
            // The control interval is half of the measurement interval.
            let missing = MissingData::new(repair, data, interval / 2);
            OngoingReception { missing, rate: ReceiveRate::new(now, interval, packet) }
        });
        reception.rate.receive(now, packet);
        let vector = match repair {
            Repair::Plain => None,
            Repair::Dispersal => rest.first_chunk().copied(),
        };
        if rest.is_empty() {
            reception.missing.end(now, data);
        } else {
            reception.missing.receive(now, data, vector);
        }
        let weight = status_weight(reception.missing.count(), self.most_weight);
        if answers(weight, divisor, &mut self.random) {
            let nak = reception.missing.ask(now, &mut self.random);
            let counts = reception.rate.counts(now);
            let PacketCounts { interval_ms, received, lost } = counts.unwrap_or_default();
            self.answer = Some((from, BmtpStatus { interval_ms, received, lost, nak }));
        }
    }
}

impl Endpoint for BmtpReceiver {
    type Job = Infallible;
    type Done = Infallible;
    type Event = NoEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for (datagram, packet) in batch.iter() {
            self.receive(now, datagram.from, packet);
        }
    }

    fn handle_done(&mut self, _now: Instant, done: Infallible) {
        match done {}
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_output(
        &mut self,
        _now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<Infallible, NoEvent>> {
        if !std::mem::replace(&mut self.has_joined, true) {
            return Some(Output::Join(ChannelId::BASE));
        }
        let (sender, status) = self.answer.take()?;
        status.emit(header);
        Some(Output::Transmit { to: Destination::Sender(sender), symbol: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_proto::{Datagram, Ecn, Port};

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn receiver() -> BmtpReceiver {
        BmtpReceiver::new(Repair::Plain, 100, SplitMix64::new(1, 0))
    }

    /// The answer to a data packet, whose payload is a byte, or none.
    fn answer(
        receiver: &mut BmtpReceiver,
        now: Instant,
        header: BmtpData,
        payload: &[u8],
    ) -> Option<BmtpStatus> {
        let mut packet = Vec::new();
        header.emit(&mut packet);
        packet.extend(payload);
        let datagram = Datagram {
            from: ([10, 0, 0, 1], 7701).into(),
            port: Port::BASE,
            ecn: Ecn::NotEct,
            dropped_before: 0,
            payload: 0..packet.len() as u32,
        };
        receiver.handle_datagrams(now, &DatagramBatch::one(&packet, &datagram));
        let mut answer = Vec::new();
        while let Some(output) = receiver.poll_output(now, &mut answer) {
            assert!(
                matches!(
                    output,
                    Output::Join(_) | Output::Transmit { to: Destination::Sender(_), symbol: None }
                ),
                "{output:?}"
            );
        }
        BmtpStatus::parse(&answer)
    }

    fn header(divisor: u32, packet: u64, data: u64) -> BmtpData {
        BmtpData { divisor, interval_ms: 20_000, packet, data }
    }

    #[test]
    fn a_receiver_asks_from_a_control_interval_on_and_reports_from_a_measurement_interval_on() {
        let mut receiver = receiver();
        let mut statuses = Vec::new();
        for second in 0..=20 {
            // Packet 1 is lost.
            let number = if second == 0 { 0 } else { second + 1 };
            let answer = answer(&mut receiver, at(1_000 * second), header(1, number, number), b"x");
            statuses.push(answer.expect("its weight is the divisor"));
        }
        let asked: Vec<usize> = (0..21).filter(|&at| statuses[at].nak == Some(1)).collect();
        // The gap is noticed in second 1.
        assert_eq!(asked, [11]);
        let reports = statuses.iter().map(|status| status.interval_ms);
        assert_eq!(reports.collect::<Vec<_>>(), [[0; 20].as_slice(), &[20_000]].concat());
        assert_eq!((statuses[20].received, statuses[20].lost), (21, 1));
    }

    #[test]
    fn a_receiver_that_misses_more_answers_more_often() {
        let answers = |missing: u64| {
            let mut receiver = receiver();
            let mut count = 0;
            answer(&mut receiver, at(0), header(u32::MAX, 0, 0), b"x");
            for packet in 0..1_000 {
                let number = missing + 1 + packet;
                count += u32::from(
                    answer(&mut receiver, at(1), header(200, number, number), b"x").is_some(),
                );
            }
            count
        };
        // 5, 250 and 500 are expected.
        assert!((1..12).contains(&answers(0)), "{}", answers(0));
        assert!((200..300).contains(&answers(50)), "{}", answers(50));
        assert!((430..570).contains(&answers(5_000)), "{}", answers(5_000));
    }

    #[test]
    fn an_empty_packet_shows_the_end_of_the_data_and_is_answered() {
        let mut receiver = receiver();
        answer(&mut receiver, at(0), header(1, 0, 0), b"x");
        assert!(answer(&mut receiver, at(1), header(1, 3, 3), b"").is_some());
        assert_eq!(receiver.missing(), 2);
    }

    #[test]
    fn packets_that_are_too_short_are_ignored() {
        let mut receiver = receiver();
        let datagram = Datagram {
            from: ([10, 0, 0, 1], 7701).into(),
            port: Port::BASE,
            ecn: Ecn::NotEct,
            dropped_before: 0,
            payload: 0..23,
        };
        receiver.handle_datagrams(at(0), &DatagramBatch::one(&[0; 23], &datagram));
        assert!(receiver.answer.is_none() && receiver.reception.is_none());
    }
}
