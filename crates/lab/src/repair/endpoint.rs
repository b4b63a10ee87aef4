//! The endpoint of a member and of the source, for all protocols.

use super::member::{Member, Outgoing, Timer};
use super::packet::{Message, Path, RepairPacket};
use super::reception::Progress;
use super::scheme::{Repair, Request, Scheme};
use super::setting::LiConfig;
use crate::hosts::routed::RoutedEndpoint;
use fontana_fec::{Esi, Sbn};
use fontana_proto::{
    BatchId, BlockId, ChannelId, DatagramBatch, Endpoint, Instant, Output, SymbolId,
};
use fontana_sim::HostEvent;
use fontana_wire::Toi;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

/// An endpoint.
#[derive(Debug)]
pub(super) struct RepairEndpoint {
    member: Member,
    scheme: Box<dyn Scheme>,
    has_joined: bool,
    /// The next segment of the source.
    next_segment: u32,
    delivered: VecDeque<u32>,
}

/// A segment is delivered to the application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) segment: u32,
}

impl HostEvent for Delivered {
    fn digest_number(&self) -> u64 {
        self.segment.into()
    }
}

impl RepairEndpoint {
    pub(super) fn new(member: Member, scheme: Box<dyn Scheme>) -> Self {
        Self { member, scheme, has_joined: false, next_segment: 0, delivered: VecDeque::new() }
    }

    /// Whether it has all segments.
    pub(super) fn has_all(&self) -> bool {
        self.member.reception.has_all()
    }

    fn begin(&mut self, now: Instant) {
        let member = &mut self.member;
        let first = member.draw(Duration::ZERO, member.constants.heartbeat);
        member.set(now + first, Timer::Heartbeat);
        if member.is_source() {
            member.set(Instant::ZERO + LiConfig::BEGINS, Timer::Segment);
        }
        self.scheme.begin(member, now);
    }

    /// Sends a segment. After the last one of a group, the source has all of the group.
    fn send_segment(&mut self, now: Instant) {
        let (member, segment) = (&mut self.member, self.next_segment);
        self.next_segment += 1;
        member.multicast(now, Message::Data { segment });
        let Progress { completes, .. } = member.reception.segment(segment);
        if self.next_segment < member.segments {
            member.set(now + LiConfig::SPACING, Timer::Segment);
        }
        if completes {
            let group = member.reception.group_of(segment);
            member.reception.end_before(group + 1);
            self.scheme.complete(member, now, group);
        }
    }

    fn receive(&mut self, now: Instant, packet: RepairPacket) {
        let RepairPacket { from, sent_at, message, .. } = packet;
        if from == self.member.id {
            return;
        }
        let by_router = matches!(message, Message::Repair { path: Path::Subcast, .. });
        if !by_router {
            self.member.sample_distance(from, now.saturating_since(sent_at));
        }
        match message {
            Message::Data { segment } => {
                let group = self.member.reception.group_of(segment);
                self.end_before(now, group);
                let progress = self.member.reception.segment(segment);
                self.advance(now, group, progress);
            }
            Message::Repair { group, path, .. } => {
                self.end_before(now, group);
                let was_complete = self.member.reception.is_complete(group);
                let progress = self.member.reception.repair(group);
                let repair = Repair { from, group, path, was_complete };
                if self.member.reception.has(group) {
                    self.scheme.repair(&mut self.member, now, repair);
                }
                self.advance(now, group, progress);
            }
            Message::Request { group, need, below } => {
                if self.member.reception.has(group) {
                    let request = Request { from, group, need, below };
                    self.scheme.request(&mut self.member, now, request);
                }
            }
            Message::Heartbeat { segments, .. } => {
                self.end_before(now, self.member.reception.group_of(segments));
                self.scheme.message(&mut self.member, now, from, message);
            }
            _ => self.scheme.message(&mut self.member, now, from, message),
        }
    }

    /// The source has sent all groups before this one.
    fn end_before(&mut self, now: Instant, group: u32) {
        for lacking in self.member.reception.end_before(group) {
            self.scheme.lack(&mut self.member, now, lacking);
        }
    }

    fn advance(&mut self, now: Instant, group: u32, progress: Progress) {
        self.delivered.extend(progress.delivered);
        if progress.completes {
            self.scheme.complete(&mut self.member, now, group);
        }
    }
}

impl Endpoint for RepairEndpoint {
    type Job = Infallible;
    type Done = Infallible;
    type Event = Delivered;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for (_, packet) in batch.iter() {
            if let Some(packet) = RepairPacket::parse(packet) {
                self.receive(now, packet);
            }
        }
    }

    fn handle_done(&mut self, _now: Instant, done: Infallible) {
        match done {}
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.member.due(now) {
            match timer {
                Timer::Segment => self.send_segment(now),
                Timer::Heartbeat => {
                    self.scheme.heartbeat(&mut self.member, now);
                    let interval = self.member.constants.heartbeat;
                    let next = self.member.draw(interval.mul_f64(0.9), interval.mul_f64(0.2));
                    self.member.set(now + next, Timer::Heartbeat);
                }
                timer => self.scheme.due(&mut self.member, now, timer),
            }
        }
    }

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<Infallible, Delivered>> {
        if !std::mem::replace(&mut self.has_joined, true) {
            self.begin(now);
            return Some(Output::Join(ChannelId::BASE));
        }
        if let Some(segment) = self.delivered.pop_front() {
            return Some(Output::Event(Delivered { segment }));
        }
        let Outgoing { to, packet } = self.member.outbox.pop_front()?;
        packet.emit(header);
        let bytes = match packet.message {
            Message::Data { .. } | Message::Repair { .. } => LiConfig::DATA_BYTES,
            _ => LiConfig::CONTROL_BYTES,
        };
        Some(Output::Transmit { to, symbol: Some(filling(bytes - RepairPacket::BYTES)) })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.member.next_due()
    }
}

impl RoutedEndpoint for RepairEndpoint {
    fn handle_hops_left(&mut self, datagram: &[u8], hops_left: u8) {
        if let Some(RepairPacket { from, hops, .. }) = RepairPacket::parse(datagram) {
            self.member.sample_hops(from, hops.saturating_sub(hops_left));
        }
    }

    fn is_complete(&self) -> bool {
        self.has_all()
    }
}

/// The bytes behind a packet's header, of which links know the number alone.
fn filling(size: u16) -> SymbolId {
    SymbolId {
        block: BlockId { toi: Toi(1), sbn: Sbn(0) },
        esi: Esi(0),
        batch: BatchId(0),
        index: 0,
        size,
    }
}
