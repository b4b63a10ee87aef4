//! Job runners whose jobs are observed before they run: what a receiver stores, what a disk reads.

use fontana_proto::{DatagramBatch, Finished, Instant, JobRunner, SymbolId};
use fontana_sim::{Delivery, SimulatedRunner};

/// Observes the jobs of an endpoint.
pub(crate) trait JobObserver<Job> {
    /// The job runs next.
    fn observe(&mut self, job: &Job);
}

/// A runner, and the observer of its jobs.
#[derive(Debug)]
pub(crate) struct ObservedRunner<R, O> {
    pub(crate) runner: R,
    pub(crate) observer: O,
}

impl<Job, R: JobRunner<Job>, O: JobObserver<Job>> JobRunner<Job> for ObservedRunner<R, O> {
    type Done = R::Done;
    type Error = R::Error;

    fn run(
        &mut self,
        now: Instant,
        job: Job,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<R::Done>>, R::Error> {
        self.observer.observe(&job);
        self.runner.run(now, job, batch)
    }
}

impl<R: SimulatedRunner, O> SimulatedRunner for ObservedRunner<R, O> {
    fn begin_delivery(&mut self, delivery: &Delivery<'_>) {
        self.runner.begin_delivery(delivery);
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        self.runner.symbol_bytes(symbol)
    }
}
