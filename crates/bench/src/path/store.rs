//! A receiver's placer and workers: symbols are written and hashed, and a block with losses is
//! solved on ids, recovered and hashed.

use super::content::{PathContent, RUN, Run, SYMBOL_SIZE};
use super::row::{Meter, PathRow};
use super::stage::Stage;
use fontana_fec::{Esi, Plan, Progress, Sbn, Work};
use fontana_proto::SymbolPlace;
use fontana_store::{
    FileAttributes, RecoveryMemory, RecoverySteps, StagedObject, Staging, StagingOptions,
    TargetDirectory, TargetName,
};
use fontana_wire::BlockHasher;
use std::sync::Arc;

/// One symbol in so many is lost.
const LOST_ONE_IN: u32 = 10;
/// Repair symbols of a block that are received at first, beyond those lost: a few are enough.
const MORE: u32 = 2;

pub(super) fn measure(content: &PathContent) -> Vec<PathRow> {
    let (mut write, mut hash) = (Meter::default(), Meter::default());
    let (mut solve, mut recover) = (Meter::default(), Meter::default());
    let object = staged(content);
    for (sbn, _) in content.blocks() {
        let mut hasher = BlockHasher::new();
        for run in content.source_runs().filter(|run| run.sbn == sbn) {
            let bytes = content.source(run);
            write.measure(|| object.write_source_run(sbn, run.first, bytes)).unwrap();
            hash.measure(|| hasher.update(bytes));
        }
        hash.measure(|| hasher.finalize());
    }
    let (encoder, mut memory) = (content.encoder(), RecoveryMemory::new(usize::MAX));
    for (sbn, k) in content.blocks() {
        let (plan, repair) = solved(content, k, &mut solve);
        let count = repair.len() as u32;
        for first in (0..count).step_by(RUN as usize) {
            let run = Run { sbn, first: Esi(k + first), count: RUN.min(count - first) };
            let mut symbols = vec![0; run.count as usize * usize::from(SYMBOL_SIZE)];
            encoder.encode(sbn, &run.esis(), usize::MAX, &mut symbols).unwrap();
            object.write_repair_run(sbn, first, &symbols).unwrap();
        }
        recover.measure(|| recover_block(&object, sbn, &plan, &mut memory));
    }
    let symbols = content.source_symbols();
    let row = |part, meter: &Meter| PathRow::new(Stage::Store, part, symbols, meter.nanos);
    vec![
        row("write", &write),
        row("hash", &hash),
        row("solve ids", &solve),
        row("recover and hash", &recover),
    ]
}

fn staged(content: &PathContent) -> StagedObject {
    let target = Arc::new(TargetDirectory::open(content.directory.join("target")).unwrap());
    let staging = Staging::create(target, "path", StagingOptions::default()).unwrap().0;
    let name = TargetName::new(&["received"]).unwrap();
    staging.add_file(name, content.bytes.len() as u64, FileAttributes::default()).unwrap();
    let slots = content.layout.max_source_symbols();
    StagedObject::new(Arc::new(staging), content.layout, content.extents(), slots).unwrap()
}

/// The plan of a block of `k` symbols with losses, and the repair symbols that it uses.
fn solved(content: &PathContent, k: u32, meter: &mut Meter) -> (Arc<Plan>, Vec<Esi>) {
    let received: Vec<_> = (0..k).filter(|esi| esi % LOST_ONE_IN != 0).collect();
    let mut repair: Vec<_> = (k..2 * k - received.len() as u32 + MORE).map(Esi).collect();
    meter.measure(|| {
        let mut decoder = content.layout.oti().scheme.decoder(k).unwrap();
        for esi in received.into_iter().map(Esi).chain(repair.iter().copied()) {
            decoder.push(esi).unwrap();
        }
        loop {
            match decoder.solve(Work::UNBOUNDED) {
                Progress::Solved(plan) => return (plan, repair),
                _ => {
                    let next = Esi(k + repair.len() as u32);
                    decoder.push(next).unwrap();
                    repair.push(next);
                }
            }
        }
    })
}

fn recover_block(object: &StagedObject, sbn: Sbn, plan: &Arc<Plan>, memory: &mut RecoveryMemory) {
    let k = plan.source_symbols();
    let place = |esi: Esi| match esi.0.checked_sub(k) {
        Some(slot) => SymbolPlace::RepairSlot(slot),
        None => SymbolPlace::InPlace,
    };
    let mut hasher = BlockHasher::new();
    let steps = RecoverySteps::all_of(plan);
    object.recover_block(sbn, steps, memory, place, 0, |bytes| hasher.update(bytes)).unwrap();
    std::hint::black_box(hasher.finalize());
}
