//! A session of BMTP between hosts, over real sockets: a sender, and receivers behind an emulator
//! each, whose status packets share the link back. The payloads are bytes that receivers compare.

use super::log::{FeedbackLog, SecondOfPackets};
use super::packet::{BmtpData, BmtpStatus, PAYLOAD_BYTES, UDP_IP_BYTES};
use super::receiver::BmtpReceiver;
use super::run::{BmtpSetting, receiver_random};
use super::sender::BmtpSender;
use crate::hosts::endpoints::{EndpointRun, HostedEndpoint, LinkedEndpoint, RunOutcome};
use crate::hosts::{HostsError, line};
use crate::no_jobs::{NoEvent, NoJobs};
use fontana_proto::{Driver, Instant, SplitMix64, SymbolId};
use fontana_sim::{LinkConfig, NodeId};
use std::time::Duration;

/// A session that has not started.
#[derive(Debug)]
pub(super) struct BmtpSession {
    /// The protocol's parameters and the link back. Its paths are those of simulations.
    pub(super) setting: BmtpSetting,
    /// The path to each receiver.
    pub(super) paths: Vec<LinkConfig>,
    /// Real seconds that it takes.
    pub(super) seconds: u64,
    pub(super) seed: u64,
}

/// A session that has ended.
#[derive(Debug)]
pub(super) struct BmtpSessionLog {
    /// Packets of each second at the sender.
    pub(super) sender: Vec<SecondOfPackets>,
    /// For each receiver, its counts at the end of each second.
    pub(super) receivers: Vec<Vec<ReceiverCounts>>,
    /// Packets that this computer lost, and not the links.
    pub(super) lost_here: u64,
    /// Longest delay of a packet in an emulator beyond that of the link.
    pub(super) late: Duration,
}

/// Counts of a receiver since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceiverCounts {
    pub(super) received: u64,
    /// Bytes of the received packets, with UDP and IP headers.
    pub(super) bytes: u64,
    /// Packets that did not arrive, of those between the first and the last one that did. The
    /// switch of a busy computer may learn of a receiver after the first packet.
    pub(super) lost: u64,
    /// Payloads that it misses.
    pub(super) missing: u64,
    /// Packets whose payload is not the one with their number.
    pub(super) wrong: u64,
}

impl BmtpSession {
    /// Runs in real time.
    ///
    /// # Errors
    /// [`HostsError`] if the network cannot be created, or fails.
    pub(super) fn run(self) -> Result<BmtpSessionLog, HostsError> {
        let Self { setting, paths, seconds, seed } = self;
        let parameters = setting.parameters();
        let receiver = |(path, index): (LinkConfig, u64)| {
            let random = receiver_random(seed, index);
            let endpoint = BmtpReceiver::new(parameters.repair, setting.most_weight, random);
            LinkedEndpoint {
                endpoint: ReceivingBmtp {
                    driver: Driver::new(endpoint, NoJobs),
                    counts: ReceiverCounts::default(),
                    first_packet: None,
                    next_packet: 0,
                    seconds: Vec::new(),
                },
                // A stream for each link.
                link: line(path, seed.wrapping_add(index + 1)),
                starts_after: Duration::ZERO,
            }
        };
        let sender = SendingBmtp {
            driver: Driver::new(BmtpSender::new(parameters, seed), NoJobs),
            // The log of a simulation knows hosts by their nodes; this one is of one host.
            log: FeedbackLog::new(NodeId(0), Instant::ZERO),
        };
        let run = EndpointRun {
            senders: vec![sender],
            receivers: paths.into_iter().zip(0..).map(receiver).collect(),
            channels: 1,
            link_back: Some(line(setting.path_back(), seed)),
            limit: Duration::from_secs(seconds),
        };
        let RunOutcome { senders, receivers } = run.run()?;
        let lost_here = senders.iter().map(|host| host.lost_here).sum::<u64>()
            + receivers.iter().map(|host| host.lost_here).sum::<u64>();
        let late = senders.iter().map(|host| host.late);
        let late = late.chain(receivers.iter().map(|host| host.late)).max().unwrap_or_default();
        let seconds = seconds as usize;
        let of_sender = senders.iter().flat_map(|host| host.endpoint.log.seconds());
        let mut sender: Vec<SecondOfPackets> = of_sender.copied().collect();
        sender.resize(seconds, SecondOfPackets::default());
        let counts = |receiver: ReceivingBmtp| {
            let ReceivingBmtp { counts, seconds: mut each, .. } = receiver;
            each.resize(seconds, counts);
            each
        };
        let receivers = receivers.into_iter().map(|host| counts(host.endpoint)).collect();
        Ok(BmtpSessionLog { sender, receivers, lost_here, late })
    }
}

/// The bytes of the payload with this number.
fn payload(number: u64) -> impl Iterator<Item = u8> {
    let mut random = SplitMix64::new(number, 0);
    let words = std::iter::repeat_with(move || random.next_u64().to_be_bytes());
    words.flatten().take(PAYLOAD_BYTES.into())
}

#[derive(Debug)]
struct SendingBmtp {
    driver: Driver<BmtpSender, NoJobs>,
    log: FeedbackLog,
}

impl HostedEndpoint for SendingBmtp {
    type Endpoint = BmtpSender;
    type Runner = NoJobs;

    fn driver(&mut self) -> &mut Driver<BmtpSender, NoJobs> {
        &mut self.driver
    }

    fn write_symbol(&mut self, symbol: &SymbolId, packet: &mut Vec<u8>) {
        packet.extend(payload(symbol.esi.0.into()));
    }

    fn on_transmit(&mut self, now: Instant, packet: &[u8]) {
        if let Some((header, _)) = BmtpData::parse(packet) {
            self.log.on_data(now, header);
        }
    }

    fn on_deliver(&mut self, now: Instant, packet: &[u8]) {
        if let Some(status) = BmtpStatus::parse(packet) {
            self.log.on_status(now, status);
        }
    }

    fn on_event(&mut self, _now: Instant, event: NoEvent) {
        match event {}
    }
}

#[derive(Debug)]
struct ReceivingBmtp {
    driver: Driver<BmtpReceiver, NoJobs>,
    counts: ReceiverCounts,
    first_packet: Option<u64>,
    /// The packet after the last one.
    next_packet: u64,
    /// At the end of each second so far.
    seconds: Vec<ReceiverCounts>,
}

impl HostedEndpoint for ReceivingBmtp {
    type Endpoint = BmtpReceiver;
    type Runner = NoJobs;

    fn driver(&mut self) -> &mut Driver<BmtpReceiver, NoJobs> {
        &mut self.driver
    }

    fn on_deliver(&mut self, now: Instant, packet: &[u8]) {
        let Some((header, bytes)) = BmtpData::parse(packet) else { return };
        let second = now.saturating_since(Instant::ZERO).as_secs() as usize;
        self.seconds.resize(second.max(self.seconds.len()), self.counts);
        let is_right = bytes.iter().copied().eq(payload(header.data));
        self.counts.received += 1;
        self.counts.bytes += packet.len() as u64 + u64::from(UDP_IP_BYTES);
        self.counts.wrong += u64::from(!is_right);
        // Links do not reorder.
        self.next_packet = self.next_packet.max(header.packet + 1);
        let first = *self.first_packet.get_or_insert(header.packet);
        self.counts.lost = (self.next_packet - first).saturating_sub(self.counts.received);
        self.counts.missing = self.driver.endpoint.missing();
    }

    fn on_event(&mut self, _now: Instant, event: NoEvent) {
        match event {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmtp::rate::PacketRate;
    use crate::hosts;
    use fontana_sim::LossModel;

    #[test]
    fn status_packets_reach_the_sender_and_each_payload_has_its_bytes() {
        if !hosts::are_possible() {
            return;
        }
        let setting = BmtpSetting {
            first_rate: PacketRate::per_second(50),
            // Each receiver answers every packet.
            first_divisor: 1,
            ..BmtpSetting::one_slow(2, 0.0)
        };
        let path = LinkConfig::default();
        let second = LossModel::Periodic { period: 2, first: 1 };
        let paths = vec![path.clone(), path.with_loss(second)];
        let session = BmtpSession { setting, paths, seconds: 2, seed: 1 };
        let log = session.run().expect("hosts");
        let sent = SecondOfPackets::sum(&log.sender);
        // On a busy host the last packets are late, or on their way at the end.
        assert!((85..=101).contains(&sent.sent), "{sent:?}");
        let ends = log.receivers.iter().map(|seconds| seconds[1]);
        let ends: Vec<ReceiverCounts> = ends.collect();
        let nearly = |count: u64, expected: u32| {
            count <= u64::from(expected) + 3 && count * 10 >= u64::from(expected) * 8
        };
        assert!(nearly(ends[0].received, sent.sent) && ends[0].lost == 0, "{ends:?}");
        assert!(nearly(ends[1].lost, sent.sent / 2) && ends[1].missing == ends[1].lost, "{ends:?}");
        assert_eq!(ends[0].bytes, ends[0].received * 564);
        assert!(ends.iter().all(|end| end.wrong == 0), "{ends:?}");
        assert!(nearly(sent.statuses.into(), sent.sent * 3 / 2), "{sent:?}");
        assert_eq!(log.lost_here, 0);
    }

    #[test]
    fn payloads_differ() {
        let bytes = |number| payload(number).collect::<Vec<_>>();
        assert_eq!((bytes(7).len(), bytes(7)), (512, bytes(7)));
        assert_ne!(bytes(7), bytes(8));
    }
}
