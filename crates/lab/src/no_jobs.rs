//! What the papers' endpoints need of a simulated host: they have no jobs, and some no events.

use fontana_proto::{DatagramBatch, Finished, Instant, JobRunner, SymbolId};
use fontana_sim::{HostEvent, SimulatedRunner};
use std::convert::Infallible;

/// The event of an endpoint that reports nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoEvent {}

impl HostEvent for NoEvent {
    fn digest_number(&self) -> u64 {
        match *self {}
    }
}

/// The runner of an endpoint without jobs. Payloads are zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoJobs;

impl JobRunner<Infallible> for NoJobs {
    type Done = Infallible;
    type Error = &'static str;

    fn run(
        &mut self,
        _now: Instant,
        job: Infallible,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<Infallible>>, &'static str> {
        match job {}
    }
}

impl SimulatedRunner for NoJobs {
    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        symbol.size.into()
    }
}
