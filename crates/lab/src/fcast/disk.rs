//! `fc.disk`: a source whose file is far larger than its memory, and a receiver on a disk with slow
//! random access, which section 3 leaves to future work.
//!
//! The real sender and receiver run in the simulator, on ids. Their reads and writes are recorded.
//! The time of a disk follows from two numbers: a seek and a rate.

use super::pair::{self, Pair};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::observed::{JobObserver, ObservedRunner};
use crate::row::Rows;
use crate::session::{SYMBOL_BYTES, Session};
use fontana_fec::Esi;
use fontana_proto::{Driver, ReceiveJob, SendJob, SubscriptionLimits, SymbolPlace};
use fontana_sim::{LinkConfig, LossModel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// A hard disk: the time of a seek to another track and half a rotation, and the rate of sequential
/// access.
const SEEK_SECONDS: f64 = 0.01;
const BYTES_PER_SECOND: f64 = 100e6;
/// Writes that the system buffers before it sorts and writes them, on a host with little memory.
const WRITE_CACHE_SYMBOLS: usize = (64 << 20) / SYMBOL_BYTES as usize;

/// 1.8 GB in blocks of 10 000 symbols: seven times the program's default memory.
const BLOCKS: u64 = 128;
const BLOCK_SYMBOLS: u64 = 10_000;
const FILE: u64 = BLOCKS * BLOCK_SYMBOLS * SYMBOL_BYTES as u64;
const MEMORY: u64 = 256 << 20;
/// Symbols of a round: a quarter of what an eighth of the memory leaves (docs/tuning.md). With them
/// a block is visited for a 32nd of it.
const ROUND_SYMBOLS: u32 = (MEMORY / 8 * 7 / 4 / SYMBOL_BYTES as u64) as u32;
/// The full rate: the program's default.
const RATE: u64 = 100_000_000 / 8;
const LOSS: f64 = 0.01;

/// Work of a disk.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Symbols that were sent or received.
    symbols: u64,
    seeks: u64,
    bytes: u64,
}

impl Load {
    /// Bytes of symbols per second that the disk keeps up with.
    fn rate(self) -> f64 {
        let seconds = self.seeks as f64 * SEEK_SECONDS + self.bytes as f64 / BYTES_PER_SECOND;
        self.symbols as f64 * f64::from(SYMBOL_BYTES) / seconds
    }

    /// The head goes on from one symbol to another one, numbered as they lie: what is near passes
    /// by under it sooner than it could go there.
    fn go(&mut self, from: u64, to: u64) {
        match to.checked_sub(from).map(|symbols| symbols * u64::from(SYMBOL_BYTES)) {
            Some(between) if between as f64 <= SEEK_SECONDS * BYTES_PER_SECOND => {
                self.bytes += between;
            }
            _ => self.seeks += 1,
        }
    }

    fn row(self, side: &str, way: &str) -> DiskRow {
        let Self { symbols, seeks, bytes } = self;
        let (side, way) = (side.into(), way.into());
        DiskRow { side, way, symbols, seeks, bytes, bytes_per_second: self.rate() }
    }
}

/// Work of the disk of one side.
#[derive(Serialize, Deserialize)]
struct DiskRow {
    side: String,
    way: String,
    symbols: u64,
    seeks: u64,
    bytes: u64,
    /// Of symbols, that the disk keeps up with.
    bytes_per_second: f64,
}

/// Records what the jobs of a host read and write.
#[derive(Debug, Default)]
struct Disk {
    /// Of batches of source symbols alone, and of others.
    source: Load,
    repair: Load,
    received: Load,
    /// Where the last batch of source symbols ended.
    head: u64,
    /// Buffered writes, to the file or to the repair file behind it.
    unwritten: BTreeSet<u64>,
}

impl Disk {
    /// Source symbols are read from where they are; for others the whole block is.
    fn read(&mut self, sbn: u32, esis: &[Esi]) {
        let size = u64::from(SYMBOL_BYTES);
        if esis.iter().any(|esi| u64::from(esi.0) >= BLOCK_SYMBOLS) {
            self.repair.symbols += esis.len() as u64;
            self.repair.seeks += 1;
            self.repair.bytes += BLOCK_SYMBOLS * size;
            return;
        }
        self.source.symbols += esis.len() as u64;
        self.source.bytes += esis.len() as u64 * size;
        for esi in esis {
            let at = u64::from(sbn) * BLOCK_SYMBOLS + u64::from(esi.0);
            self.source.go(self.head, at);
            self.head = at + 1;
        }
    }

    fn write(&mut self, sbn: u32, esi: Esi, to: SymbolPlace) {
        // In the file, or in the block's part of the spool, which lies behind it.
        let at = match to {
            SymbolPlace::InPlace => u64::from(esi.0),
            SymbolPlace::RepairSlot(slot) => BLOCKS * BLOCK_SYMBOLS + u64::from(slot),
        };
        self.unwritten.insert(u64::from(sbn) * BLOCK_SYMBOLS + at);
        if self.unwritten.len() >= WRITE_CACHE_SYMBOLS {
            self.write_back();
        }
    }

    /// In the order of the disk.
    fn write_back(&mut self) {
        let unwritten = std::mem::take(&mut self.unwritten);
        self.received.seeks += u64::from(!unwritten.is_empty());
        self.received.bytes += unwritten.len() as u64 * u64::from(SYMBOL_BYTES);
        for (before, at) in unwritten.iter().zip(unwritten.iter().skip(1)) {
            self.received.go(before + 1, *at);
        }
    }

    /// A block is read to be recovered, with its spool, and once more to be hashed; what was lost
    /// of it is written.
    fn recover(&mut self, sbn: u32, spooled: usize) {
        let spooled = spooled as u64;
        self.received.seeks += 3;
        self.received.bytes += (2 * BLOCK_SYMBOLS + spooled) * u64::from(SYMBOL_BYTES);
        // Evenly spread: as far from each other as they can be.
        for lost in 0..spooled {
            let esi = Esi((lost * BLOCK_SYMBOLS / spooled) as u32);
            self.write(sbn, esi, SymbolPlace::InPlace);
        }
    }
}

impl JobObserver<SendJob> for Disk {
    fn observe(&mut self, job: &SendJob) {
        if let SendJob::Prepare { block, esis, .. } = job {
            self.read(block.sbn.0, esis);
        }
    }
}

impl JobObserver<ReceiveJob> for Disk {
    fn observe(&mut self, job: &ReceiveJob) {
        match job {
            ReceiveJob::Place(run) => {
                for (esi, to) in run.ids() {
                    self.received.symbols += 1;
                    self.write(run.block.sbn.0, esi, to);
                }
            }
            ReceiveJob::Recover { block, repair, .. } => self.recover(block.sbn.0, repair.len()),
            ReceiveJob::Finish => self.write_back(),
            _ => {}
        }
    }
}

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fc.disk",
    paper: "FCAST, section 3",
    what: "What the paper leaves to future work: disks at full rate, 100 Mbit/s. 1.8 GB in 128 blocks of \
           RaptorQ from the real sender, which has 256 MB of memory, to a receiver that loses 1 %, in the simulator, \
           on ids; what their jobs read and write, on a disk of 10 ms and 100 MB/s. Writes wait in 64 MB of \
           the system's memory and are sorted there; what the system keeps of reads does not count. Beside it \
           the paper's problem: encoding symbols computed beforehand and read one by one, or written one \
           by one, in random order.",
    sweep: &SweepOf {
        name: "fc.disk",
        kind: Kind::Counted,
        cases: |_| 1,
        run: |case| run(case).unwrap_or_default(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<DiskRow> = table.read().unwrap_or_default();
        let line = |row: &DiskRow| {
            let symbol_bytes = row.symbols as f64 * f64::from(SYMBOL_BYTES);
            vec![
                row.side.clone(),
                row.way.clone(),
                format!("{:.2}", row.seeks as f64 / (symbol_bytes / 1e6)),
                format!("{:.2}", row.bytes as f64 / symbol_bytes),
                format!("{:.2}", row.bytes_per_second / 1e6),
            ]
        };
        let columns = ["side", "way", "seeks per MB", "bytes per byte", "MB/s"];
        vec![Exhibit::Grid(Grid {
            title: "What a disk of 10 ms and 100 MB/s keeps up with".into(),
            columns: columns.map(String::from).into(),
            rows: rows.iter().map(line).collect(),
        })]
    },
};

fn run(case: &Case) -> Option<Vec<DiskRow>> {
    let seed = case.stream(0).next_u64();
    let mut session = Session::raptorq(FILE, RATE, seed)?;
    session.round_symbols = ROUND_SYMBOLS;
    let wire = LinkConfig::wire(Duration::from_millis(1)).with_loss(LossModel::bernoulli(LOSS));
    let disk = || ObservedRunner { runner: session.runner(), observer: Disk::default() };
    let sender = Driver::new(session.sender(0)?, disk());
    let receiver = Driver::new(session.receiver(SubscriptionLimits::default()), disk());
    let Pair { mut run, source, leaf } = Pair::new(&session, wire, (), sender, receiver)?;
    // The source symbols, and a fifth of as many repair symbols.
    let packets = session.source_symbols() * 6 / 5;
    let seconds = packets * u64::from(session.packet_bytes()) / RATE;
    run.run_until(pair::start() + Duration::from_secs(seconds)).ok()?;
    let (sender, receiver) = (run.host(source)?.left()?, run.host(leaf)?.right()?);
    let (sent, received) = (&sender.runner.observer, &receiver.runner.observer);
    let one_by_one = Load { symbols: 1, seeks: 1, bytes: SYMBOL_BYTES.into() };
    Some(vec![
        sent.source.row("source", "source symbols"),
        sent.repair.row("source", "repair symbols"),
        one_by_one.row("source", "one by one"),
        received.received.row("receiver", "sorted by the system"),
        one_by_one.row("receiver", "one by one"),
    ])
}

fn claims() -> Vec<Claim> {
    let rate = |side: &'static str, way: &'static str| {
        move |rows: &[DiskRow]| {
            let is = |row: &DiskRow| row.side == side && row.way == way;
            rows.number(is, |row| row.bytes_per_second) / 1e6
        }
    };
    let full_rate = |name: &str, text: &str, side, way| {
        let text = format!("{text}: MB/s that the disk keeps up with");
        Claim::own(name, text, Target::AtLeast(RATE as f64 / 1e6), 0.0, rate(side, way))
    };
    vec![
        full_rate(
            "first pass",
            "a file that fits no memory, sent once",
            "source",
            "source symbols",
        ),
        full_rate("fountain", "and its repair symbols after that", "source", "repair symbols"),
        Claim::shape(
            "problem",
            "rate of repair symbols made as they are sent, over that of symbols read one by one",
            quote(
                "limits the transmission rate with the non-sequential disk I/O speed",
                "section 3",
            ),
            Target::AtLeast(10.0),
            move |rows| rate("source", "repair symbols")(rows) / rate("source", "one by one")(rows),
        ),
        full_rate(
            "receiver",
            "symbols are written where they belong, and blocks recovered",
            "receiver",
            "sorted by the system",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_passes_by_and_what_is_far_takes_a_seek() {
        const SYMBOL: u64 = SYMBOL_BYTES as u64;
        // A seek takes as long as 714.3 symbols.
        for (to, seeks, bytes) in
            [(7, 0, 0), (8, 0, SYMBOL), (721, 0, 714 * SYMBOL), (722, 1, 0), (6, 1, 0)]
        {
            let mut load = Load::default();
            load.go(7, to);
            assert_eq!((load.seeks, load.bytes), (seeks, bytes), "to {to}");
        }
    }

    #[test]
    fn writes_are_sorted_and_a_repair_symbol_takes_its_whole_block() {
        let mut disk = Disk::default();
        disk.read(0, &[0, 1, 2].map(Esi));
        disk.read(1, &[5, 6].map(Esi));
        assert_eq!((disk.source.symbols, disk.source.seeks), (5, 1));
        disk.read(1, &[Esi(8), Esi(BLOCK_SYMBOLS as u32)]);
        assert_eq!((disk.repair.symbols, disk.repair.seeks), (2, 1));
        assert_eq!(disk.repair.bytes, BLOCK_SYMBOLS * u64::from(SYMBOL_BYTES));
        for esi in [9, 3, 8, 4] {
            disk.write(0, Esi(esi), SymbolPlace::InPlace);
        }
        // The next block's first symbol lies behind this one's last; the spool behind all of them.
        disk.write(1, Esi(0), SymbolPlace::InPlace);
        disk.write(0, Esi(9_999), SymbolPlace::InPlace);
        disk.write(0, Esi(12_345), SymbolPlace::RepairSlot(0));
        disk.write_back();
        // Seven, and three that passed by between the fourth and the eighth.
        assert_eq!((disk.received.seeks, disk.received.bytes), (3, 10 * u64::from(SYMBOL_BYTES)));
    }
}
