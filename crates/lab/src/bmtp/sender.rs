//! A BMTP sender (sections 3 to 5, and 7).

use super::missing::Repair;
use super::packet::{BmtpData, BmtpStatus, PAYLOAD_BYTES};
use super::pieces::GROUP;
use super::rate::{PacketRate, SendRate};
use super::resends::{ResendQueue, ResendShare};
use crate::no_jobs::NoEvent;
use fontana_fec::codes::dispersal::Dispersal;
use fontana_fec::{Esi, Sbn};
use fontana_proto::feedback::WeightCount;
use fontana_proto::{
    BatchId, BlockId, ChannelId, DatagramBatch, Destination, Endpoint, Instant, Output, SymbolId,
};
use fontana_wire::Toi;
use std::convert::Infallible;
use std::time::Duration;

/// Rate of the empty packets after the end of the data: "a low rate".
const IDLE_RATE: PacketRate = PacketRate::per_second(1);

/// What a sender does.
#[derive(Clone, Copy, Debug)]
pub(super) struct BmtpParameters {
    /// Control is exerted once in this time. Measurements take twice as long.
    pub(super) control_interval: Duration,
    /// The rate at the beginning.
    pub(super) first_rate: PacketRate,
    /// The divisor at the beginning: the assumed number of receivers.
    pub(super) first_divisor: u32,
    /// Part of the packets that may be resends.
    pub(super) share: ResendShare,
    /// How losses are repaired.
    pub(super) repair: Repair,
    /// Number of payloads; `None` if there is no end.
    pub(super) payloads: Option<u64>,
}

/// A sender: one packet after the other, of new data or of what receivers request.
#[derive(Debug)]
pub(super) struct BmtpSender {
    parameters: BmtpParameters,
    rate: SendRate,
    count: WeightCount,
    resends: ResendQueue,
    next_packet: u64,
    next_data: u64,
    /// The code of groups; `None` if packets are repeated as they are.
    dispersal: Option<Dispersal>,
    times: Option<Times>,
}

/// When it acts.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The last packet.
    last: Instant,
    packet: Instant,
    control: Instant,
}

impl BmtpSender {
    /// A sender that begins when it is first polled. `seed`: of the vectors of pieces.
    pub(super) fn new(parameters: BmtpParameters, seed: u64) -> Self {
        let dispersal = match parameters.repair {
            Repair::Plain => None,
            // The group has a valid length.
            Repair::Dispersal => Dispersal::new(GROUP as u32, seed).ok(),
        };
        Self {
            parameters,
            rate: SendRate::new(parameters.first_rate),
            count: WeightCount::new(parameters.first_divisor),
            resends: ResendQueue::new(parameters.share, parameters.control_interval),
            next_packet: 0,
            next_data: 0,
            dispersal,
            times: None,
        }
    }

    fn receive(&mut self, now: Instant, status: &BmtpStatus) {
        self.count.status();
        // When only empty packets are sent, receivers report their rate.
        let reported = PacketRate::of(status.received, status.interval_ms);
        if let Some(reported) = reported.filter(|_| !self.is_at_end()) {
            self.rate.report(reported);
        }
        let nak = status.nak.filter(|&nak| nak < self.next_data);
        let is_accepted = nak.is_some_and(|nak| self.resends.request(now, nak));
        let spacing = self.rate.get().spacing();
        if let Some(times) = self.times.as_mut().filter(|_| is_accepted) {
            // An answer need not wait as long as an empty packet.
            times.packet = times.packet.min(now.max(times.last + spacing));
        }
    }

    fn is_at_end(&self) -> bool {
        self.parameters.payloads.is_some_and(|end| self.next_data >= end)
    }

    /// Writes the next packet. Returns its payload, if it has one, and the time to the next packet.
    fn send(&mut self, now: Instant, header: &mut Vec<u8>) -> (Option<SymbolId>, Duration) {
        let resend = self.resends.next();
        let is_empty = resend.is_none() && self.is_at_end();
        let data = resend.unwrap_or(self.next_data);
        let measurement = self.parameters.control_interval * 2;
        let packet = BmtpData {
            divisor: self.count.announce(),
            interval_ms: u32::try_from(measurement.as_millis()).unwrap_or(u32::MAX),
            packet: self.next_packet,
            data,
        };
        packet.emit(header);
        self.resends.sent(now, resend.is_some());
        let piece = Esi((GROUP as u64 + self.next_packet) as u32);
        self.next_packet += 1;
        if is_empty {
            return (None, IDLE_RATE.spacing());
        }
        self.next_data += u64::from(resend.is_none());
        if let Some(code) = &self.dispersal {
            // All vectors are random: those of ESIs below m are not.
            header.extend(code.vector(piece));
        }
        let payload = SymbolId {
            block: BlockId { toi: Toi(1), sbn: Sbn(0) },
            esi: Esi(data as u32),
            batch: BatchId(0),
            index: 0,
            size: PAYLOAD_BYTES,
        };
        (Some(payload), self.rate.get().spacing())
    }
}

impl Endpoint for BmtpSender {
    type Job = Infallible;
    type Done = Infallible;
    type Event = NoEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for status in batch.iter().filter_map(|(_, packet)| BmtpStatus::parse(packet)) {
            self.receive(now, &status);
        }
    }

    fn handle_done(&mut self, _now: Instant, done: Infallible) {
        match done {}
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<Infallible, NoEvent>> {
        let interval = self.parameters.control_interval;
        let first = Times { last: now, packet: now, control: now + interval };
        let mut times = *self.times.get_or_insert(first);
        while times.control <= now {
            self.count.adjust();
            self.rate.adjust();
            times.control = times.control + interval;
        }
        let symbol = (times.packet <= now).then(|| {
            let (symbol, spacing) = self.send(now, header);
            times.last = times.packet;
            times.packet = times.packet + spacing;
            symbol
        });
        self.times = Some(times);
        let symbol = symbol?;
        Some(Output::Transmit { to: Destination::Channel(ChannelId::BASE), symbol })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.times.map(|times| times.packet.min(times.control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmtp::packet::UDP_IP_BYTES;
    use fontana_proto::{Datagram, Ecn, Port};

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn sender(repair: Repair, payloads: Option<u64>) -> BmtpSender {
        let parameters = BmtpParameters {
            control_interval: Duration::from_secs(10),
            first_rate: PacketRate::per_second(40),
            first_divisor: 1_000,
            share: ResendShare::Half,
            repair,
            payloads,
        };
        BmtpSender::new(parameters, 1)
    }

    /// A packet that was sent.
    #[derive(Debug, PartialEq, Eq)]
    struct Sent {
        header: BmtpData,
        /// Bytes of UDP and IP included.
        bytes: u32,
    }

    /// The packets until a time.
    fn run(sender: &mut BmtpSender, until: Instant) -> Vec<Sent> {
        let mut packets = Vec::new();
        let mut now = sender.poll_timeout().unwrap_or(Instant::ZERO);
        while now <= until {
            let mut bytes = Vec::new();
            while let Some(output) = sender.poll_output(now, &mut bytes) {
                let Output::Transmit { symbol, .. } = output else { panic!("{output:?}") };
                let (header, _) = BmtpData::parse(&bytes).unwrap();
                let payload = symbol.map_or(0, |symbol| u32::from(symbol.size));
                packets.push(Sent { header, bytes: bytes.len() as u32 + payload + UDP_IP_BYTES });
                bytes.clear();
            }
            now = sender.poll_timeout().unwrap();
        }
        packets
    }

    fn report(sender: &mut BmtpSender, now: Instant, status: BmtpStatus) {
        let mut packet = Vec::new();
        status.emit(&mut packet);
        let datagram = Datagram {
            from: ([10, 0, 0, 2], 7701).into(),
            port: Port::Feedback,
            ecn: Ecn::NotEct,
            dropped_before: 0,
            payload: 0..packet.len() as u32,
        };
        sender.handle_datagrams(now, &DatagramBatch::one(&packet, &datagram));
    }

    fn nak(data: u64) -> BmtpStatus {
        BmtpStatus { interval_ms: 0, received: 0, lost: 0, nak: Some(data) }
    }

    #[test]
    fn packets_are_paced_and_all_are_numbered() {
        let mut sender = sender(Repair::Plain, None);
        let packets = run(&mut sender, at(999));
        assert_eq!(packets.len(), 40);
        report(&mut sender, at(999), nak(7));
        let packets = run(&mut sender, at(1_025));
        let header = |packet, data| BmtpData { divisor: 1_000, interval_ms: 20_000, packet, data };
        let sent = |packet, data| Sent { header: header(packet, data), bytes: 564 };
        assert_eq!(packets, [sent(40, 7), sent(41, 40)]);
    }

    #[test]
    fn a_payload_that_was_never_sent_is_not_sent_again() {
        let mut sender = sender(Repair::Plain, None);
        run(&mut sender, at(999));
        report(&mut sender, at(999), nak(40));
        report(&mut sender, at(999), nak(u64::MAX - 1));
        assert_eq!(run(&mut sender, at(1_000))[0].header.data, 40);
    }

    #[test]
    fn a_lower_report_takes_effect_at_once_and_a_higher_one_at_the_control_instant() {
        let mut sender = sender(Repair::Plain, None);
        run(&mut sender, at(999));
        let status = |received| BmtpStatus { interval_ms: 20_000, received, lost: 0, nak: None };
        report(&mut sender, at(999), status(400));
        let packets = run(&mut sender, at(2_999));
        assert_eq!(packets.len(), 40);
        report(&mut sender, at(2_999), status(600));
        // 20 until the control instant, and 21 from then on.
        assert_eq!(run(&mut sender, at(9_999)).len(), 140);
        assert!((209..=211).contains(&run(&mut sender, at(19_999)).len()));
    }

    #[test]
    fn after_the_end_of_the_data_empty_packets_are_sent_and_requests_answered() {
        let mut sender = sender(Repair::Plain, Some(4));
        let packets = run(&mut sender, at(2_099));
        let sizes: Vec<u32> = packets.iter().map(|packet| packet.bytes).collect();
        assert_eq!(sizes, [564, 564, 564, 564, 52, 52]);
        assert!(packets[4..].iter().all(|packet| packet.header.data == 4));
        report(&mut sender, at(2_099), nak(1));
        let packets = run(&mut sender, at(3_100));
        let data: Vec<u64> = packets.iter().map(|packet| packet.header.data).collect();
        assert_eq!(data, [1, 4]);
        // Reports are of the empty packets.
        let status = BmtpStatus { interval_ms: 20_000, received: 20, lost: 0, nak: None };
        report(&mut sender, at(3_100), status);
        assert_eq!(sender.rate.get(), PacketRate::per_second(40));
    }

    #[test]
    fn a_piece_has_its_vector_and_no_two_pieces_of_a_group_the_same() {
        let mut sender = sender(Repair::Dispersal, None);
        let packets = run(&mut sender, at(999));
        assert!(packets.iter().all(|packet| packet.bytes == 569));
        report(&mut sender, at(999), nak(5));
        let mut bytes = Vec::new();
        assert!(sender.poll_output(at(1_000), &mut bytes).is_some());
        let (header, vector) = BmtpData::parse(&bytes).unwrap();
        assert_eq!((header.packet, header.data, vector.len()), (40, 5, GROUP));
        let code = Dispersal::new(GROUP as u32, 1).unwrap();
        let vectors = (0..41).map(|packet| code.vector(Esi(GROUP as u32 + packet)));
        assert_eq!(vectors.collect::<std::collections::BTreeSet<_>>().len(), 41);
        assert_eq!(vector, code.vector(Esi(45)));
    }
}
