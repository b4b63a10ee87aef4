//! One direction of an emulator, without a clock and without sockets.

use fontana_net::Frame;
use fontana_proto::{Instant, SplitMix64};
use fontana_sim::{DueEvent, EventQueue, Fate, Link, LinkConfig, LinkStats, WireFaults};

/// Least bytes that a frame counts, the shortest IP packet (RFC 791, section 3.1). It limits the
/// number of frames in a queue.
const SHORTEST_PACKET: usize = 20;

/// A link of the simulator with the frames that are on it.
#[derive(Debug)]
pub struct FrameLink {
    link: Link,
    random: SplitMix64,
    every_frame: bool,
    on_the_way: EventQueue<Frame>,
    bytes_on_the_way: usize,
    stats: FrameLinkStats,
}

/// What a [`FrameLink`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameLinkStats {
    /// Counters of the link, for the frames that it applies to.
    pub link: LinkStats,
    /// Control frames, which were only delayed.
    pub exempt: u64,
    /// Frames that were dropped because the emulator's memory was full.
    pub overflow: u64,
    /// Frames of several packets (GSO batches), which had one fate.
    pub trains: u64,
}

impl FrameLink {
    /// Most bytes on the link: a second at half a gigabit per second. Further frames are dropped
    /// and counted.
    pub const ROOM: usize = 64 << 20;

    /// A link with this configuration, without its marks and faults. With the same random stream
    /// and the same order of packets, it loses the same packets as in a simulation. Control frames
    /// are only delayed.
    pub fn new(link: LinkConfig, random: SplitMix64) -> Self {
        let link = LinkConfig { mark_from: None, faults: WireFaults::default(), ..link };
        Self {
            link: Link::new(link),
            random,
            every_frame: false,
            on_the_way: EventQueue::new(),
            bytes_on_the_way: 0,
            stats: FrameLinkStats::default(),
        }
    }

    /// The same, with the link applied to control frames too.
    pub fn for_every_frame(self) -> Self {
        Self { every_frame: true, ..self }
    }

    /// Offers a frame at `now`, which must not decrease.
    pub fn offer(&mut self, now: Instant, frame: Frame) {
        if !self.every_frame && keeps_network_together(frame.bytes()) {
            self.stats.exempt += 1;
            self.put(now + self.link.config().delay, frame);
            return;
        }
        self.stats.trains += u64::from(frame.is_gso_batch());
        let packet_bytes = frame.bytes().len().saturating_sub(Frame::ETHERNET_HEADER);
        let charged = packet_bytes.max(SHORTEST_PACKET) as u32;
        let fate = self.link.offer(now, charged, &mut self.random);
        if let Fate::Arrives(arrival) = fate {
            self.put(arrival.at, frame);
        }
    }

    /// Removes the next frame that has arrived by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<DueEvent<Frame>> {
        let due = self.on_the_way.pop_until(now)?;
        self.bytes_on_the_way -= due.event.bytes().len();
        Some(due)
    }

    /// When the next frame arrives.
    pub fn next_at(&self) -> Option<Instant> {
        self.on_the_way.next_at()
    }

    /// Counters so far.
    pub fn stats(&self) -> FrameLinkStats {
        FrameLinkStats { link: self.link.stats(), ..self.stats }
    }

    fn put(&mut self, at: Instant, frame: Frame) {
        let bytes = self.bytes_on_the_way + frame.bytes().len();
        if bytes > Self::ROOM {
            self.stats.overflow += 1;
            return;
        }
        self.bytes_on_the_way = bytes;
        self.on_the_way.schedule(at, frame);
    }
}

/// Whether a frame is a control frame: other than IP, IGMP, and of ICMPv6 listener discovery (RFC
/// 3810, section 5) and neighbor discovery (RFC 4861, section 4).
fn keeps_network_together(frame: &[u8]) -> bool {
    const IPV4: [u8; 2] = [0x08, 0x00];
    const IPV6: [u8; 2] = [0x86, 0xdd];
    const IGMP: u8 = 2;
    let Some((header, packet)) = frame.split_at_checked(Frame::ETHERNET_HEADER) else {
        return true;
    };
    match header.last_chunk() {
        Some(&IPV4) => packet.get(9) == Some(&IGMP),
        Some(&IPV6) => {
            icmpv6_type(packet).is_some_and(|kind| matches!(kind, 130..=132 | 133..=137 | 143))
        }
        _ => true,
    }
}

/// The type of an ICMPv6 message in an IPv6 packet. The packet may have hop-by-hop options (RFC
/// 8200, section 4.3), as listener discovery has.
fn icmpv6_type(packet: &[u8]) -> Option<u8> {
    const HOP_BY_HOP: u8 = 0;
    const ICMPV6: u8 = 58;
    let (header, rest) = packet.split_at_checked(40)?;
    match *header.get(6)? {
        ICMPV6 => rest.first().copied(),
        HOP_BY_HOP if *rest.first()? == ICMPV6 => {
            let options_size = 8 * (1 + usize::from(*rest.get(1)?));
            rest.get(options_size).copied()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::{Bottleneck, EmulatorConfig, LossModel};
    use fontana_sim::Loss;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn at(milliseconds: u32) -> Instant {
        Instant::ZERO + MS * milliseconds
    }

    /// A frame with an IPv4 packet of `size` bytes that carries `protocol`, and a number.
    fn ipv4(protocol: u8, size: usize, number: u32) -> Frame {
        let mut bytes = vec![0; Frame::ETHERNET_HEADER + size];
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        bytes[14 + 9] = protocol;
        bytes[14 + 20..14 + 24].copy_from_slice(&number.to_be_bytes());
        Frame::new(&bytes)
    }

    fn udp(number: u32) -> Frame {
        ipv4(17, 1_000, number)
    }

    fn arp() -> Frame {
        let mut bytes = [0; 42];
        bytes[12..14].copy_from_slice(&[0x08, 0x06]);
        Frame::new(&bytes)
    }

    fn number(frame: &Frame) -> u32 {
        u32::from_be_bytes(frame.bytes()[34..38].try_into().unwrap())
    }

    /// The numbers of those that arrive of so many datagrams, one each millisecond.
    fn arrivals(
        line: &mut FrameLink,
        datagrams: u32,
        between: impl Fn(&mut FrameLink, Instant),
    ) -> Vec<u32> {
        for number in 0..datagrams {
            between(line, at(number));
            line.offer(at(number), udp(number));
        }
        let all = std::iter::from_fn(|| line.poll(at(10 * datagrams)));
        all.filter(|due| due.event.bytes()[12..14] == [0x08, 0x00])
            .map(|due| number(&due.event))
            .collect()
    }

    /// From the first interface to the second one.
    fn there(config: &EmulatorConfig) -> FrameLink {
        let [line, _] = config.links();
        line
    }

    fn lossy(seed: u64) -> EmulatorConfig {
        let loss = LossModel::markov(0.2, 3.0);
        EmulatorConfig { loss, delay: 50 * MS, seed, ..EmulatorConfig::default() }
    }

    #[test]
    fn a_line_loses_what_the_model_loses_for_its_seed_and_direction() {
        let config = lossy(5);
        let lines = config.links().into_iter();
        let lost: Vec<_> = (0..)
            .zip(lines)
            .map(|(direction, mut line)| {
                let arrived = arrivals(&mut line, 2_000, |_, _| ());
                let mut model = Loss::new(config.loss.clone());
                let mut random = SplitMix64::new(5, direction);
                let kept = (0..2_000).filter(|_| !model.next(&mut random)).collect::<Vec<_>>();
                assert_eq!(arrived, kept);
                assert_eq!(line.stats().link.wire_drops, 2_000 - kept.len() as u64);
                arrived
            })
            .collect();
        assert_ne!(lost[0], lost[1], "each direction has its own");
        assert_ne!(lost[0], arrivals(&mut there(&lossy(6)), 2_000, |_, _| ()));
    }

    #[test]
    fn frames_that_keep_the_network_together_are_delayed_only_and_change_no_fate() {
        let mut alone = there(&lossy(5));
        let mut among = there(&lossy(5));
        let kept = arrivals(&mut alone, 500, |_, _| ());
        assert_eq!(kept, arrivals(&mut among, 500, |line, now| line.offer(now, arp())));
        assert_eq!(among.stats().exempt, 500);

        among.offer(at(6_000), arp());
        assert_eq!(among.next_at(), Some(at(6_050)));
        assert!(among.poll(at(6_049)).is_none());
        assert_eq!(among.poll(at(6_051)).unwrap().at, at(6_050));
    }

    #[test]
    fn where_every_frame_counts_they_are_lost_as_others_are() {
        let every = EmulatorConfig { every_frame: true, ..lossy(5) };
        let mut line = there(&every);
        (0..1_000).for_each(|now| line.offer(at(now), arp()));
        let FrameLinkStats { link, exempt, .. } = line.stats();
        assert!((100..300).contains(&link.wire_drops) && exempt == 0, "{link:?}");
    }

    #[test]
    fn a_bottleneck_is_charged_packets_without_their_ethernet_header() {
        let bottleneck = Bottleneck::with_queue_of(20 * MS, 100_000);
        let config = EmulatorConfig { bottleneck: Some(bottleneck), ..EmulatorConfig::default() };
        let mut line = there(&config);
        // Two packets of 1 000 bytes are 20 ms, and no byte fits any more.
        (0..3).for_each(|number| line.offer(at(0), udp(number)));
        let arrivals: Vec<_> =
            std::iter::from_fn(|| line.poll(at(100))).map(|due| due.at).collect();
        assert_eq!(arrivals, [at(10), at(20)]);
        assert_eq!(line.stats().link.queue_drops, 1);
    }

    #[test]
    fn what_is_on_the_way_has_a_limit() {
        let mut line = there(&EmulatorConfig { delay: 50 * MS, ..EmulatorConfig::default() });
        let large = || ipv4(17, 60_000 - Frame::ETHERNET_HEADER, 0);
        let fit = FrameLink::ROOM / 60_000;
        (0..fit).for_each(|_| line.offer(at(0), large()));
        assert_eq!(line.stats().overflow, 0);
        line.offer(at(0), large());
        assert_eq!(line.stats().overflow, 1);
        assert_eq!(std::iter::from_fn(|| line.poll(at(50))).count(), fit);
        line.offer(at(50), large());
        assert_eq!(line.stats().overflow, 1, "there is room again");
    }

    fn ipv6(next_header: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; Frame::ETHERNET_HEADER + 40];
        bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
        bytes[14 + 6] = next_header;
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn membership_and_neighbors_are_told_from_data() {
        let report = [58, 0, 5, 2, 0, 0, 1, 0, 143];
        let cases = [
            (arp().bytes().to_vec(), true),
            (ipv4(2, 32, 0).bytes().to_vec(), true),
            (ipv4(1, 32, 0).bytes().to_vec(), false),
            (ipv4(17, 32, 0).bytes().to_vec(), false),
            (ipv6(58, &[130]), true),
            (ipv6(58, &[137]), true),
            (ipv6(58, &[129]), false),
            (ipv6(58, &[138]), false),
            (ipv6(0, &report), true),
            (ipv6(0, &[17, 0, 5, 2, 0, 0, 1, 0, 143]), false),
            (ipv6(17, &[143]), false),
        ];
        for (frame, expected) in cases {
            assert_eq!(keeps_network_together(&frame), expected, "{frame:?}");
        }
    }

    #[test]
    fn cut_frames_are_no_reason_to_panic() {
        let whole = ipv6(0, &[58, 1, 5, 2, 0, 0, 1, 0, 143]);
        for length in 0..whole.len() {
            let _ = keeps_network_together(&whole[..length]);
            let mut line = there(&EmulatorConfig::default());
            line.offer(at(0), Frame::new(&whole[..length]));
            assert!(line.poll(at(0)).is_some());
        }
        let mut every = there(&EmulatorConfig { every_frame: true, ..lossy(1) });
        (0..100).for_each(|_| every.offer(at(0), Frame::new(&[])));
    }
}
