//! Forwarding: memberships, and datagrams from host to host.

use super::{Event, GroupId, Simulation};
use crate::host::{Attached, Host, Transmission};
use crate::link::Fate;
use crate::multicast::{Change, Membership, Multicast, SITE, Settled, SourceTree};
use crate::observe::Observer;
use crate::packet::{BURST_PACKETS, Burst, Packet, Payload};
use crate::runner::Delivery;
use crate::topology::{LinkId, NodeId};
use crate::trace::Note;
use crate::violation::Violation;
use fontana_proto::{ChannelId, Datagram, DatagramBatch, Destination, Ecn, Instant, Port};
use std::net::SocketAddr;

/// The port that hosts send from. Receivers take what comes from port 0 for no sender's.
const PORT: u16 = 7_701;

impl<H: Host, O: Observer<H::Event>> Simulation<H, O> {
    /// The tree of a source, computed when it is first needed.
    fn tree(&mut self, source: NodeId) -> u32 {
        *self.tree_of.entry(source).or_insert_with(|| {
            let (paths, topology) = (self.topology.shortest_paths(source), &self.topology);
            let (edges, count) = (topology.edges(), topology.node_count());
            self.trees.push(SourceTree::new(paths, self.config.multicast, edges, count));
            self.trees.len() as u32 - 1
        })
    }

    /// Joins a host to a channel, or takes it off.
    pub(super) fn change_membership(
        &mut self,
        now: Instant,
        node: NodeId,
        channel: ChannelId,
        membership: Membership,
    ) {
        let Some(host) = self.attached_mut(node) else { return };
        let note = match membership {
            Membership::Join if host.joined.insert(channel) => Note::Joined,
            Membership::Join => return,
            Membership::Leave if host.joined.remove(channel) => Note::Left,
            Membership::Leave => {
                return self.violate(Violation::LeftUnjoined { node, channel, at: now });
            }
        };
        let sources = match channel {
            SITE => host.config.site.clone(),
            _ => host.config.sources.clone(),
        };
        self.trace.note(now, note, node.0, [channel.0.into(), 0]);
        if self.config.multicast == Multicast::Broadcast {
            return;
        }
        for &source in sources.iter() {
            let group = GroupId { tree: self.tree(source), channel };
            self.change_members(now, group, node, membership);
        }
    }

    /// Leaves all channels of a node, whose host is about to be removed.
    pub(super) fn leave_all(&mut self, node: NodeId) {
        for channel in self.joined_groups(node) {
            self.change_membership(self.now(), node, channel, Membership::Leave);
        }
    }

    fn change_members(
        &mut self,
        now: Instant,
        group: GroupId,
        node: NodeId,
        membership: Membership,
    ) {
        let Some(tree) = self.trees.get_mut(group.tree as usize) else { return };
        let (edges, count) = (self.topology.edges(), self.topology.node_count());
        let change = tree.change_members(group.channel, node, membership, edges, count);
        if let Some(Change { node, epoch, after }) = change {
            self.queue.schedule(now + after, Event::Settle { group, node, epoch });
        }
    }

    /// Grafts or prunes a hop, if that is still wanted.
    pub(super) fn settle(&mut self, now: Instant, group: GroupId, node: NodeId, epoch: u32) {
        let Some(tree) = self.trees.get_mut(group.tree as usize) else { return };
        let edges = self.topology.edges();
        let settled = tree.settle(now, group.channel, node, epoch, edges);
        if let Some(Settled { above, membership }) = settled {
            let note = match membership {
                Membership::Join => Note::Grafted,
                Membership::Leave => Note::Pruned,
            };
            self.trace.note(now, note, node.0, [group.tree.into(), group.channel.0.into()]);
            self.change_members(now, group, above, membership);
        }
    }

    /// Numbers a datagram and appends it to the burst.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        node: NodeId,
        Transmission { to, header, symbol_bytes }: Transmission,
        burst: &mut Vec<(Destination, Packet)>,
    ) {
        let Some(host) = self.attached_mut(node) else { return };
        let wire_bytes = header.len() as u32 + symbol_bytes + host.config.packet_overhead;
        // By the host's own clock: after a jump, the time that it skipped counts as waited.
        let clock = host.clock(now);
        match host.rate.as_mut().map(|rule| rule.excess(clock, wire_bytes)) {
            None => return self.violate(Violation::ReceiverSent { node, at: now }),
            Some(Some(excess_bytes)) => {
                return self.violate(Violation::Rate { node, at: now, excess_bytes });
            }
            Some(None) => {}
        }
        let number = self.stats.sent;
        self.stats.sent += 1;
        let packet = Packet {
            number,
            source: node,
            sent_at: now,
            header,
            symbol_bytes,
            wire_bytes,
            damage: None,
        };
        self.trace.note(now, Note::Sent, node.0, [number, wire_bytes.into()]);
        self.observer.on_transmit(now, node, &packet);
        if burst.len() == BURST_PACKETS || burst.first().is_some_and(|&(first, _)| first != to) {
            self.send(now, node, burst);
        }
        burst.push((to, packet));
    }

    /// Sends the burst.
    pub(super) fn send(
        &mut self,
        now: Instant,
        node: NodeId,
        burst: &mut Vec<(Destination, Packet)>,
    ) {
        let Some(&(to, _)) = burst.first() else { return };
        let burst = Burst::new(burst.drain(..).map(|(_, packet)| packet).collect());
        match to {
            Destination::Channel(channel) => {
                let group = GroupId { tree: self.tree(node), channel };
                self.forward(now, group, node, &burst);
            }
            Destination::Scoped { channel, hops } => {
                let group = GroupId { tree: self.tree(node), channel };
                self.forward(now, group, node, &burst.limited(hops));
            }
            Destination::Sender(address) | Destination::Peer(address) => {
                self.send_to(now, node, NodeId::of(address), &burst);
            }
            Destination::Site => {
                let group = GroupId { tree: self.tree(node), channel: SITE };
                match self.attached(node).and_then(|host| host.config.site_hops) {
                    Some(hops) => self.forward(now, group, node, &burst.limited(hops)),
                    None => self.forward(now, group, node, &burst),
                }
            }
            Destination::Subcast { router, channel } => {
                let source =
                    self.attached(node).and_then(|host| host.config.sources.first().copied());
                let router = NodeId::of(router).filter(|to| to.0 < self.topology.node_count());
                match source.zip(router) {
                    Some((source, router)) => {
                        let group = GroupId { tree: self.tree(source), channel };
                        self.approach(now, group, (router, node), &burst);
                    }
                    None => self.stats.drops += burst.packets().count() as u64,
                }
            }
        }
    }

    /// Multicasts a burst down the tree from a router, or sends it over the next hop towards it.
    /// The host that has sent it does not receive it.
    pub(super) fn approach(
        &mut self,
        now: Instant,
        group: GroupId,
        (router, at): (NodeId, NodeId),
        burst: &Burst,
    ) {
        if at == router {
            let is_own = burst.packets().any(|(_, packet)| packet.source == router);
            return match is_own {
                true => self.forward(now, group, router, burst),
                false => self.arrive(now, group, router, burst),
            };
        }
        let Some(link) = self.next_hop(at, router) else {
            self.stats.drops += burst.packets().count() as u64;
            return;
        };
        let at = self.topology.edges()[link.index()].to;
        self.enter_hop(now, link, burst, |burst| Event::Subcast { group, router, at, burst });
    }

    /// The link from a node towards the destination of a unicast datagram.
    fn next_hop(&mut self, at: NodeId, to: NodeId) -> Option<LinkId> {
        let topology = &self.topology;
        let next = self.next_hops.entry(to).or_insert_with(|| topology.next_hops(to));
        next.get(at.index()).copied().flatten()
    }

    /// Sends a burst by unicast. What has no path to its destination is lost.
    fn send_to(&mut self, now: Instant, from: NodeId, to: Option<NodeId>, burst: &Burst) {
        match to.filter(|to| to.0 < self.topology.node_count()) {
            Some(to) => self.pass(now, to, from, burst),
            None => self.stats.drops += burst.packets().count() as u64,
        }
    }

    /// Delivers a unicast burst that is at its destination, or sends it over the next hop.
    pub(super) fn pass(&mut self, now: Instant, to: NodeId, at: NodeId, burst: &Burst) {
        if at == to {
            return self.deliver(now, None, to, burst);
        }
        let Some(link) = self.next_hop(at, to) else {
            self.stats.drops += burst.packets().count() as u64;
            return;
        };
        let at = self.topology.edges()[link.index()].to;
        self.enter_hop(now, link, burst, |burst| Event::Unicast { to, at, burst });
    }

    /// Delivers a burst to a node's host, and forwards it to the nodes below.
    pub(super) fn arrive(&mut self, now: Instant, group: GroupId, node: NodeId, burst: &Burst) {
        self.deliver(now, Some(group.channel), node, burst);
        if burst.hops_left.is_some() {
            self.forward(now, group, node, &burst.after_a_hop());
        } else {
            self.forward(now, group, node, burst);
        }
    }

    /// Sends a burst to all nodes below that want the group.
    fn forward(&mut self, now: Instant, group: GroupId, node: NodeId, burst: &Burst) {
        if burst.hops_left == Some(0) {
            return;
        }
        let Some(tree) = self.trees.get_mut(group.tree as usize) else { return };
        if self.config.multicast == Multicast::Broadcast {
            let links = tree.leaving(node).to_vec();
            for link in links {
                let to = self.topology.edges()[link.index()].to;
                self.enter_hop(now, link, burst, |burst| Event::Hop { group, to, burst });
            }
            return;
        }
        let Some(of_group) = tree.group(group.channel) else { return };
        let Some(forward) = of_group.forward(node) else { return };
        for (fan, of_fan) in (0..).zip(&forward.fans) {
            if !of_fan.links.is_empty() {
                let event =
                    Event::Fan { group, from: node, fan, entered: now, burst: burst.clone() };
                self.queue.schedule(now + of_fan.passage, event);
            }
        }
        if forward.single.is_empty() {
            return;
        }
        let links = forward.single.clone();
        let edges = self.topology.edges();
        let passing = links.iter().map(|&link| (link, edges[link.index()].to));
        let passing: Vec<_> = passing.filter(|&(_, to)| of_group.passes(to, now)).collect();
        of_group.forget_pruned(now, node, None, edges);
        for (link, to) in passing {
            self.enter_hop(now, link, burst, |burst| Event::Hop { group, to, burst });
        }
    }

    /// Sends the packets of a burst, one by one, over a link that may treat them differently.
    /// `event` is their arrival at the far end.
    fn enter_hop(
        &mut self,
        now: Instant,
        link: LinkId,
        burst: &Burst,
        event: impl Fn(Burst) -> Event,
    ) {
        for (index, packet) in burst.packets() {
            self.observer.on_forward(now, link, packet);
            let hop = &mut self.links[link.index()];
            let arrival = match hop.offer(now, packet.wire_bytes, &mut self.random[link.index()]) {
                Fate::Arrives(arrival) => arrival,
                Fate::Dropped(cause) => {
                    self.stats.drops += 1;
                    self.trace.note(now, Note::Lost, link.0, [packet.number, 1]);
                    self.observer.on_drop(now, link, packet, cause);
                    continue;
                }
            };
            let backlog = hop.backlog(now);
            if !backlog.is_within(hop.config().queue) {
                return self.violate(Violation::LinkQueue { link: link.0, at: now });
            }
            let mut alone = match arrival.damage {
                Some(damage) => burst.damaged(index, damage),
                None => burst.only(1 << index),
            };
            alone.marked |= arrival.marked;
            for _ in 0..=u32::from(arrival.duplicated) {
                self.queue.schedule(arrival.at, event(alone.clone()));
            }
        }
    }

    /// Handles a burst that has arrived at the far ends of all hops of a fan.
    pub(super) fn leave_fan(
        &mut self,
        now: Instant,
        group: GroupId,
        (from, fan): (NodeId, u32),
        entered: Instant,
        burst: &Burst,
    ) {
        let edges = self.topology.edges();
        let of_group = self.trees.get_mut(group.tree as usize);
        let Some(of_group) = of_group.and_then(|tree| tree.group(group.channel)) else { return };
        let Some(forward) = of_group.forward(from) else { return };
        let Some(of_fan) = forward.fans.get(fan as usize) else { return };
        let (passage, links) = (of_fan.passage, of_fan.links.clone());
        let passing = links.iter().map(|&link| (link, edges[link.index()].to));
        let passing: Vec<_> = passing.filter(|&(_, to)| of_group.passes(to, entered)).collect();
        of_group.forget_pruned(now, from, Some(passage), edges);
        for (link, to) in passing {
            let (hop, random) = (&mut self.links[link.index()], &mut self.random[link.index()]);
            let mut present = 0;
            for (index, packet) in burst.packets() {
                self.observer.on_forward(now, link, packet);
                match hop.pass(packet.wire_bytes, random) {
                    Ok(()) => present |= 1 << index,
                    Err(cause) => {
                        self.stats.drops += 1;
                        self.trace.note(now, Note::Lost, link.0, [burst.number(), 1 << index]);
                        self.observer.on_drop(now, link, packet, cause);
                    }
                }
            }
            let burst = burst.only(present);
            if !burst.is_empty() {
                self.arrive(now, group, to, &burst);
            }
        }
    }

    /// Delivers a burst to a node's host, if it has joined the channel, or if there is none: then
    /// the burst was sent to this host alone.
    fn deliver(&mut self, now: Instant, channel: Option<ChannelId>, node: NodeId, burst: &Burst) {
        let hears = |host: &Attached<H>| {
            host.is_running && channel.is_none_or(|channel| host.joined.contains(channel))
        };
        let Some(host) = self.hosts.get(node.index()).and_then(Option::as_ref) else { return };
        if !hears(host) {
            return;
        }
        self.trace.note(now, Note::Delivered, node.0, [burst.number(), burst.present()]);
        for (_, packet) in burst.packets() {
            let Some(host) = self.hosts.get_mut(node.index()).and_then(Option::as_mut) else {
                return;
            };
            if !hears(host) {
                break;
            }
            if packet.sent_at > now || packet.number >= self.stats.sent {
                let number = packet.number;
                return self.violate(Violation::FromNowhere { node, number, at: now });
            }
            self.stats.deliveries += 1;
            self.observer.on_deliver(now, node, packet);
            let Payload { bytes, zeros_from } = self.payloads.write(packet);
            let datagram = Datagram {
                from: SocketAddr::new(packet.source.address(), PORT),
                port: match channel {
                    Some(SITE) => Port::Site,
                    channel => Port::Channel(channel.unwrap_or(ChannelId::BASE)),
                },
                ecn: if burst.marked { Ecn::CongestionExperienced } else { Ecn::NotEct },
                dropped_before: 0,
                payload: 0..bytes.len() as u32,
            };
            let delivery = Delivery { batch: DatagramBatch::one(bytes, &datagram), zeros_from };
            let result = host.receive(now, &delivery, &mut self.outbox);
            self.carry_out(now, node, result);
        }
        self.arm(now, node);
    }
}
