//! Receivers of a carousel with any of the compared codes.

use super::interleaved::{CarouselReception, Interleaved};
use super::loss::LossProcess;
use super::tornado;
use fontana_fec::Esi;
use fontana_fec::study::tornado::{Peeler, Peeling};
use fontana_proto::SplitMix64;

/// The codes that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarouselCode {
    /// Tornado Z of 16 000 nodes, decoded as in the paper.
    Tornado,
    /// Tornado Z as the product has it: a node in each packet, decoded by joint peeling.
    TornadoOfProduct,
    /// Reed-Solomon codes over blocks of about this many source packets.
    Interleaved(u32),
}

impl CarouselCode {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Tornado => "Tornado Z".into(),
            Self::TornadoOfProduct => "Tornado Z (product)".into(),
            Self::Interleaved(length) => format!("interleaved k = {length}"),
        }
    }

    /// A carousel of a file of `source_symbols` with this code. `random` draws its order.
    pub(crate) fn carousel(self, source_symbols: u32, random: &mut SplitMix64) -> Carousel {
        match self {
            Self::Tornado => {
                let nodes = tornado::SOURCE_SYMBOLS;
                let each = nodes / source_symbols;
                let shuffled = Shuffled::new(nodes, each, Peeling::OneDirectional, random);
                Carousel::Tornado(Box::new(shuffled))
            }
            Self::TornadoOfProduct => {
                let shuffled = Shuffled::new(source_symbols, 1, Peeling::Joint, random);
                Carousel::Tornado(Box::new(shuffled))
            }
            Self::Interleaved(length) => {
                Carousel::Interleaved(Interleaved::new(source_symbols, source_symbols / length))
            }
        }
    }
}

/// A carousel, and the memory of one receiver after the other.
#[derive(Debug)]
pub(crate) enum Carousel {
    Tornado(Box<Shuffled>),
    Interleaved(Interleaved),
}

impl Carousel {
    /// A receiver that joins at any time.
    pub(crate) fn receive(
        &mut self,
        loss: &LossProcess,
        random: &mut SplitMix64,
    ) -> CarouselReception {
        let got = match self {
            Self::Tornado(file) => return file.receive(loss.clone(), random),
            Self::Interleaved(file) => file.receive(loss.clone(), u32::MAX, random),
        };
        // Without a limit every receiver ends.
        got.unwrap_or(CarouselReception { distinct: u32::MAX, sent: u32::MAX })
    }
}

/// Tornado Z in a random order, for ever. The paper has 16 000 source nodes, whatever the length of
/// the file: a packet of a shorter file holds several nodes ("in our simulations each packet may
/// hold values for several variables", section V-A).
#[derive(Debug)]
pub(crate) struct Shuffled {
    peeler: Peeler,
    /// The nodes of each packet, one packet after the other.
    nodes: Vec<Esi>,
    /// Nodes of a packet.
    each: usize,
    order: Vec<u32>,
    got: Vec<bool>,
}

impl Shuffled {
    /// A file of `source_nodes`, with `each` nodes in a packet; 0 counts as 1.
    fn new(source_nodes: u32, each: u32, peeling: Peeling, random: &mut SplitMix64) -> Self {
        let graph = tornado::graph(source_nodes);
        let mut nodes: Vec<Esi> = (0..graph.encoding_symbols()).map(Esi).collect();
        shuffle(&mut nodes, random);
        let each = each.max(1) as usize;
        let packets = nodes.len() / each;
        Self {
            peeler: Peeler::new(graph, peeling),
            nodes,
            each,
            order: (0..packets as u32).collect(),
            got: vec![false; packets],
        }
    }

    fn receive(&mut self, mut loss: LossProcess, random: &mut SplitMix64) -> CarouselReception {
        self.peeler.reset();
        self.got.fill(false);
        // Each receiver has its own order: with few losses, receivers of one order would get nearly
        // the same packets.
        shuffle(&mut self.order, random);
        let (mut distinct, mut sent) = (0, 0);
        for &packet in self.order.iter().cycle() {
            if self.peeler.is_complete() {
                break;
            }
            sent += 1;
            if !loss.next(random) && !std::mem::replace(&mut self.got[packet as usize], true) {
                distinct += 1;
                for &node in &self.nodes[packet as usize * self.each..][..self.each] {
                    // All of these are encoding symbols of the block.
                    let _ = self.peeler.push(node);
                }
            }
        }
        CarouselReception { distinct, sent }
    }
}

/// Shuffles items uniformly.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carousel_that_comes_round_brings_duplicates_only_of_what_arrived() {
        let mut random = SplitMix64::new(1, 1);
        for code in
            [CarouselCode::Tornado, CarouselCode::TornadoOfProduct, CarouselCode::Interleaved(20)]
        {
            let mut carousel = code.carousel(500, &mut random);
            for share in [0.0, 0.5, 0.9] {
                let got = carousel.receive(&LossProcess::random(share), &mut random);
                assert!((500..=1000).contains(&got.distinct), "{code:?} {share} {got:?}");
                let expected = f64::from(got.distinct) / (1.0 - share);
                assert!(f64::from(got.sent) > 0.8 * expected, "{code:?} {share} {got:?}");
            }
        }
    }
}
