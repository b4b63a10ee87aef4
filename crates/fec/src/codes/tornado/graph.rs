//! Graphs: the symbols that each check symbol is the sum of.

use super::TornadoCode;
use crate::codes::shared::csr::Lists;
use crate::codes::shared::splitmix::{SplitMix64, shuffle};
use alloc::vec;
use alloc::vec::Vec;

/// The layers of a block and the edges between them.
///
/// Encoding symbols are numbered layer by layer: `k` source symbols, then the first checks, each a
/// sum of source symbols, then the last checks, each a sum of first checks. With stretch factor
/// `c`:
///
/// - The first graph has about `k (c-1)/c` checks.
/// - *G1* leads to all but a fiftieth of them. The degrees of source symbols have a heavy tail: the
///   share of degree `i` is `(D+1) / (D i (i-1))` for `i` from 2 to `D+1`, `D = 200`; each edge
///   ends at a random check. `D` is less for blocks of under 5 000: `k / 25`, and at least 20.
/// - *G2* leads to that fiftieth: each source symbol has two edges, evenly distributed.
/// - The second graph is between the first checks and all the others, `c - 1` times as many.
///   Degrees on the left are about `6 c`, so that six edges lead to available checks. Degrees on
///   the right are those of the paper's linear program.
///
/// For `k = 16 000` and `c = 2` these are the printed 7 840 + 160 and 8 000 checks, and 94 516 +
/// 32 000 + 96 000 edges. Everything is computed in integers.
#[derive(Debug)]
pub struct Graph {
    code: TornadoCode,
    source_symbols: u32,
    first_checks: u32,
    /// For each check, first checks first, the symbols whose sum it is.
    terms: Lists,
    /// For each source symbol and first check, the checks whose sum contains it.
    checks: Lists,
    /// For each check, the exclusive or of its own ESI and those of its terms.
    sums: Vec<u32>,
}

impl Graph {
    /// `source_symbols` must be within the code's limits.
    pub(super) fn new(code: TornadoCode, source_symbols: u32) -> Self {
        let (k, c) = (source_symbols, u32::from(code.stretch_factor));
        let first_checks = first_checks(k, c);
        let last_checks = (c - 1) * k - first_checks;
        let mut random = SplitMix64::new(code.seed);

        // Symbols of a layer differ in their degrees. A random permutation assigns the degrees, so
        // that consecutive symbols are a representative sample of their layer.
        let sources = permutation(0, k, &mut random);
        let firsts = permutation(k, first_checks, &mut random);
        let lasts = permutation(0, last_checks, &mut random);
        let even = first_checks / 50 + u32::from(first_checks % 50 >= 25);
        let (heavy_tail, even) = firsts.split_at((first_checks - even) as usize);

        let mut of_firsts = vec![Vec::new(); first_checks as usize];
        scatter(&sources, heavy_tail_degrees(k), heavy_tail.len(), &mut random, |check, source| {
            of_firsts[(heavy_tail[check] - k) as usize].push(source);
        });
        let slots = deal(&sources, 2, even_degrees(2 * k, even.len() as u32), &mut random);
        for (&check, list) in even.iter().zip(slots) {
            of_firsts[(check - k) as usize] = list;
        }
        let mut of_lasts = vec![Vec::new(); last_checks as usize];
        // A little less than six if there are many checks: found by experiment.
        let degree = 6 * c - (c - 2) / 4;
        let degrees = last_degrees(last_checks, degree * first_checks);
        for (&check, list) in lasts.iter().zip(deal(&firsts, degree, degrees, &mut random)) {
            of_lasts[check as usize] = list;
        }

        let edges = of_firsts.iter().chain(&of_lasts).map(Vec::len).sum();
        let mut terms = Lists::with_capacity(((c - 1) * k) as usize, edges);
        for list in of_firsts.into_iter().chain(of_lasts) {
            terms.push(list);
        }
        let checks = terms.transposed(0..k + first_checks);
        let sum = |(esi, terms): (u32, &[u32])| terms.iter().fold(esi, |sum, term| sum ^ term);
        let sums = (k..).zip(terms.iter()).map(sum).collect();
        Self { code, source_symbols, first_checks, terms, checks, sums }
    }

    /// The code whose graph this is.
    pub fn code(&self) -> TornadoCode {
        self.code
    }

    /// `k`: source symbols of a block.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// `n`: encoding symbols of a block; their ESIs are `0..n`.
    pub fn encoding_symbols(&self) -> u32 {
        self.source_symbols + self.terms.len() as u32
    }

    /// Checks that are sums of source symbols. Their ESIs follow the source symbols'.
    pub fn first_checks(&self) -> u32 {
        self.first_checks
    }

    /// Edges in all.
    pub fn edges(&self) -> usize {
        self.terms.total()
    }

    /// The ESIs of the symbols that check `index` is the sum of: the check with ESI `k + index`.
    ///
    /// # Panics
    /// If there is no such check.
    pub fn terms(&self, index: u32) -> &[u32] {
        self.terms.list(index as usize)
    }

    /// For each check, the number of its terms plus one, and the exclusive or of their ESIs and its
    /// own.
    pub(super) fn checks(&self) -> impl Iterator<Item = (u32, u32)> {
        let count = |(terms, &sum): (&[u32], &u32)| (terms.len() as u32 + 1, sum);
        self.terms.iter().zip(&self.sums).map(count)
    }

    /// The indices of the checks whose sum contains symbol `esi`; none for last checks.
    pub(super) fn checks_of(&self, esi: u32) -> &[u32] {
        let esi = esi as usize;
        if esi < self.checks.len() { self.checks.list(esi) } else { &[] }
    }
}

/// How many checks the first graph has.
///
/// The first term is the number of source symbols that are missing when `k` of `c k` symbols are
/// available: enough checks if no symbol were wasted. The same share of the checks is wasted for
/// each stretch factor, so a larger one needs more checks. Found by experiment: a 28th of `1 - 2/c`
/// more needs the fewest symbols.
fn first_checks(k: u32, c: u32) -> u32 {
    k * (c - 1) / c + k * (c - 2) / (28 * c)
}

/// `start..start + count` in random order.
fn permutation(start: u32, count: u32, random: &mut SplitMix64) -> Vec<u32> {
    let mut items: Vec<u32> = (start..start + count).collect();
    shuffle(&mut items, random);
    items
}

/// Degrees of `k` nodes, ascending, with a truncated heavy tail. The shares of degrees up to `i`
/// add up to `(D+1)(i-1) / (D i)`, and node `j` represents the middle of its `k`-th, `(2j+1) / 2k`.
/// Short blocks have a shorter tail, because they have few checks.
fn heavy_tail_degrees(k: u32) -> impl Iterator<Item = u32> {
    let (d, k) = (u64::from((k / 25).clamp(20, 200)), u64::from(k));
    let mut degree = 2;
    (0..k).map(move |j| {
        while (d + 1) * (degree - 1) * 2 * k < d * degree * (2 * j + 1) {
            degree += 1;
        }
        degree as u32
    })
}

/// `edges` distributed over `nodes` as evenly as possible, the smaller degrees first.
fn even_degrees(edges: u32, nodes: u32) -> impl Iterator<Item = u32> {
    let least = edges.checked_div(nodes).unwrap_or(0);
    let more = edges - least * nodes;
    (0..nodes).map(move |node| least + u32::from(node + more >= nodes))
}

/// Degrees of the last checks. The printed ones are four groups of nodes, each with a degree that
/// is as even as integers allow. A graph of another size has the same share of nodes and of edges
/// in each group.
fn last_degrees(nodes: u32, edges: u32) -> impl Iterator<Item = u32> {
    /// Nodes and edges of the printed graph up to the end of each group: degrees 5 and 6, then 33
    /// and 34, then 141, then 170 and 171.
    const GROUPS: [(u64, u64); 4] =
        [(7_190, 39_047), (7_784, 59_121), (7_785, 59_262), (8_000, 96_000)];
    let (mut nodes_before, mut edges_before) = (0, 0);
    GROUPS.into_iter().flat_map(move |(group_nodes, group_edges)| {
        let nodes_then = (u64::from(nodes) * group_nodes / 8_000) as u32;
        let mut edges_then = (u64::from(edges) * group_edges / 96_000) as u32;
        if nodes_then == nodes_before {
            // A group without nodes passes its edges to the next.
            edges_then = edges_before;
        }
        let degrees = even_degrees(edges_then - edges_before, nodes_then - nodes_before);
        (nodes_before, edges_before) = (nodes_then, edges_then);
        degrees
    })
}

/// Draws `degrees` edges from each of `nodes` to any of `checks` checks; the edges of a node end at
/// different checks if there are as many.
fn scatter(
    nodes: &[u32],
    degrees: impl Iterator<Item = u32>,
    checks: usize,
    random: &mut SplitMix64,
    mut edge: impl FnMut(usize, u32),
) {
    let mut ends = Vec::new();
    for (&node, degree) in nodes.iter().zip(degrees) {
        ends.clear();
        while ends.len() < (degree as usize).min(checks) {
            let check = random.below(checks as u32) as usize;
            if !ends.contains(&check) {
                ends.push(check);
                edge(check, node);
            }
        }
    }
}

/// Distributes `degree` edges of each of `nodes`, in random order, to checks of these degrees. An
/// edge that repeats another is swapped with a random one. If that does not help, because a check
/// has about as many edges as there are nodes, the two edges cancel each other out.
fn deal(
    nodes: &[u32],
    degree: u32,
    degrees: impl Iterator<Item = u32>,
    random: &mut SplitMix64,
) -> Vec<Vec<u32>> {
    /// With a random partner the first attempt almost always succeeds.
    const ATTEMPTS: usize = 100;
    let mut slots: Vec<u32> =
        nodes.iter().flat_map(|&node| core::iter::repeat_n(node, degree as usize)).collect();
    shuffle(&mut slots, random);
    let mut ranges = Vec::new();
    let mut check_of_slot = Vec::with_capacity(slots.len());
    let mut start = 0;
    for (check, degree) in degrees.enumerate() {
        ranges.push(start..start + degree as usize);
        check_of_slot.extend(core::iter::repeat_n(check, degree as usize));
        start += degree as usize;
    }
    for slot in 0..check_of_slot.len() {
        let own = ranges[check_of_slot[slot]].clone();
        if !slots[own.start..slot].contains(&slots[slot]) {
            continue;
        }
        for _ in 0..ATTEMPTS {
            let other = random.below(slots.len() as u32) as usize;
            let others = ranges[check_of_slot[other]].clone();
            if others != own
                && !slots[others].contains(&slots[slot])
                && !slots[own.clone()].contains(&slots[other])
            {
                slots.swap(slot, other);
                break;
            }
        }
    }
    ranges.into_iter().map(|range| without_pairs(&slots[range])).collect()
}

/// The items that occur an odd number of times, once each, at their first position.
fn without_pairs(items: &[u32]) -> Vec<u32> {
    let mut sorted = items.to_vec();
    sorted.sort_unstable();
    if sorted.is_sorted_by(|a, b| a < b) {
        return items.to_vec();
    }
    let mut once: Vec<u32> = Vec::with_capacity(items.len());
    for &item in items {
        match once.iter().position(|&other| other == item) {
            Some(at) => drop(once.remove(at)),
            None => once.push(item),
        }
    }
    once
}
