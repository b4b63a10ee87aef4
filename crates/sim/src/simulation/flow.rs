//! Cross traffic: flows between two nodes, over the same links as all other traffic.

use super::{Event, Simulation};
use crate::host::Host;
use crate::link::{Fate, Link};
use crate::observe::Observer;
use crate::tcp::{Ack, TcpConfig, TcpReceiver, TcpSender};
use crate::topology::{LinkId, NodePair};
use crate::trace::Note;
use fontana_proto::Instant;
use std::sync::Arc;
use std::time::Duration;

/// A kind of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// An endless transfer over TCP.
    Tcp(TcpConfig),
    /// Packets at a constant rate, lost or not.
    Cbr {
        /// Bytes of a packet on links, headers included.
        packet_bytes: u32,
        /// Time from one packet to the next.
        interval: Duration,
    },
}

/// Names a flow of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// What a flow has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowStats {
    /// Packets that were sent, retransmissions included.
    pub sent: u64,
    /// Distinct packets that have arrived. For TCP, those before the first gap.
    pub delivered: u64,
    /// Packets that were retransmitted.
    pub retransmitted: u64,
    /// TCP's current congestion window, in segments; 0 for other traffic.
    pub window: f64,
}

#[derive(Debug)]
pub(super) struct Flow {
    there: Arc<[LinkId]>,
    back: Arc<[LinkId]>,
    ends: Ends,
    sent: u64,
    stops_at: Instant,
    armed: Option<Instant>,
}

#[derive(Debug)]
enum Ends {
    Tcp { config: TcpConfig, sender: Box<TcpSender>, receiver: TcpReceiver },
    Cbr { packet_bytes: u32, interval: Duration, delivered: u64 },
}

/// A packet of a flow.
#[derive(Clone, Debug)]
pub(super) enum Segment {
    Data(u64),
    Ack(Box<Ack>),
}

impl<H: Host, O: Observer<H::Event>> Simulation<H, O> {
    /// Adds a flow between two nodes, on the shortest paths in both directions, from `starts_at`
    /// until `stops_at`. `None` if there is no path, if both nodes are the same, or if a round trip
    /// of TCP would take no time: the run would never end.
    pub fn add_flow(
        &mut self,
        NodePair { from, to }: NodePair,
        traffic: Traffic,
        starts_at: Instant,
        stops_at: Instant,
    ) -> Option<FlowId> {
        let there: Arc<[_]> = self.topology.path(from, to).filter(|way| !way.is_empty())?.into();
        let back: Arc<[_]> = self.topology.path(to, from)?.into();
        let takes_time = |link: &LinkId| {
            let config = self.links.get(link.index()).map(Link::config);
            config.is_some_and(|c| c.rate_bytes_per_second.is_some() || !c.delay.is_zero())
        };
        let ends = match traffic {
            Traffic::Tcp(_) if !there.iter().chain(back.iter()).any(takes_time) => return None,
            Traffic::Tcp(config) => Ends::Tcp {
                config,
                sender: Box::new(TcpSender::new(config)),
                receiver: TcpReceiver::default(),
            },
            // At least a nanosecond: with an interval of 0 the run would never end.
            Traffic::Cbr { packet_bytes, interval } => Ends::Cbr {
                packet_bytes,
                interval: interval.max(Duration::from_nanos(1)),
                delivered: 0,
            },
        };
        let id = FlowId(self.flows.len() as u32);
        self.flows.push(Flow { there, back, ends, sent: 0, stops_at, armed: None });
        self.queue.schedule(starts_at, Event::FlowWake { flow: id });
        Some(id)
    }

    /// What a flow has done so far.
    pub fn flow(&self, flow: FlowId) -> Option<FlowStats> {
        let Flow { ends, sent, .. } = self.flows.get(flow.0 as usize)?;
        Some(match ends {
            Ends::Tcp { sender, receiver, .. } => FlowStats {
                sent: *sent,
                delivered: receiver.delivered(),
                retransmitted: sender.retransmitted(),
                window: sender.window(),
            },
            Ends::Cbr { delivered, .. } => {
                FlowStats { sent: *sent, delivered: *delivered, ..FlowStats::default() }
            }
        })
    }

    pub(super) fn wake_flow(&mut self, now: Instant, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id.0 as usize) else { return };
        if flow.armed.take().is_some_and(|armed| armed != now) {
            return;
        }
        if let Ends::Tcp { sender, .. } = &mut flow.ends {
            sender.on_timeout(now);
        }
        self.pump(now, id);
    }

    /// Sends what the flow may send now.
    fn pump(&mut self, now: Instant, id: FlowId) {
        while let Some(flow) = self.flows.get_mut(id.0 as usize).filter(|f| now < f.stops_at) {
            let (segment, bytes, again) = match &mut flow.ends {
                Ends::Tcp { config, sender, .. } => match sender.poll_transmit(now) {
                    Some(segment) => (segment, config.segment_bytes, true),
                    None => break,
                },
                Ends::Cbr { packet_bytes, .. } => (flow.sent, *packet_bytes, false),
            };
            flow.sent += 1;
            self.pass_on(now, (id, 0), Segment::Data(segment), bytes);
            if !again {
                break;
            }
        }
        let Some(flow) = self.flows.get_mut(id.0 as usize).filter(|f| now < f.stops_at) else {
            return;
        };
        let due = match &flow.ends {
            Ends::Tcp { sender, .. } => sender.poll_timeout(),
            Ends::Cbr { interval, .. } => Some(now + *interval),
        };
        if let Some(due) = due.filter(|&due| flow.armed.is_none_or(|armed| due < armed)) {
            flow.armed = Some(due);
            self.queue.schedule(due, Event::FlowWake { flow: id });
        }
    }

    /// Handles a segment that has arrived at the node before `hop`.
    pub(super) fn pass_on(
        &mut self,
        now: Instant,
        (id, hop): (FlowId, u32),
        segment: Segment,
        bytes: u32,
    ) {
        let Some(flow) = self.flows.get(id.0 as usize) else { return };
        let way = match segment {
            Segment::Data(_) => &flow.there,
            Segment::Ack(_) => &flow.back,
        };
        let Some(&link) = way.get(hop as usize) else {
            return self.segment_arrives(now, id, segment);
        };
        let (on, random) = (&mut self.links[link.index()], &mut self.random[link.index()]);
        match on.offer(now, bytes, random) {
            Fate::Arrives(arrival) if arrival.damage.is_none() => {
                let event = Event::Segment { flow: id, hop: hop + 1, segment, bytes };
                self.queue.schedule(arrival.at, event);
            }
            // TCP's checksum detects damage.
            Fate::Arrives(_) | Fate::Dropped(_) => {
                self.trace.note(now, Note::Lost, link.0, [id.0.into(), u64::MAX]);
            }
        }
    }

    fn segment_arrives(&mut self, now: Instant, id: FlowId, segment: Segment) {
        let Some(flow) = self.flows.get_mut(id.0 as usize) else { return };
        match (&mut flow.ends, segment) {
            (Ends::Tcp { config, receiver, .. }, Segment::Data(number)) => {
                self.trace.note(now, Note::Segment, id.0, [number, 0]);
                let (ack, bytes) = (receiver.on_segment(number), config.ack_bytes);
                self.pass_on(now, (id, 0), Segment::Ack(Box::new(ack)), bytes);
            }
            (Ends::Tcp { sender, .. }, Segment::Ack(ack)) => {
                sender.on_ack(now, &ack);
                self.pump(now, id);
            }
            (Ends::Cbr { delivered, .. }, Segment::Data(number)) => {
                *delivered += 1;
                self.trace.note(now, Note::Segment, id.0, [number, 0]);
            }
            (Ends::Cbr { .. }, Segment::Ack(_)) => {}
        }
    }
}
