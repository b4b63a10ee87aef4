//! Nodes, links and shortest paths.

use crate::link::LinkConfig;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

mod generate;

pub use generate::{Dumbbell, Rooted, TransitStub, TransitStubLinks, TransitStubShape};

/// A host or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// Number of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Both directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPair {
    /// From the first node to the second.
    pub there: LinkId,
    /// From the second node to the first.
    pub back: LinkId,
}

/// Two nodes, in order: the ends of a flow or of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePair {
    /// First node: where a flow's data is sent.
    pub from: NodeId,
    /// Second node: where it arrives.
    pub to: NodeId,
}

/// One direction of a link: its ends and its configuration.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Near end.
    pub from: NodeId,
    /// Far end.
    pub to: NodeId,
    /// Its configuration.
    pub config: Arc<LinkConfig>,
}

/// A graph of nodes and links.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    node_count: u32,
    edges: Vec<Edge>,
}

impl NodeId {
    /// Source address of its datagrams, in 10.0.0.0/8: distinct for 2^24 nodes.
    pub fn address(self) -> IpAddr {
        let [_, a, b, c] = self.0.to_be_bytes();
        Ipv4Addr::new(10, a, b, c).into()
    }

    /// The node whose datagrams have this source address; `None` if no node has.
    pub fn of(address: SocketAddr) -> Option<Self> {
        match address.ip() {
            IpAddr::V4(v4) if v4.octets()[0] == 10 => Some(Self(v4.to_bits() & 0x00FF_FFFF)),
            _ => None,
        }
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Topology {
    /// A graph without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    pub fn add_node(&mut self) -> NodeId {
        self.node_count += 1;
        NodeId(self.node_count - 1)
    }

    /// Adds `count` nodes.
    pub fn add_nodes(&mut self, count: u32) -> Vec<NodeId> {
        (0..count).map(|_| self.add_node()).collect()
    }

    /// Adds one direction of a link, and its ends if they are not in the graph.
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: impl Into<Arc<LinkConfig>>,
    ) -> LinkId {
        self.node_count = self.node_count.max(from.0 + 1).max(to.0 + 1);
        self.edges.push(Edge { from, to, config: config.into() });
        LinkId(self.edges.len() as u32 - 1)
    }

    /// Adds both directions of a link, with the same configuration.
    pub fn connect(
        &mut self,
        a: NodeId,
        b: NodeId,
        config: impl Into<Arc<LinkConfig>>,
    ) -> LinkPair {
        let config = config.into();
        let there = self.add_link(a, b, Arc::clone(&config));
        LinkPair { there, back: self.add_link(b, a, config) }
    }

    /// Number of nodes; they are numbered from 0.
    pub fn node_count(&self) -> u32 {
        self.node_count
    }

    /// All links, by their numbers.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The shortest paths from `root` to all nodes.
    pub fn shortest_paths(&self, root: NodeId) -> PathTree {
        PathTree { root, towards: self.tree(root, |edge| (edge.from, edge.to)) }
    }

    /// The next hop of each node towards `destination`: `None` for the destination and for nodes
    /// without a path to it. Paths are the shortest, as those of [`path`](Self::path); of several
    /// that are equally short, a router takes one for each destination.
    pub fn next_hops(&self, destination: NodeId) -> Vec<Option<LinkId>> {
        self.tree(destination, |edge| (edge.to, edge.from))
    }

    /// For each node, its link of the tree of shortest paths. `ends` are the ends of an edge, first
    /// the one that is closer to the root.
    fn tree(&self, root: NodeId, ends: impl Fn(&Edge) -> (NodeId, NodeId)) -> Vec<Option<LinkId>> {
        let mut leaving = vec![Vec::new(); self.node_count as usize];
        for (link, edge) in (0..).map(LinkId).zip(&self.edges) {
            leaving[ends(edge).0.index()].push(link);
        }
        let mut best = vec![(u64::MAX, u32::MAX); self.node_count as usize];
        let mut towards = vec![None; self.node_count as usize];
        let mut heap = BinaryHeap::new();
        if let Some(start) = best.get_mut(root.index()) {
            *start = (0, 0);
            heap.push(Reverse(((0, 0), root)));
        }
        while let Some(Reverse((cost, node))) = heap.pop() {
            if cost > best[node.index()] {
                continue;
            }
            for &link in &leaving[node.index()] {
                let edge = &self.edges[link.index()];
                let (config, to) = (&edge.config, ends(edge).1);
                let delay = u64::try_from((config.delay + config.jitter).as_nanos());
                let further = (cost.0.saturating_add(delay.unwrap_or(u64::MAX)), cost.1 + 1);
                if further < best[to.index()] {
                    best[to.index()] = further;
                    towards[to.index()] = Some(link);
                    heap.push(Reverse((further, to)));
                }
            }
        }
        towards
    }

    /// The links of the shortest path from one node to another; `None` if there is no path.
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        self.shortest_paths(from).path(self, to)
    }
}

/// The tree of the shortest paths from one node: by delay, then by number of hops, then by the
/// order of the links. The order makes the tree unique.
#[derive(Clone, Debug)]
pub struct PathTree {
    root: NodeId,
    towards: Vec<Option<LinkId>>,
}

impl PathTree {
    /// The node that it starts from.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The last link of the path to `node`; `None` for the root and for unreachable nodes.
    pub fn link_to(&self, node: NodeId) -> Option<LinkId> {
        self.towards.get(node.index()).copied().flatten()
    }

    /// The links from the root to `node`; `None` if the node is unreachable.
    pub fn path(&self, topology: &Topology, node: NodeId) -> Option<Vec<LinkId>> {
        let (mut at, mut links) = (node, Vec::new());
        while at != self.root {
            let link = self.link_to(at)?;
            links.push(link);
            at = topology.edges[link.index()].from;
        }
        links.reverse();
        Some(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_proto::SplitMix64;
    use std::time::Duration;

    fn wire(milliseconds: u64) -> LinkConfig {
        LinkConfig::wire(Duration::from_millis(milliseconds))
    }

    #[test]
    fn the_shortest_way_is_the_one_of_least_delay_then_of_fewest_hops() {
        let mut topology = Topology::new();
        let nodes = topology.add_nodes(4);
        let ab = topology.connect(nodes[0], nodes[1], wire(1)).there;
        let bc = topology.connect(nodes[1], nodes[2], wire(1)).there;
        topology.connect(nodes[0], nodes[2], wire(3));
        let ad = topology.connect(nodes[0], nodes[3], wire(2)).there;
        topology.connect(nodes[1], nodes[3], wire(1));
        assert_eq!(topology.path(nodes[0], nodes[2]), Some(vec![ab, bc]));
        assert_eq!(topology.path(nodes[0], nodes[3]), Some(vec![ad]));
        assert_eq!(topology.path(nodes[0], nodes[0]), Some(vec![]));
    }

    #[test]
    fn next_hops_follow_paths_as_short_as_the_shortest() {
        let mut random = SplitMix64::new(4, 0);
        let shape = TransitStubShape::PAPER;
        let network = TransitStub::new(shape, TransitStubLinks::paper(), &mut random);
        let topology = network.topology;
        let length = |links: &[LinkId]| {
            let delay = |link: &LinkId| topology.edges[link.index()].config.delay;
            (links.iter().map(delay).sum::<Duration>(), links.len())
        };
        let to = network.stubs[7];
        let next = topology.next_hops(to);
        for from in (0..topology.node_count()).map(NodeId) {
            let (mut at, mut links) = (from, Vec::new());
            while let Some(link) = next[at.index()] {
                links.push(link);
                at = topology.edges[link.index()].to;
            }
            assert_eq!(at, to, "from {from:?}");
            assert_eq!(length(&links), length(&topology.path(from, to).unwrap()), "{from:?}");
        }
    }

    #[test]
    fn what_is_not_connected_is_not_reached() {
        let mut topology = Topology::new();
        let nodes = topology.add_nodes(3);
        topology.add_link(nodes[1], nodes[0], wire(1));
        assert_eq!(topology.path(nodes[0], nodes[1]), None, "a link has a direction");
        assert!(topology.path(nodes[1], nodes[0]).is_some());
        assert_eq!(topology.path(nodes[0], nodes[2]), None);
    }

    #[test]
    fn every_node_has_an_address_of_its_own() {
        assert_eq!(NodeId(0).address().to_string(), "10.0.0.0");
        assert_eq!(NodeId(70_000).address().to_string(), "10.1.17.112");
        for node in [NodeId(0), NodeId(70_000)] {
            assert_eq!(NodeId::of(SocketAddr::new(node.address(), 9)), Some(node));
        }
        assert_eq!(NodeId::of(([11, 0, 0, 1], 9).into()), None);
    }
}
