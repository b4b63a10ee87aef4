//! Networks of the usual shapes.

use crate::link::LinkConfig;
use crate::topology::{LinkPair, NodeId, NodePair, Topology};
use fontana_proto::SplitMix64;
use std::sync::Arc;
use std::time::Duration;

/// A tree: one source, and its receivers at the leaves.
#[derive(Clone, Debug)]
pub struct Rooted {
    /// The network.
    pub topology: Topology,
    /// The source's node.
    pub source: NodeId,
    /// The nodes of its receivers.
    pub leaves: Vec<NodeId>,
}

/// Pairs of hosts that share one link.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// The network.
    pub topology: Topology,
    /// A host on the near side and its partner on the far side, for each pair.
    pub pairs: Vec<NodePair>,
    /// The shared link, from the near side to the far side and back.
    pub bottleneck: LinkPair,
}

/// A transit-stub network.
#[derive(Clone, Debug)]
pub struct TransitStub {
    /// The network.
    pub topology: Topology,
    /// Routers of the transit domains.
    pub transit: Vec<NodeId>,
    /// Nodes of the stub domains, which have the hosts.
    pub stubs: Vec<NodeId>,
}

impl Rooted {
    /// A source, a router, and `leaves` hosts around the router.
    pub fn star(
        leaves: u32,
        trunk: impl Into<Arc<LinkConfig>>,
        access: impl Into<Arc<LinkConfig>>,
    ) -> Self {
        Self::tree(&[1, leaves], &[trunk.into(), access.into()])
    }

    /// A tree. A node at depth `d` has `fan_out[d]` children, over links with configuration
    /// `links[d]`, or the last one given.
    pub fn tree(fan_out: &[u32], links: &[Arc<LinkConfig>]) -> Self {
        let mut topology = Topology::new();
        let source = topology.add_node();
        let mut leaves = vec![source];
        let instant = Arc::new(LinkConfig::default());
        for (depth, &children) in fan_out.iter().enumerate() {
            let link = links.get(depth).or(links.last()).unwrap_or(&instant);
            let mut below = Vec::new();
            for parent in leaves {
                for _ in 0..children {
                    let child = topology.add_node();
                    topology.connect(parent, child, Arc::clone(link));
                    below.push(child);
                }
            }
            leaves = below;
        }
        Self { topology, source, leaves }
    }
}

impl Dumbbell {
    /// `pairs` pairs of hosts on both sides of one link. Each host has its own access link.
    pub fn new(
        pairs: u32,
        bottleneck: impl Into<Arc<LinkConfig>>,
        access: impl Into<Arc<LinkConfig>>,
    ) -> Self {
        let access = access.into();
        let mut topology = Topology::new();
        let (near, far) = (topology.add_node(), topology.add_node());
        let bottleneck = topology.connect(near, far, bottleneck);
        let mut host = |router| {
            let host = topology.add_node();
            topology.connect(host, router, Arc::clone(&access));
            host
        };
        let pairs = (0..pairs).map(|_| NodePair { from: host(near), to: host(far) }).collect();
        Self { topology, pairs, bottleneck }
    }
}

/// Classes of links in a transit-stub network.
#[derive(Clone, Debug)]
pub struct TransitStubLinks {
    /// Within a stub domain.
    pub stub: LinkConfig,
    /// From a stub domain to its transit router.
    pub access: LinkConfig,
    /// Within a transit domain.
    pub transit: LinkConfig,
    /// Between transit domains.
    pub core: LinkConfig,
}

impl TransitStubLinks {
    /// The classes of Li and Cheriton, section 4: 100 Mbit/s and 1 ms, 45 Mbit/s and 15 ms, 155
    /// Mbit/s and 8 ms, 155 Mbit/s and 80 ms, with exponential delays of 20 % on top.
    pub fn paper() -> Self {
        let class = |megabits: u64, milliseconds| LinkConfig {
            rate_bytes_per_second: Some(megabits * 125_000),
            delay: Duration::from_millis(milliseconds),
            jitter: Duration::from_millis(milliseconds) / 5,
            ..LinkConfig::default()
        };
        Self {
            stub: class(100, 1),
            access: class(45, 15),
            transit: class(155, 8),
            core: class(155, 80),
        }
    }

    /// The same classes with these losses on all links.
    pub fn with_loss(self, loss: &crate::loss::LossModel) -> Self {
        Self {
            stub: self.stub.with_loss(loss.clone()),
            access: self.access.with_loss(loss.clone()),
            transit: self.transit.with_loss(loss.clone()),
            core: self.core.with_loss(loss.clone()),
        }
    }
}

/// Numbers of domains and nodes of a transit-stub network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitStubShape {
    /// Transit domains.
    pub transit_domains: u32,
    /// Routers in each transit domain.
    pub transit_nodes: u32,
    /// Stub domains of each transit router.
    pub stubs_per_node: u32,
    /// Nodes in each stub domain.
    pub stub_nodes: u32,
}

impl TransitStubShape {
    /// 600 nodes, 3 transit domains, 72 stub domains (Li, Cheriton, section 4).
    pub const PAPER: Self =
        Self { transit_domains: 3, transit_nodes: 8, stubs_per_node: 3, stub_nodes: 8 };
}

/// Links within a transit and within a stub domain, per mille of all pairs of nodes, as in GT-ITM's
/// example of such networks (Zegura, Calvert, Bhattacharjee: "How to model an internetwork", 1996).
const TRANSIT_EDGES: u32 = 600;
const STUB_EDGES: u32 = 420;

impl TransitStub {
    /// A network of this shape. `random` draws the links within domains, the routers that link each
    /// two transit domains, and the node that links a stub domain with its transit router.
    pub fn new(shape: TransitStubShape, links: TransitStubLinks, random: &mut SplitMix64) -> Self {
        let mut topology = Topology::new();
        let [stub, access, core, transit] =
            [links.stub, links.access, links.core, links.transit].map(Arc::new);
        let domains: Vec<_> = (0..shape.transit_domains)
            .map(|_| {
                let nodes = topology.add_nodes(shape.transit_nodes);
                connect_at_random(&mut topology, &nodes, TRANSIT_EDGES, &transit, random);
                nodes
            })
            .collect();
        let mut draw =
            |nodes: &[NodeId]| nodes.get(random.below(nodes.len() as u32) as usize).copied();
        for (index, here) in domains.iter().enumerate() {
            for there in domains.iter().skip(index + 1) {
                if let (Some(a), Some(b)) = (draw(here), draw(there)) {
                    topology.connect(a, b, Arc::clone(&core));
                }
            }
        }
        let mut stubs = Vec::new();
        for router in domains.iter().flatten() {
            for _ in 0..shape.stubs_per_node {
                let nodes = topology.add_nodes(shape.stub_nodes);
                connect_at_random(&mut topology, &nodes, STUB_EDGES, &stub, random);
                if let Some(&gate) = nodes.get(random.below(shape.stub_nodes) as usize) {
                    topology.connect(*router, gate, Arc::clone(&access));
                }
                stubs.extend(nodes);
            }
        }
        Self { topology, transit: domains.into_iter().flatten().collect(), stubs }
    }
}

/// Links any two of `nodes` with a probability of `permille`, and draws all of them again until all
/// nodes are connected, as GT-ITM does.
fn connect_at_random(
    topology: &mut Topology,
    nodes: &[NodeId],
    permille: u32,
    link: &Arc<LinkConfig>,
    random: &mut SplitMix64,
) {
    let pairs = || (1..nodes.len()).flat_map(|later| (0..later).map(move |before| (before, later)));
    let drawn = loop {
        let drawn: Vec<_> = pairs().filter(|_| random.below(1_000) < permille).collect();
        if are_connected(nodes.len(), &drawn) {
            break drawn;
        }
    };
    for (before, later) in drawn {
        topology.connect(nodes[before], nodes[later], Arc::clone(link));
    }
}

/// Whether links between pairs of `0..count` connect all of them.
fn are_connected(count: usize, pairs: &[(usize, usize)]) -> bool {
    let mut part: Vec<usize> = (0..count).collect();
    for &(a, b) in pairs {
        let (from, to) = (part[a], part[b]);
        part.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
    }
    part.windows(2).all(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_their_leaves_at_their_depth() {
        let links = [1, 2].map(|ms| Arc::new(LinkConfig::wire(Duration::from_millis(ms))));
        let tree = Rooted::tree(&[2, 3, 4], &links);
        assert_eq!((tree.topology.node_count(), tree.leaves.len()), (1 + 2 + 6 + 24, 24));
        let paths = tree.topology.shortest_paths(tree.source);
        for &leaf in &tree.leaves {
            let path = paths.path(&tree.topology, leaf).unwrap();
            let delays = path.iter().map(|link| tree.topology.edges()[link.index()].config.delay);
            assert_eq!(delays.map(|d| d.as_millis()).collect::<Vec<_>>(), [1, 2, 2]);
        }
    }

    #[test]
    fn the_papers_network_is_one_network_of_600_nodes() {
        for seed in 0..5 {
            let mut random = SplitMix64::new(seed, 0);
            let shape = TransitStubShape::PAPER;
            let network = TransitStub::new(shape, TransitStubLinks::paper(), &mut random);
            assert_eq!((network.transit.len(), network.stubs.len()), (24, 576));
            assert_eq!(network.topology.node_count(), 600);
            let paths = network.topology.shortest_paths(network.stubs[0]);
            let all = network.transit.iter().chain(&network.stubs);
            assert!(all.clone().all(|&node| paths.path(&network.topology, node).is_some()));
        }
    }

    /// 72 stub domains of 28 pairs and three transit domains of 28, of which 42 and 60 % are
    /// linked, a little more since they are connected, and 75 links between domains.
    #[test]
    fn the_papers_network_has_about_as_many_links_as_gt_itm_draws() {
        let links = (0..20).map(|seed| {
            let mut random = SplitMix64::new(seed, 0);
            let shape = TransitStubShape::PAPER;
            let network = TransitStub::new(shape, TransitStubLinks::paper(), &mut random);
            network.topology.edges().len() / 2
        });
        let mean = links.sum::<usize>() / 20;
        assert!((1_000..1_045).contains(&mean), "{mean}");
    }

    #[test]
    fn a_path_connects_and_a_node_on_its_own_does_not() {
        assert!(are_connected(4, &[(0, 1), (2, 3), (1, 2)]) && are_connected(1, &[]));
        assert!(!are_connected(4, &[(0, 1), (1, 2), (0, 2)]) && !are_connected(2, &[]));
    }

    #[test]
    fn every_pair_of_a_dumbbell_shares_its_link() {
        let access = LinkConfig::wire(Duration::from_millis(1));
        let dumbbell = Dumbbell::new(3, LinkConfig::default(), access);
        for &NodePair { from, to } in &dumbbell.pairs {
            let path = dumbbell.topology.path(from, to).unwrap();
            assert_eq!((path.len(), path[1]), (3, dumbbell.bottleneck.there));
            let back = dumbbell.topology.path(to, from).unwrap();
            assert_eq!((back.len(), back[1]), (3, dumbbell.bottleneck.back));
        }
    }
}
