//! Which plan computes which shards of a code.

use super::program::{Program, ShardPlan, split};
use super::{Counts, Preset, leopard, vandermonde};
use crate::bytes::kernel::{CANTOR, POLYNOMIAL};
use crate::codes::reed_solomon::{Points, available, prefers_sums};

/// The plan of all parity shards, from all data shards.
pub(super) fn encoder(preset: Preset, counts: Counts) -> Option<ShardPlan> {
    let program = match preset {
        Preset::Leopard8 => leopard::octet_encoder(counts),
        Preset::Leopard16 => Some(Program::PairShift(leopard::positions(counts))),
        _ => None,
    };
    let outputs = (counts.data..counts.all).collect();
    match program {
        Some(program) => Some(ShardPlan { inputs: (0..counts.data).collect(), outputs, program }),
        None => recovery(preset, counts, &outputs),
    }
}

/// The plan of the `missing` shards, ascending, from the others. `None` if these do not
/// determine them.
pub(super) fn recovery(preset: Preset, counts: Counts, missing: &[u32]) -> Option<ShardPlan> {
    let points = match preset {
        Preset::Backblaze => Points::Numbers,
        Preset::Zfec => Points::Powers,
        Preset::IsaLCauchy => Points::Cauchy,
        Preset::Leopard8 => leopard::points(counts),
        Preset::IsaLVandermonde => return vandermonde::recovery(counts, missing),
        Preset::Leopard16 => return Some(leopard::pair_recovery(counts, missing)),
    };
    let table = if preset == Preset::Leopard8 { &CANTOR } else { &POLYNOMIAL };
    let (lost, parity) = split(counts, missing);
    let repair = parity.get(..lost.len())?;
    let k = counts.data;
    let program = if prefers_sums(k as usize, missing.len()) {
        let (inputs, outputs) = points.sums(k, lost, repair, missing);
        Program::Sums(inputs, outputs, table)
    } else {
        Program::Matrix(points.interpolation(k, lost, repair, missing), table)
    };
    Some(ShardPlan { inputs: available(k, lost, repair), outputs: missing.to_vec(), program })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::kernel::{InstructionSet, Shards};
    use alloc::vec;
    use alloc::vec::Vec;

    /// Octets without a period that is a power of two.
    fn octets(count: usize, seed: usize) -> Vec<u8> {
        (0..count).map(|at| ((at + seed) * 7919 % 65_537 % 251) as u8).collect()
    }

    fn run(plan: &ShardPlan, instructions: InstructionSet, group: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let size = group[0].len();
        let inputs: Vec<&[u8]> = plan.inputs.iter().map(|&i| &group[i as usize][..]).collect();
        let mut computed = vec![vec![0xAA; size]; plan.outputs.len()];
        let mut outputs: Vec<&mut [u8]> = computed.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run_with(instructions, Shards { inputs: &inputs, outputs: &mut outputs, size });
        computed
    }

    /// Each program, with every number of passes, and with blocks of both kinds.
    #[test]
    fn every_instruction_set_computes_the_same() {
        for (preset, data, parity, size) in [
            (Preset::Backblaze, 10, 4, 1_000),
            (Preset::Backblaze, 9, 6, 450),
            (Preset::Zfec, 70, 60, 4_200),
            (Preset::Leopard8, 20, 40, 700),
            (Preset::Leopard8, 100, 20, 4_200),
            (Preset::Leopard8, 100, 100, 64),
            (Preset::Leopard16, 5, 1, 64),
            (Preset::Leopard16, 20, 3, 448),
            (Preset::Leopard16, 70, 9, 4_160),
            (Preset::Leopard16, 300, 40, 192),
        ] {
            let counts = Counts { data, all: data + parity };
            let mut group: Vec<_> = (0..data as usize).map(|i| octets(size, i * 61)).collect();
            let encoding = encoder(preset, counts).unwrap();
            group.extend(run(&encoding, InstructionSet::best(), &group));
            let missing: Vec<u32> = (0..counts.all).step_by(3).take(parity as usize).collect();
            let recovering = recovery(preset, counts, &missing).unwrap();
            for instructions in InstructionSet::available() {
                let made = run(&encoding, instructions, &group);
                assert!(made == group[data as usize..], "{preset:?} {data} {instructions:?}");
                let recovered = run(&recovering, instructions, &group);
                let mut expected = missing.iter().map(|&shard| &group[shard as usize]);
                assert!(recovered.iter().all(|shard| Some(shard) == expected.next()));
            }
        }
    }
}
