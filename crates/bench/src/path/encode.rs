//! A sender's workers: source symbols are read, and repair symbols computed.

use super::content::{PathContent, RUN, Run, SYMBOL_SIZE};
use super::row::{Meter, PathRow};
use super::stage::Stage;
use fontana_fec::Esi;

/// No block is solved in several passes.
const BUDGET: usize = usize::MAX;

/// Each part for as many packets as there are source symbols.
pub(super) fn measure(content: &PathContent) -> Vec<PathRow> {
    let (encoder, symbols) = (content.encoder(), content.source_symbols());
    let mut memory = vec![0; RUN as usize * usize::from(SYMBOL_SIZE)];
    let mut encode = |meter: &mut Meter, run: Run| {
        let out = &mut memory[..run.count as usize * usize::from(SYMBOL_SIZE)];
        let esis = run.esis();
        meter.measure(|| encoder.encode(run.sbn, &esis, BUDGET, out)).unwrap();
    };
    let (mut read, mut repair, mut solve) = (Meter::default(), Meter::default(), Meter::default());
    for run in content.source_runs() {
        encode(&mut read, run);
    }
    for (sbn, _) in content.blocks() {
        assert!(solve.measure(|| encoder.solve_ahead(sbn, BUDGET)).unwrap(), "there is room");
    }
    for run in content.source_runs() {
        let k = content.layout.source_symbols(run.sbn).unwrap();
        encode(&mut repair, Run { first: Esi(k + run.first.0), ..run });
    }
    let row = |part, meter: &Meter| PathRow::new(Stage::Encode, part, symbols, meter.nanos);
    vec![row("read", &read), row("solve", &solve), row("repair", &repair)]
}
