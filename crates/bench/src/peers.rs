//! Other implementations. They get their packets prepared, before the clock starts. Fontana's
//! symbols are copied while it runs, as a receiver does from disk.

use crate::contest::Contestant;
use crate::workload::{SYMBOL_SIZE, Scenario, Workload};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder, SourceBlockEncodingPlan,
};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// Makes a contestant; `None` if the implementation does not support the scenario.
pub(crate) type Peer = for<'a> fn(Scenario, &'a Workload) -> Option<Box<dyn Contestant + 'a>>;

/// The crate `raptorq`, which implements the same code.
pub(crate) fn raptorq(scenario: Scenario, workload: &Workload) -> Option<Box<dyn Contestant + '_>> {
    Some(match scenario {
        Scenario::Plan => Box::new(RaptorQPlanning { k: u16::try_from(workload.k).ok()? }),
        Scenario::Encode => {
            let plan = SourceBlockEncodingPlan::generate(u16::try_from(workload.k).ok()?);
            Box::new(RaptorQEncoding { workload, plan })
        }
        Scenario::Decode { lost } => Box::new(RaptorQDecoding::new(workload, lost)),
        Scenario::Receive | Scenario::ReceiveIds => return None,
    })
}

/// The crate `reed-solomon-simd`: a code of fixed rate, here with as many repair symbols as source
/// symbols.
pub(crate) fn reed_solomon_simd(
    scenario: Scenario,
    workload: &Workload,
) -> Option<Box<dyn Contestant + '_>> {
    let k = workload.k as usize;
    if !ReedSolomonEncoder::supports(k, k) {
        return None;
    }
    match scenario {
        Scenario::Plan | Scenario::Receive | Scenario::ReceiveIds => None,
        Scenario::Encode => Some(Box::new(ReedSolomonEncoding {
            workload,
            encoder: ReedSolomonEncoder::new(k, k, SYMBOL_SIZE).unwrap(),
        })),
        Scenario::Decode { lost } => Some(Box::new(ReedSolomonDecoding::new(workload, lost))),
    }
}

fn raptorq_config(workload: &Workload) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(workload.block.len() as u64, SYMBOL_SIZE as u16, 1, 1, 1)
}

const RAPTORQ: &str = "raptorq";
const REED_SOLOMON_SIMD: &str = "reed-solomon-simd";

struct RaptorQPlanning {
    k: u16,
}

impl Contestant for RaptorQPlanning {
    fn name(&self) -> &str {
        RAPTORQ
    }

    fn run(&mut self) {
        SourceBlockEncodingPlan::generate(self.k);
    }
}

struct RaptorQEncoding<'a> {
    workload: &'a Workload,
    plan: SourceBlockEncodingPlan,
}

impl RaptorQEncoding<'_> {
    fn repair_packets(&self, count: u32) -> Vec<EncodingPacket> {
        let config = raptorq_config(self.workload);
        SourceBlockEncoder::with_encoding_plan(0, &config, &self.workload.block, &self.plan)
            .repair_packets(0, count)
    }
}

impl Contestant for RaptorQEncoding<'_> {
    fn name(&self) -> &str {
        RAPTORQ
    }

    fn run(&mut self) {
        self.repair_packets(self.workload.k);
    }
}

struct RaptorQDecoding<'a> {
    workload: &'a Workload,
    packets: Vec<EncodingPacket>,
    /// A copy for the next run, which consumes it.
    prepared: Vec<EncodingPacket>,
}

impl<'a> RaptorQDecoding<'a> {
    fn new(workload: &'a Workload, percent: u32) -> Self {
        let lost = workload.lost(percent);
        let k = u16::try_from(workload.k).unwrap();
        let plan = SourceBlockEncodingPlan::generate(k);
        let repair = RaptorQEncoding { workload, plan };
        // One symbol more than there are source symbols suffices, except once in 10 000 times.
        let mut packets = repair.repair_packets(lost.len() as u32 + 1);
        let here =
            (0..workload.k).filter(|&esi| lost.binary_search(&fontana_fec::Esi(esi)).is_err());
        packets.extend(here.map(|esi| {
            let symbol = workload.symbol(fontana_fec::Esi(esi)).to_vec();
            EncodingPacket::new(PayloadId::new(0, esi), symbol)
        }));
        let mut this = Self { workload, packets, prepared: Vec::new() };
        this.prepare();
        assert!(this.decode() == workload.block);
        this
    }

    fn decode(&mut self) -> Vec<u8> {
        let (config, length) = (raptorq_config(self.workload), self.workload.block.len() as u64);
        let mut decoder = SourceBlockDecoder::new(0, &config, length);
        decoder.decode(std::mem::take(&mut self.prepared)).unwrap()
    }
}

impl Contestant for RaptorQDecoding<'_> {
    fn name(&self) -> &str {
        RAPTORQ
    }

    fn prepare(&mut self) {
        self.prepared.clone_from(&self.packets);
    }

    fn run(&mut self) {
        self.decode();
    }
}

struct ReedSolomonEncoding<'a> {
    workload: &'a Workload,
    encoder: ReedSolomonEncoder,
}

impl ReedSolomonEncoding<'_> {
    fn repair_symbols(&mut self) -> Vec<Vec<u8>> {
        for symbol in self.workload.block.chunks(SYMBOL_SIZE) {
            self.encoder.add_original_shard(symbol).unwrap();
        }
        self.encoder.encode().unwrap().recovery_iter().map(<[u8]>::to_vec).collect()
    }
}

impl Contestant for ReedSolomonEncoding<'_> {
    fn name(&self) -> &str {
        REED_SOLOMON_SIMD
    }

    fn run(&mut self) {
        self.repair_symbols();
    }
}

struct ReedSolomonDecoding<'a> {
    workload: &'a Workload,
    decoder: ReedSolomonDecoder,
    repair: Vec<Vec<u8>>,
    lost: Vec<bool>,
}

impl<'a> ReedSolomonDecoding<'a> {
    fn new(workload: &'a Workload, percent: u32) -> Self {
        let k = workload.k as usize;
        let encoder = ReedSolomonEncoder::new(k, k, SYMBOL_SIZE).unwrap();
        let mut repair = ReedSolomonEncoding { workload, encoder }.repair_symbols();
        let lost = workload.lost(percent);
        repair.truncate(lost.len());
        let mut is_lost = vec![false; k];
        lost.iter().for_each(|esi| is_lost[esi.0 as usize] = true);
        let decoder = ReedSolomonDecoder::new(k, k, SYMBOL_SIZE).unwrap();
        Self { workload, decoder, repair, lost: is_lost }
    }
}

impl Contestant for ReedSolomonDecoding<'_> {
    fn name(&self) -> &str {
        REED_SOLOMON_SIMD
    }

    fn run(&mut self) {
        let symbols = self.workload.block.chunks(SYMBOL_SIZE).zip(&self.lost);
        for (index, (symbol, _)) in symbols.enumerate().filter(|(_, (_, lost))| !**lost) {
            self.decoder.add_original_shard(index, symbol).unwrap();
        }
        for (index, symbol) in self.repair.iter().enumerate() {
            self.decoder.add_recovery_shard(index, symbol).unwrap();
        }
        let restored = self.decoder.decode().unwrap();
        for (index, symbol) in restored.restored_original_iter() {
            debug_assert!(symbol == self.workload.symbol(fontana_fec::Esi(index as u32)));
            std::hint::black_box(symbol.to_vec());
        }
    }
}
