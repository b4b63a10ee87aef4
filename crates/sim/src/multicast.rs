//! Multicast groups on source-rooted shortest-path trees, on which each hop is grafted and pruned
//! with its own delay.
//!
//! A node wants a group if its host has joined it or if a node below wants it. When that begins,
//! the hop to the node is *grafted* after [`LinkConfig::graft`](crate::LinkConfig::graft). When it
//! ends, the hop is *pruned* after [`LinkConfig::prune`](crate::LinkConfig::prune), unless the node
//! wants the group again by then: the querier's last-member interval (RFC 3376, section 6.4). If a
//! hop is grafted again, packets that entered it before the graft are lost.

use crate::topology::{Edge, LinkId, NodeId, PathTree};
use fontana_proto::{ChannelId, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// The channel of the hosts of a site in a run. No session has so many.
pub(crate) const SITE: ChannelId = ChannelId(u8::MAX);

/// One source's tree and its groups.
#[derive(Debug)]
pub(crate) struct SourceTree {
    pub(crate) paths: PathTree,
    groups: BTreeMap<ChannelId, Group>,
    /// The links of the tree that leave each node, with [`Multicast::Broadcast`]; else empty.
    leaving: Vec<Vec<LinkId>>,
}

/// Which hops of a source's tree forward the packets of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multicast {
    /// Those below which a host has joined the channel.
    #[default]
    Pruned,
    /// All of them: reverse path broadcasting without prunes, as RFC 1075 describes it. Hosts still
    /// receive only the channels that they have joined.
    Broadcast,
}

/// One multicast group: a channel of a source.
#[derive(Debug)]
pub(crate) struct Group {
    hops: Vec<Hop>,
    forwards: BTreeMap<NodeId, Forward>,
}

/// How many below a node want a group, and whether the hop to the node is grafted.
#[derive(Clone, Debug)]
struct Hop {
    /// Its own host if that has joined, and nodes below it that want the group.
    members: u32,
    /// Counts how often that became zero or ceased to be: earlier grafts and prunes are void.
    epoch: u32,
    /// The hop forwards packets that enter it at `from` or later, and before `until`.
    from: Instant,
    until: Instant,
    /// Whether the hop is in a list of the node above, grafted or not.
    listed: bool,
}

/// The hops on which a node forwards a group.
#[derive(Debug, Default)]
pub(crate) struct Forward {
    /// Hops of constant passage, by its length: one event serves all hops of a fan.
    pub(crate) fans: Vec<Fan>,
    /// Hops on which the passage of a packet depends on other packets.
    pub(crate) single: Vec<LinkId>,
    single_pruned: usize,
}

#[derive(Debug)]
pub(crate) struct Fan {
    pub(crate) passage: Duration,
    pub(crate) links: Vec<LinkId>,
    pruned: usize,
}

/// Whether a node joins a group or leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    Join,
    Leave,
}

/// A hop that has been grafted or pruned: the node above it joins or leaves for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The node above the hop.
    pub(crate) above: NodeId,
    pub(crate) membership: Membership,
}

/// A graft or prune that is to take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The node whose hop changes.
    pub(crate) node: NodeId,
    pub(crate) epoch: u32,
    /// Delay until it takes effect.
    pub(crate) after: Duration,
}

impl SourceTree {
    pub(crate) fn new(
        paths: PathTree,
        multicast: Multicast,
        edges: &[Edge],
        node_count: u32,
    ) -> Self {
        if multicast == Multicast::Pruned {
            return Self { paths, groups: BTreeMap::new(), leaving: Vec::new() };
        }
        let mut leaving = vec![Vec::new(); node_count as usize];
        for link in (0..node_count).filter_map(|node| paths.link_to(NodeId(node))) {
            if let Some(edge) = edges.get(link.index()) {
                leaving[edge.from.index()].push(link);
            }
        }
        Self { paths, groups: BTreeMap::new(), leaving }
    }

    /// The links of the tree that leave `node`, with [`Multicast::Broadcast`]; else none.
    pub(crate) fn leaving(&self, node: NodeId) -> &[LinkId] {
        self.leaving.get(node.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn group(&mut self, channel: ChannelId) -> Option<&mut Group> {
        self.groups.get_mut(&channel)
    }

    /// Counts one member more or less below `node`, its own host included. Returns the graft or
    /// prune that follows, if one does.
    pub(crate) fn change_members(
        &mut self,
        channel: ChannelId,
        node: NodeId,
        membership: Membership,
        edges: &[Edge],
        node_count: u32,
    ) -> Option<Change> {
        let never =
            Hop { members: 0, epoch: 0, from: Instant::ZERO, until: Instant::ZERO, listed: false };
        let group = self.groups.entry(channel).or_insert_with(|| Group {
            hops: vec![never; node_count as usize],
            forwards: BTreeMap::new(),
        });
        let hop = group.hops.get_mut(node.index())?;
        let before = hop.members;
        hop.members = match membership {
            Membership::Join => before + 1,
            Membership::Leave => before.saturating_sub(1),
        };
        if (before == 0) == (hop.members == 0) {
            return None;
        }
        hop.epoch = hop.epoch.wrapping_add(1);
        let config = &edges.get(self.paths.link_to(node)?.index())?.config;
        let after = match membership {
            Membership::Join => config.graft,
            Membership::Leave => config.prune,
        };
        (after < Duration::MAX).then_some(Change { node, epoch: hop.epoch, after })
    }

    /// Grafts or prunes the hop to `node`, [`Change::after`] later; `None` if that is no longer
    /// wanted.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        channel: ChannelId,
        node: NodeId,
        epoch: u32,
        edges: &[Edge],
    ) -> Option<Settled> {
        let link = self.paths.link_to(node)?;
        let edge = edges.get(link.index())?;
        let group = self.groups.get_mut(&channel)?;
        let hop = group.hops.get_mut(node.index())?;
        let (is_grafted, wanted) = (hop.until > now, hop.members > 0);
        if hop.epoch != epoch || is_grafted == wanted {
            return None;
        }
        let forward = group.forwards.entry(edge.from).or_default();
        let passage = edge.config.constant_passage();
        if wanted {
            (hop.from, hop.until) = (now, END_OF_TIME);
            if std::mem::replace(&mut hop.listed, true) {
                *forward.pruned(passage) -= 1;
            } else {
                forward.list(passage).push(link);
            }
        } else {
            hop.until = now;
            *forward.pruned(passage) += 1;
        }
        let membership = if wanted { Membership::Join } else { Membership::Leave };
        Some(Settled { above: edge.from, membership })
    }
}

const END_OF_TIME: Instant = Instant::from_nanos(u64::MAX);

impl Group {
    pub(crate) fn forward(&mut self, node: NodeId) -> Option<&mut Forward> {
        self.forwards.get_mut(&node)
    }

    /// Removes pruned hops from a node's list if they are more than half of it, except those on
    /// which a packet is still in transit. The caller has just iterated over the list, so removal
    /// takes time proportional to the number of receivers, even if they leave one by one.
    pub(crate) fn forget_pruned(
        &mut self,
        now: Instant,
        node: NodeId,
        passage: Option<Duration>,
        edges: &[Edge],
    ) {
        let Some(forward) = self.forwards.get_mut(&node) else { return };
        let count = *forward.pruned(passage);
        let list = forward.list(passage);
        if 2 * count <= list.len() {
            return;
        }
        let (oldest, before) = (now - passage.unwrap_or_default(), list.len());
        list.retain(|link| {
            let hop = &mut self.hops[edges[link.index()].to.index()];
            hop.listed = hop.until > oldest;
            hop.listed
        });
        let gone = before - list.len();
        *forward.pruned(passage) -= gone;
    }

    /// Whether the hop to `node` forwards packets that entered it at `entered`.
    pub(crate) fn passes(&self, node: NodeId, entered: Instant) -> bool {
        self.hops.get(node.index()).is_some_and(|hop| hop.from <= entered && entered < hop.until)
    }
}

impl Forward {
    fn fan(&mut self, passage: Duration) -> &mut Fan {
        let index = self.fans.iter().position(|fan| fan.passage == passage).unwrap_or_else(|| {
            self.fans.push(Fan { passage, links: Vec::new(), pruned: 0 });
            self.fans.len() - 1
        });
        &mut self.fans[index]
    }

    fn list(&mut self, passage: Option<Duration>) -> &mut Vec<LinkId> {
        match passage {
            Some(passage) => &mut self.fan(passage).links,
            None => &mut self.single,
        }
    }

    /// Number of pruned hops in the list.
    fn pruned(&mut self, passage: Option<Duration>) -> &mut usize {
        match passage {
            Some(passage) => &mut self.fan(passage).pruned,
            None => &mut self.single_pruned,
        }
    }
}
