//! Hostile packets beside an honest session: each class of packets that an attacker may send, and
//! what it does to a receiver.
//!
//! A class is a kind of datagram, manifest or table. Its variants are drawn from a seed. The sender
//! and the receiver are those of the product, in virtual time and on bytes in memory; only sockets,
//! threads and the disk are missing.
//!
//! ```
//! use fontana_lab::hostile::{Bench, classes, run};
//!
//! let bench = Bench { variants: 50, ..Bench::default() };
//! let class = classes().iter().find(|class| class.id == "H1").expect("the first class");
//! let report = run(class, &bench)?;
//! assert_eq!((report.packets, report.honest_verified), (50, true));
//! # Ok::<(), fontana_lab::hostile::BenchError>(())
//! ```

use class::Attack;
use fontana::seal::{GroupKey, PacketSealer};
use fontana_net::thread;
use fontana_wire::SealId;
use manifests::Reception;
use packets::{Attacker, Make, OLD_TSI};
use world::{Alone, HonestSession, HostilePackets, Neighbor, TSI, Transfer};

mod class;
mod manifests;
mod memory;
mod packets;
mod report;
mod reporting;
mod site;
mod web;
mod world;

pub use class::{Class, classes};
pub use report::{BenchError, ClassReport, MAX_LOG_BYTES};
pub use web::{Clients, Mirror, Step, WebAttack};

/// A run of the bench.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Hostile packets of each class; of manifests and tables at most [`MAX_MANIFESTS`].
    pub variants: u32,
    /// Memory of the receiver, in bytes.
    pub memory: usize,
}

impl Default for Bench {
    fn default() -> Self {
        Self { seed: 1, variants: 10_000, memory: fontana::MIN_MEMORY }
    }
}

/// Most manifests and tables of a class: each takes as long as a hundred packets.
pub const MAX_MANIFESTS: u32 = 10_000;

/// Runs a class: a transfer without it, and one beside it.
///
/// # Errors
/// The honest session cannot be made, or is not complete without an attack; or the class runs
/// [over HTTP](Class::over_http) alone.
pub fn run(class: &Class, bench: &Bench) -> Result<ClassReport, BenchError> {
    if class.over_http().is_some() {
        return Err(BenchError("a class of HTTP, which has no virtual time"));
    }
    memory::measure_program();
    let session = HonestSession::new(bench.seed, 2)?;
    let guard = class.guard();
    let alone = match class.attack {
        Attack::Site(_) => site::run(&session, bench.memory, None)?,
        Attack::Reports(_) => reporting::run(bench.seed, None)?,
        _ => session.transfer(bench.memory, guard, &mut Alone)?,
    };
    if !alone.is_exact {
        return Err(BenchError("the honest transfer fails without an attack"));
    }
    let mut report = ClassReport {
        packets: 0,
        alive: false,
        memory_max: None,
        memory: bench.memory as u64,
        disk_max: 0,
        disk_left: 0,
        log_bytes: 0,
        honest_verified: false,
        extra_packets: 0,
        honest_packets: alone.sent,
        is_harmed: false,
        forges: class.forges,
    };
    memory::forget_peak();
    // A panic is a result, and so is an endpoint that breaks a rule.
    let result = thread::catch(|| beside(&session, class, bench, alone.sent));
    // What several receivers have stored is in the memory of this process, too.
    report.memory_max = memory::peak().filter(|_| !class.has_several_receivers());
    if let Ok(Ok(Beside { transfer, reception })) = result {
        report.alive = true;
        report.is_harmed = reception.is_harmed;
        report.packets = transfer.hostile + reception.variants;
        (report.disk_max, report.disk_left) = (transfer.disk.most, transfer.disk.left);
        report.log_bytes = transfer.log_bytes.max(reception.log_bytes);
        report.honest_verified = transfer.is_exact;
        report.extra_packets = transfer.sent as i64 - alone.sent as i64;
    }
    Ok(report)
}

/// What a class did.
struct Beside {
    transfer: Transfer,
    reception: Reception,
}

fn beside(
    session: &HonestSession,
    class: &Class,
    bench: &Bench,
    honest_packets: u64,
) -> Result<Beside, BenchError> {
    let receive = |reception| {
        let transfer = session.transfer(bench.memory, class.guard(), &mut Alone)?;
        Ok(Beside { transfer, reception })
    };
    let manifests = bench.variants.min(MAX_MANIFESTS);
    match class.attack {
        Attack::Manifests(make) => {
            receive(manifests::receive(make, manifests, bench.memory, bench.seed)?)
        }
        Attack::Tables => receive(manifests::receive_tables(manifests, bench.memory, bench.seed)?),
        Attack::Packets(make) | Attack::AddressedPackets(make) | Attack::SealedPackets(make) => {
            let mut neighbor = Crowd::new(session, make, bench, honest_packets)?;
            let transfer = session.transfer(bench.memory, class.guard(), &mut neighbor)?;
            Ok(Beside { transfer, reception: Reception::default() })
        }
        Attack::Site(make) => {
            let transfer = site::run(session, bench.memory, Some((make, bench.variants)))?;
            Ok(Beside { transfer, reception: Reception::default() })
        }
        Attack::Reports(make) => {
            let transfer = reporting::run(bench.seed, Some((make, bench.variants)))?;
            Ok(Beside { transfer, reception: Reception::default() })
        }
        Attack::Web(_) => receive(Reception::default()),
    }
}

/// An attacker who has received an old session of the publisher, and another publisher's.
fn attacker(seed: u64, seal_id: SealId) -> Result<Attacker, BenchError> {
    let old = HonestSession::new(seed, 1)?.record(OLD_TSI)?;
    let other = HonestSession::new(seed.wrapping_add(1), 3)?.record(TSI)?;
    let other_key = GroupKey::from_bytes([0x5A; GroupKey::SIZE]);
    let sealer = PacketSealer::new(&other_key, seal_id);
    Ok(Attacker::new(seed, old, other, sealer))
}

/// Sends its packets while the honest session lasts: a quarter at its beginning.
struct Crowd {
    attacker: Attacker,
    make: Make,
    left: u64,
    first: u64,
    each: u64,
}

impl Crowd {
    fn new(
        session: &HonestSession,
        make: Make,
        bench: &Bench,
        honest_packets: u64,
    ) -> Result<Self, BenchError> {
        let attacker = attacker(bench.seed, session.seal_id())?;
        let variants = u64::from(bench.variants);
        let first = variants / 4;
        // The rest before the first nine tenths of the honest packets.
        let each = (variants - first).div_ceil((honest_packets * 9 / 10).max(1));
        Ok(Self { attacker, make, left: variants, first, each })
    }
}

impl Neighbor for Crowd {
    fn count_before(&mut self, number: u64) -> u64 {
        // The receiver and the attacker have heard the session's first packets.
        let wanted = match number {
            0 => 0,
            1 => self.first,
            _ => self.each,
        };
        let count = wanted.min(self.left);
        self.left -= count;
        count
    }

    fn make(&mut self) -> HostilePackets {
        self.attacker.make(self.make)
    }

    fn observe(&mut self, datagram: &[u8]) {
        self.attacker.observe(datagram);
    }
}

/// What an attacker on a real network sends, one packet at a time.
pub struct PacketSource {
    attacker: Attacker,
    make: Make,
}

/// A hostile datagram for a real socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostileDatagram {
    /// Where it claims to come from, or goes to.
    pub direction: Direction,
    /// Its payload.
    pub bytes: Vec<u8>,
}

/// Source and destination of a hostile datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the sender's address to the receivers.
    FromTheSender,
    /// From another address to the receivers.
    FromAnother,
    /// To the sender.
    ToTheSender,
}

impl PacketSource {
    /// TSI and symbol size of the session that the packets are aimed at.
    pub const TARGET: Target = Target { tsi: TSI.0, symbol_bytes: world::SYMBOL_BYTES };

    /// The packets of a class; `None` if it has no packets of its own.
    ///
    /// # Errors
    /// The sessions that are repeated cannot be made.
    pub fn new(class: &Class, seed: u64) -> Result<Option<Self>, BenchError> {
        let make = match class.attack {
            Attack::Packets(make)
            | Attack::AddressedPackets(make)
            | Attack::SealedPackets(make) => make,
            Attack::Manifests(_)
            | Attack::Tables
            | Attack::Site(_)
            | Attack::Reports(_)
            | Attack::Web(_) => return Ok(None),
        };
        let attacker = attacker(seed, HonestSession::new(seed, 2)?.seal_id())?;
        Ok(Some(Self { attacker, make }))
    }

    /// A packet of the honest session, which the attacker receives too.
    pub fn observe(&mut self, datagram: &[u8]) {
        self.attacker.observe(datagram);
    }

    /// The next packets.
    pub fn next_packets(&mut self) -> Vec<HostileDatagram> {
        match self.attacker.make(self.make) {
            HostilePackets::One { from, bytes } => {
                let is_sender = from == world::SENDER;
                let direction =
                    if is_sender { Direction::FromTheSender } else { Direction::FromAnother };
                vec![HostileDatagram { direction, bytes }]
            }
            HostilePackets::Batch { slab, datagrams } => {
                let direction = Direction::FromTheSender;
                let bytes = |range: &std::ops::Range<u32>| {
                    slab.get(range.start as usize..range.end as usize).map(<[u8]>::to_vec)
                };
                let all = datagrams.iter().filter_map(|datagram| bytes(&datagram.payload));
                all.map(|bytes| HostileDatagram { direction, bytes }).collect()
            }
            HostilePackets::Feedback(bytes) => {
                vec![HostileDatagram { direction: Direction::ToTheSender, bytes }]
            }
        }
    }
}

/// The session that hostile packets are aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its TSI.
    pub tsi: u64,
    /// Bytes of its symbols.
    pub symbol_bytes: u16,
}
