//! Plans on shards: which are read, which are computed, and their operations.

use super::Counts;
use crate::bytes::kernel::{
    CANTOR, CauchyInputs, CauchyOutputs, Coefficients, InstructionSet, OctetShift, PairShift,
    PairSums, ProductTable, ShardProducts, ShardSums, Shards, Shift,
};
use crate::bytes::line::{LINE, Line};
use crate::field::gf65536::leopard_field;
use alloc::vec;
use alloc::vec::Vec;

/// How shards are computed from others.
pub(super) struct ShardPlan {
    /// The shards that are read, in the order of the program's inputs.
    pub(super) inputs: Vec<u32>,
    /// The shards that are computed, in the order of the program's outputs.
    pub(super) outputs: Vec<u32>,
    pub(super) program: Program,
}

/// The operations of a plan.
pub(super) enum Program {
    /// A matrix over GF(256), column by column, of octets in the form of the table.
    Matrix(Vec<u8>, &'static ProductTable),
    /// Sums over all points of GF(256), of octets in the form of the table.
    Sums(CauchyInputs, CauchyOutputs, &'static ProductTable),
    /// Sums over the points of a subspace of Leopard's GF(2^16).
    PairSums(CauchyInputs<u16>, CauchyOutputs<u16>),
    /// Parity of Leopard over GF(2^8), with this number of positions.
    OctetShift(usize),
    /// The same over GF(2^16).
    PairShift(usize),
}

impl core::fmt::Debug for ShardPlan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ShardPlan")
            .field("inputs", &self.inputs.len())
            .field("outputs", &self.outputs.len())
            .finish_non_exhaustive()
    }
}

impl ShardPlan {
    /// Computes shards of any size.
    pub(super) fn run(&self, shards: Shards<'_, '_>) {
        self.run_with(InstructionSet::best(), shards);
    }

    pub(super) fn run_with(&self, instructions: InstructionSet, shards: Shards<'_, '_>) {
        let Shards { inputs, outputs, size } = shards;
        let whole = size / LINE * LINE;
        self.run_lines(instructions, Shards { inputs, outputs, size: whole });
        if whole == size {
            return;
        }
        // The last bytes, padded.
        let mut lines = vec![Line::ZERO; inputs.len() + outputs.len()];
        let (from, to) = lines.split_at_mut(inputs.len());
        for (line, shard) in from.iter_mut().zip(inputs) {
            line.0[..size - whole].copy_from_slice(&shard[whole..]);
        }
        let inputs: Vec<&[u8]> = from.iter().map(|line| line.0.as_slice()).collect();
        let mut padded: Vec<&mut [u8]> = to.iter_mut().map(|line| line.0.as_mut_slice()).collect();
        self.run_lines(instructions, Shards { inputs: &inputs, outputs: &mut padded, size: LINE });
        for (shard, line) in outputs.iter_mut().zip(padded) {
            shard[whole..].copy_from_slice(&line[..size - whole]);
        }
    }

    /// Computes shards of whole lines.
    fn run_lines(&self, instructions: InstructionSet, shards: Shards<'_, '_>) {
        match &self.program {
            Program::Matrix(factors, table) => {
                let coefficients = Coefficients::new(self.outputs.len(), factors).of_form(table);
                instructions.run(ShardProducts { coefficients, shards });
            }
            Program::Sums(inputs, outputs, table) => {
                instructions.run(ShardSums { table, inputs, outputs, shards });
            }
            Program::PairSums(inputs, outputs) => {
                instructions.run(PairSums { field: leopard_field(), inputs, outputs, shards });
            }
            &Program::OctetShift(positions) => {
                instructions.run(OctetShift { table: &CANTOR, shift: Shift { positions, shards } });
            }
            &Program::PairShift(positions) => {
                instructions
                    .run(PairShift { field: leopard_field(), shift: Shift { positions, shards } });
            }
        }
    }
}

/// The data shards among the `missing` ones, and the parity shards that are not, ascending.
pub(super) fn split(counts: Counts, missing: &[u32]) -> (&[u32], Vec<u32>) {
    let lost = &missing[..missing.partition_point(|&shard| shard < counts.data)];
    let is_available = |shard: &u32| missing.binary_search(shard).is_err();
    (lost, (counts.data..counts.all).filter(is_available).collect())
}
