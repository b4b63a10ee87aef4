//! A host whose work takes time: one processor behind a socket buffer of limited size.
//!
//! A [`Machine`] is an endpoint that wraps another one. Its processor handles datagrams, jobs and
//! timeouts one after the other, each to its end. Datagrams that arrive meanwhile wait in the
//! socket buffer; those that find it full are lost. This models how decoding disturbs reception if
//! both share a processor (Roca, Mordelet, INRIA RR-4411, section 6.4.3).
//!
//! The inner endpoint gets each input when the processor handles it. The driver runs its jobs at
//! once, and the machine delays their answers by the time that the work takes.

use fontana_proto::{Datagram, DatagramBatch, Endpoint, Instant, Output, ReceiveJob};
use std::collections::VecDeque;
use std::time::Duration;

/// Processing times and socket buffer of a [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// Time to read a datagram from the socket buffer and to handle it.
    pub datagram: Duration,
    /// Time to recover or search a block, for each of its repair symbols: as many source symbols
    /// are missing.
    pub lost_symbol: Duration,
    /// Additional time for each recovered block, to check and copy it.
    pub block: Duration,
    /// Size of the socket buffer, in bytes of UDP payload.
    pub socket_buffer_bytes: usize,
    /// Whether the endpoint is told how many datagrams the socket buffer dropped. If not, they
    /// count as losses of the network.
    pub tells_drops: bool,
}

impl MachineConfig {
    /// A machine whose work takes no time.
    pub const IDEAL: Self = Self {
        datagram: Duration::ZERO,
        lost_symbol: Duration::ZERO,
        block: Duration::ZERO,
        socket_buffer_bytes: usize::MAX,
        tells_drops: true,
    };

    fn time_of(&self, job: &ReceiveJob) -> Duration {
        let repair = match job {
            ReceiveJob::Recover { repair, .. } => repair,
            ReceiveJob::Locate(search) => &search.repair,
            _ => return Duration::ZERO,
        };
        let symbols = u32::try_from(repair.len()).unwrap_or(u32::MAX);
        self.block.saturating_add(self.lost_symbol.saturating_mul(symbols))
    }
}

/// Counters of a [`Machine`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineStats {
    /// Datagrams that were handled.
    pub taken: u64,
    /// Datagrams that found the socket buffer full.
    pub dropped: u64,
    /// Time of all work that was begun, including what remains of it.
    pub busy: Duration,
}

/// An endpoint on a host with one processor.
#[derive(Debug)]
pub struct Machine<E: Endpoint> {
    endpoint: E,
    config: MachineConfig,
    /// The processor is busy until then.
    free_at: Instant,
    /// Answers of jobs that are not finished.
    dones: VecDeque<E::Done>,
    socket_buffer: VecDeque<Waiting>,
    buffered_bytes: usize,
    /// Dropped datagrams that were not reported to the endpoint yet.
    untold: u64,
    /// The buffered datagram that was handled last; `None` if the last one is in the driver's
    /// batch.
    current: Option<Waiting>,
    stats: MachineStats,
}

/// A datagram in the socket buffer.
#[derive(Debug)]
struct Waiting {
    /// Its payload is the whole of `bytes`.
    datagram: Datagram,
    bytes: Vec<u8>,
}

impl<E: Endpoint<Job = ReceiveJob>> Machine<E> {
    /// Puts an endpoint on a host.
    pub fn new(endpoint: E, config: MachineConfig) -> Self {
        Self {
            endpoint,
            config,
            free_at: Instant::ZERO,
            dones: VecDeque::new(),
            socket_buffer: VecDeque::new(),
            buffered_bytes: 0,
            untold: 0,
            current: None,
            stats: MachineStats::default(),
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// Counters so far.
    pub fn stats(&self) -> MachineStats {
        self.stats
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.free_at <= now && self.dones.is_empty() && self.socket_buffer.is_empty()
    }

    fn work(&mut self, now: Instant, time: Duration) {
        self.free_at = self.free_at.max(now) + time;
        self.stats.busy = self.stats.busy.saturating_add(time);
    }

    /// Buffers a datagram, if there is room for it.
    fn buffer(&mut self, datagram: &Datagram, payload: &[u8]) {
        let buffered_bytes = self.buffered_bytes.saturating_add(payload.len());
        if buffered_bytes > self.config.socket_buffer_bytes {
            self.stats.dropped += 1;
            self.untold += 1 + datagram.dropped_before;
            return;
        }
        self.buffered_bytes = buffered_bytes;
        let dropped_before = datagram.dropped_before + self.untold_now();
        let payload_range = 0..payload.len() as u32;
        let datagram = Datagram { dropped_before, payload: payload_range, ..datagram.clone() };
        self.socket_buffer.push_back(Waiting { datagram, bytes: payload.to_vec() });
    }

    /// Handles a datagram now, or buffers it.
    fn take_datagram(&mut self, now: Instant, batch: &DatagramBatch<'_>, datagram: &Datagram) {
        if !self.is_idle(now) {
            return self.buffer(datagram, batch.bytes(&datagram.payload).unwrap_or_default());
        }
        self.current = None;
        let dropped_before = datagram.dropped_before + self.untold_now();
        let datagram = Datagram { dropped_before, ..datagram.clone() };
        self.endpoint.handle_datagrams(now, &DatagramBatch::one(batch.slab, &datagram));
        self.stats.taken += 1;
        self.work(now, self.config.datagram);
    }

    /// Takes the number of drops to report.
    fn untold_now(&mut self) -> u64 {
        let untold = std::mem::take(&mut self.untold);
        if self.config.tells_drops { untold } else { 0 }
    }
}

impl<E: Endpoint<Job = ReceiveJob>> Machine<E> {
    /// Handles the next waiting answer or datagram. Returns whether there was one.
    fn go_on(&mut self, now: Instant) -> bool {
        // Work that is finished comes before datagrams that arrived meanwhile.
        if let Some(done) = self.dones.pop_front() {
            self.endpoint.handle_done(now, done);
            return true;
        }
        let Some(waiting) = self.socket_buffer.pop_front() else { return false };
        self.buffered_bytes -= waiting.bytes.len();
        let waiting = &*self.current.insert(waiting);
        let batch = DatagramBatch::one(&waiting.bytes, &waiting.datagram);
        self.endpoint.handle_datagrams(now, &batch);
        self.stats.taken += 1;
        self.work(now, self.config.datagram);
        true
    }

    /// Copies the bytes of symbols into their job if the datagram is not in the driver's batch.
    fn with_its_bytes(&self, job: ReceiveJob) -> ReceiveJob {
        match (job, &self.current) {
            (ReceiveJob::Place(run), Some(waiting)) => ReceiveJob::Place(run.saved(&waiting.bytes)),
            (job, _) => job,
        }
    }
}

impl<E: Endpoint<Job = ReceiveJob>> Endpoint for Machine<E> {
    type Job = ReceiveJob;
    type Done = E::Done;
    type Event = E::Event;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for datagram in batch.datagrams {
            self.take_datagram(now, batch, datagram);
        }
    }

    fn handle_done(&mut self, now: Instant, done: E::Done) {
        if self.is_idle(now) {
            self.endpoint.handle_done(now, done);
        } else {
            self.dones.push_back(done);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let is_due = self.endpoint.poll_timeout().is_some_and(|due| due <= now);
        if self.free_at <= now && is_due {
            self.endpoint.handle_timeout(now);
        }
    }

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<ReceiveJob, E::Event>> {
        loop {
            match self.endpoint.poll_output(now, header) {
                Some(Output::Job(job)) => {
                    self.work(now, self.config.time_of(&job));
                    return Some(Output::Job(self.with_its_bytes(job)));
                }
                Some(output) => return Some(output),
                // All outputs of one input were polled; handle the next one.
                None if self.free_at <= now && self.go_on(now) => {}
                None => return None,
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let waits = !(self.dones.is_empty() && self.socket_buffer.is_empty());
        let due = self.endpoint.poll_timeout().map(|due| due.max(self.free_at));
        if waits { Some(due.map_or(self.free_at, |due| due.min(self.free_at))) } else { due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{Esi, Sbn};
    use fontana_proto::{
        BlockId, Ecn, PlacedRun, Port, ReceiveDone, ReceiverEvent, Recipe, Saved, Scope,
        SlabSymbols, SymbolBytes, SymbolPlace,
    };
    use fontana_wire::{Hash, Toi};

    const MS: u64 = 1_000_000;

    /// Places every datagram, and recovers a block with three repair symbols for each that begins
    /// with 1.
    #[derive(Debug, Default)]
    struct Recorder {
        heard: Vec<(u64, u8, u64)>,
        recovered: Vec<u64>,
        outputs: VecDeque<Output<ReceiveJob, ReceiverEvent>>,
    }

    const BLOCK: BlockId = BlockId { toi: Toi(1), sbn: Sbn(0) };

    impl Endpoint for Recorder {
        type Job = ReceiveJob;
        type Done = ReceiveDone;
        type Event = ReceiverEvent;

        fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
            let (datagram, payload) = batch.iter().next().expect("a batch of one");
            let first = payload[0];
            self.heard.push((now.as_nanos() / MS, first, datagram.dropped_before));
            let run = PlacedRun {
                block: BLOCK,
                first: Esi(0),
                count: 1,
                to: SymbolPlace::InPlace,
                bytes: SymbolBytes::InSlab(SlabSymbols::one(0, 1)),
            };
            self.outputs.push_back(Output::Job(ReceiveJob::Place(run)));
            if first == 1 {
                let decoder = fontana_fec::PlanCache::new(1);
                let plan = decoder.source_plan(
                    fontana_fec::FecScheme::NoCode(NoCode { max_source_block_length: 1 }),
                    1,
                );
                let recipe = Recipe::Plan(plan.expect("a plan of one symbol"));
                let repair = vec![Esi(7); 3];
                self.outputs.push_back(Output::Job(ReceiveJob::Recover {
                    block: BLOCK,
                    recipe,
                    repair,
                    arrived: Vec::new(),
                }));
            }
        }

        fn handle_done(&mut self, now: Instant, _done: ReceiveDone) {
            self.recovered.push(now.as_nanos() / MS);
            self.outputs.push_back(Output::Event(ReceiverEvent::Complete));
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_output(
            &mut self,
            _now: Instant,
            _header: &mut Vec<u8>,
        ) -> Option<Output<ReceiveJob, ReceiverEvent>> {
            self.outputs.pop_front()
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }

    /// 1 ms for a datagram, 10 for a block and 3 for each of its repair symbols; room for two
    /// datagrams of 100 bytes.
    const SLOW: MachineConfig = MachineConfig {
        datagram: Duration::from_millis(1),
        lost_symbol: Duration::from_millis(3),
        block: Duration::from_millis(10),
        socket_buffer_bytes: 200,
        tells_drops: true,
    };

    /// Drives a machine as a simulation does; the bytes of all symbols that were placed.
    struct Bench {
        machine: Machine<Recorder>,
        placed: Vec<u8>,
    }

    impl Bench {
        fn new(config: MachineConfig) -> Self {
            Self { machine: Machine::new(Recorder::default(), config), placed: Vec::new() }
        }

        fn hear(&mut self, milliseconds: u64, first: u8) {
            self.run_until(milliseconds);
            let mut payload = [0; 100];
            payload[0] = first;
            let datagram = Datagram {
                from: ([10, 0, 0, 1], 7701).into(),
                port: Port::BASE,
                ecn: Ecn::NotEct,
                dropped_before: 0,
                payload: 0..100,
            };
            let now = Instant::from_nanos(milliseconds * MS);
            let batch = DatagramBatch::one(&payload, &datagram);
            self.machine.handle_datagrams(now, &batch);
            self.drain(now, &batch);
        }

        fn run_until(&mut self, milliseconds: u64) {
            let end = Instant::from_nanos(milliseconds * MS);
            while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= end) {
                self.machine.handle_timeout(due);
                self.drain(due, &DatagramBatch::EMPTY);
            }
        }

        fn drain(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
            loop {
                let (mut header, mut done) = (Vec::new(), None);
                while let Some(output) = self.machine.poll_output(now, &mut header) {
                    match output {
                        Output::Job(ReceiveJob::Place(run)) => {
                            let symbols = run.symbols(batch.slab);
                            self.placed.extend(symbols.flat_map(|s| s.expect("in the slab")));
                        }
                        Output::Job(ReceiveJob::Recover { block, .. }) => {
                            done = Some(ReceiveDone::Recovered { block, hash: Hash([0; 32]) });
                        }
                        _ => {}
                    }
                }
                let Some(done) = done else { return };
                self.machine.handle_done(now, done);
            }
        }
    }

    #[test]
    fn an_ideal_machine_is_the_endpoint_itself() {
        let mut bench = Bench::new(MachineConfig::IDEAL);
        for first in [1, 2, 3] {
            bench.hear(5, first);
        }
        assert_eq!(bench.machine.endpoint().heard, [(5, 1, 0), (5, 2, 0), (5, 3, 0)]);
        assert_eq!(bench.machine.endpoint().recovered, [5]);
        assert_eq!(bench.machine.poll_timeout(), None);
        assert_eq!(bench.machine.stats().busy, Duration::ZERO);
    }

    #[test]
    fn what_comes_while_a_block_is_decoded_waits_or_is_lost() {
        let mut bench = Bench::new(SLOW);
        // Decoding from 1 to 20 ms: 1 for the datagram, 10 + 3 x 3 for the block.
        bench.hear(0, 1);
        for (at, first) in [(2, 2), (3, 3), (4, 4), (19, 5)] {
            bench.hear(at, first);
        }
        assert_eq!(bench.machine.stats().dropped, 2, "the third and the fourth find it full");
        bench.hear(20, 6);
        bench.run_until(100);
        // Those that waited come in their order, a millisecond each.
        let heard = [(0, 1, 0), (20, 2, 0), (21, 3, 0), (22, 6, 2)];
        assert_eq!(bench.machine.endpoint().heard, heard);
        assert_eq!(bench.machine.endpoint().recovered, [20]);
        assert_eq!(bench.placed, [1, 2, 3, 6], "symbols are those of their own datagrams");
        let stats = bench.machine.stats();
        assert_eq!((stats.taken, stats.busy), (4, Duration::from_millis(23)));
        assert_eq!(bench.machine.poll_timeout(), None);
    }

    #[test]
    fn a_machine_that_counts_no_drops_tells_of_none() {
        let mut bench = Bench::new(MachineConfig { tells_drops: false, ..SLOW });
        for first in [1, 2, 3, 4] {
            bench.hear(0, first);
        }
        bench.hear(50, 5);
        bench.run_until(100);
        assert_eq!(bench.machine.stats().dropped, 1);
        assert!(bench.machine.endpoint().heard.iter().all(|&(_, _, dropped)| dropped == 0));
    }

    #[test]
    fn outcomes_that_take_no_time_are_told_at_once() {
        let mut bench = Bench::new(SLOW);
        let opened = ReceiveDone::Opened { scope: Scope::Object(Toi(1)), saved: Saved::default() };
        bench.machine.handle_done(Instant::from_nanos(7 * MS), opened);
        assert_eq!(bench.machine.endpoint().recovered, [7]);
    }
}
