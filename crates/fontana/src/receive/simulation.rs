//! Receptions on a simulated disk: crashes, failing calls, and threads that take turns in any
//! order.
//!
//! A [`ReceiverRun`] is a reception without threads and sockets. Its disk ([`SimulatedDisk`]) ends
//! the process at a call, fails calls, or loses power: what was not synced is lost, or kept in
//! parts. After each run a file must be absent or perfect under its name, and the last run, on a
//! disk that works, must complete. A block whose symbols are right must never have a wrong hash.
//!
//! A seed draws the content, the losses, one sender or two, an attacker, the order of all work, and
//! the troubles of up to four runs. A failing test prints its seed:
//!
//! ```sh
//! DISK_SEED=17 cargo test -p fontana simulation::seeds       # this one
//! DISK_SEEDS=20000 cargo test -p fontana simulation::seeds   # as many
//! ```

mod disk;
mod flute;
mod media;
mod pages;
mod run;
mod world;

use disk::{Call, Crash, Fault, Misbehavior, SimulatedDisk};
use fontana_fec::FecScheme;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_proto::{Category, SplitMix64};
use fontana_store::Errno;
use run::{Damage, End, ReceiverRun};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use world::{Shape, World};

/// Seeds of the gate. If spool ranges are freed although they were written again, 77 fails.
const SEEDS: u64 = 300;

/// The kinds of calls that fail, and how.
const FAULTS: [(Call, Misbehavior); 26] = [
    (Call::Open, Misbehavior::Error(Errno::MFILE)),
    (Call::Create, Misbehavior::Error(Errno::NOSPC)),
    (Call::Stat, Misbehavior::Error(Errno::IO)),
    (Call::Read, Misbehavior::Error(Errno::IO)),
    (Call::Read, Misbehavior::Short),
    (Call::Write, Misbehavior::Error(Errno::IO)),
    (Call::Write, Misbehavior::Error(Errno::NOSPC)),
    (Call::Write, Misbehavior::Error(Errno::FBIG)),
    (Call::Write, Misbehavior::Short),
    (Call::WriteSpool, Misbehavior::Error(Errno::DQUOT)),
    (Call::WriteSpool, Misbehavior::Misdirected),
    (Call::Append, Misbehavior::Error(Errno::IO)),
    (Call::Append, Misbehavior::Error(Errno::NOSPC)),
    (Call::Append, Misbehavior::Short),
    (Call::SetLength, Misbehavior::Error(Errno::IO)),
    (Call::Reserve, Misbehavior::Error(Errno::NOSPC)),
    (Call::Punch, Misbehavior::Error(Errno::IO)),
    (Call::SetMode, Misbehavior::Error(Errno::PERM)),
    (Call::SetTimes, Misbehavior::Error(Errno::PERM)),
    (Call::Sync, Misbehavior::Error(Errno::IO)),
    (Call::SyncData, Misbehavior::Error(Errno::IO)),
    (Call::SyncDirectory, Misbehavior::Error(Errno::IO)),
    (Call::MakeDirectory, Misbehavior::Error(Errno::NOSPC)),
    (Call::Rename, Misbehavior::Error(Errno::IO)),
    (Call::Unlink, Misbehavior::Error(Errno::IO)),
    (Call::RemoveDirectory, Misbehavior::Error(Errno::IO)),
];

/// The disk of a receiver, in all of its runs.
struct SimulatedHost {
    /// A directory for each boot.
    boots: TempDir,
    boot: u8,
    disk: Arc<SimulatedDisk>,
    damage: Damage,
}

impl SimulatedHost {
    fn new() -> Self {
        let boots = tempfile::tempdir().unwrap();
        let directory = directory_of(&boots, 1);
        std::fs::create_dir(&directory).unwrap();
        let disk = Arc::new(SimulatedDisk::new(&directory, 1));
        Self { boots, boot: 1, disk, damage: Damage::default() }
    }

    fn directory(&self) -> PathBuf {
        directory_of(&self.boots, self.boot)
    }

    /// Runs a receiver, and checks what it leaves.
    fn run(
        &mut self,
        world: &World,
        seed: u64,
        crash: Option<Crash>,
        fault: Option<Fault>,
    ) -> Result<End, String> {
        self.disk.begin_run(crash, fault);
        let is_misdirected = |fault: &Fault| fault.how == Misbehavior::Misdirected;
        if fault.as_ref().is_some_and(is_misdirected) {
            self.damage.is_misdirected = true;
        }
        let directory = self.directory();
        let end = ReceiverRun::new(world, &mut self.damage, &self.disk, &directory, seed).run()?;
        self.check(world, end == End::Complete)?;
        Ok(end)
    }

    /// Each file is absent or perfect; if the reception is complete, all are there and alone.
    fn check(&self, world: &World, must_be_complete: bool) -> Result<(), String> {
        let directory = self.directory();
        let is_complete = world.check(&directory)?;
        if must_be_complete && !is_complete {
            return Err("a file is missing after success was reported".to_owned());
        }
        // A failure to remove it is tolerated.
        if must_be_complete && has_staging(&directory) && !self.disk.has_failed() {
            return Err("the staging directory is there after success was reported".to_owned());
        }
        Ok(())
    }

    /// Loses power: another boot of the host has what is left.
    fn lose_power(&mut self, random: &mut SplitMix64) {
        let next = self.write_remains(random);
        std::fs::remove_dir_all(self.directory()).unwrap();
        self.boot += 1;
        self.disk = Arc::new(SimulatedDisk::new(&next, self.boot));
    }

    /// Writes what a loss of power leaves to the directory of the next boot.
    fn write_remains(&mut self, random: &mut SplitMix64) -> PathBuf {
        self.disk.end_run();
        let next = directory_of(&self.boots, self.boot + 1);
        std::fs::create_dir(&next).unwrap();
        self.disk.lose_power(random, &next);
        next
    }

    /// Runs a receiver on a disk that works.
    fn complete(&mut self, world: &World, random: &mut SplitMix64) -> Result<(), String> {
        let end = self.run(world, random.next_u64(), None, None)?;
        if end != End::Complete {
            return Err(format!("{end:?} on a disk that works"));
        }
        self.check_what_stays(world, random)
    }

    /// After success was reported, a loss of power takes no file.
    fn check_what_stays(&mut self, world: &World, random: &mut SplitMix64) -> Result<(), String> {
        let is_complete = world.check(&self.write_remains(random))?;
        if is_complete { Ok(()) } else { Err("success was reported too early".to_owned()) }
    }
}

fn directory_of(boots: &TempDir, boot: u8) -> PathBuf {
    boots.path().join(boot.to_string())
}

fn has_staging(directory: &Path) -> bool {
    let mut names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.any(|name| is_staging(&name))
}

fn is_staging(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".fontana")
}

/// The trouble of a run.
fn draw_trouble(random: &mut SplitMix64) -> (Option<Crash>, Option<Fault>) {
    match random.below(8) {
        0 => (None, None),
        1..5 => {
            let limit = 1 << (3 + random.below(7));
            let after = random.below(limit).into();
            (Some(Crash { after, tears: random.below(2) == 0 }), None)
        }
        _ => {
            let (call, how) = FAULTS[random.below(FAULTS.len() as u32) as usize];
            let (after, draw) = (random.below(20).into(), random.below(2));
            let lasts = draw == 0 && how != Misbehavior::Misdirected;
            (None, Some(Fault { call, how, after, lasts }))
        }
    }
}

/// Plays the runs of a seed. Returns the boundaries that they pass.
fn play(seed: u64) -> Result<u64, String> {
    let mut random = SplitMix64::new(seed, 0);
    let mut world = World::draw(&mut random);
    world.senders = if seed % 3 == 1 { 2 } else { 1 };
    let mut host = SimulatedHost::new();
    let mut boundaries = 0;
    for _ in 0..random.below(4) {
        let (crash, fault) = draw_trouble(&mut random);
        let end = host.run(&world, random.next_u64(), crash, fault)?;
        boundaries += host.disk.boundaries();
        if end == End::Complete {
            return host.check_what_stays(&world, &mut random).map(|()| boundaries);
        }
        if random.below(2) == 0 {
            host.lose_power(&mut random);
            host.check(&world, false)?;
        }
    }
    host.complete(&world, &mut random)?;
    Ok(boundaries + host.disk.boundaries())
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn seeds_find_no_wrong_file_and_no_reception_that_cannot_be_resumed() {
    let seeds = match number_from("DISK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_from("DISK_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(what) = play(seed) {
            panic!("{what}: DISK_SEED={seed}");
        }
    }
}

/// A symbol arrives while its block is solved from a wrong one, the wrong recovery takes its place,
/// and the receiver crashes: the journal lists it.
#[test]
fn what_arrives_while_its_block_is_solved_is_right_after_a_crash() {
    assert_eq!(play(7776).map(|_| ()), Ok(()));
}

#[test]
fn a_seed_plays_the_same_runs_again() {
    for seed in [1, 2, 3, 4] {
        assert_eq!(play(seed), play(seed));
    }
}

fn raptorq(bytes: usize, symbol_size: u16, source_blocks: u8) -> Shape {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks, sub_blocks: 1, alignment: 4 });
    Shape { bytes, symbol_size, scheme, files: 1 }
}

/// A reception of an object of 4 MiB that ends at each boundary, and is resumed after `between`.
fn crash_points(between: impl Fn(&mut SimulatedHost, &mut SplitMix64)) {
    const SEED: u64 = 4;
    let mut world = World::new(&[raptorq(4 << 20, 32_768, 4)], SEED);
    (world.loss, world.rate) = (12, 640_000_000);
    world.record(40);
    let mut host = SimulatedHost::new();
    assert_eq!(host.run(&world, SEED, None, None), Ok(End::Complete));
    let boundaries = host.disk.boundaries();
    for after in 0..boundaries {
        let mut random = SplitMix64::new(SEED, after);
        let mut host = SimulatedHost::new();
        let crash = Crash { after, tears: after % 2 == 0 };
        let resumed = host.run(&world, SEED, Some(crash), None).and_then(|end| {
            assert_eq!(end, End::Crashed, "boundary {after} of {boundaries}");
            between(&mut host, &mut random);
            host.check(&world, false)?;
            host.complete(&world, &mut random)
        });
        assert_eq!(resumed, Ok(()), "boundary {after} of {boundaries}");
    }
}

#[test]
fn a_reception_that_is_killed_at_any_boundary_is_resumed() {
    crash_points(|_, _| ());
}

#[test]
fn a_reception_that_loses_power_at_any_boundary_is_resumed() {
    crash_points(SimulatedHost::lose_power);
}

#[test]
fn each_kind_of_failing_call_is_reported_and_the_reception_resumed() {
    const SEED: u64 = 9;
    let shapes = [raptorq(1_200_000, 1024, 3), raptorq(9_000, 512, 2)];
    let mut world = World::new(&shapes, SEED);
    (world.loss, world.rate) = (20, 40_000_000);
    world.record(200);
    let mut good = SimulatedHost::new();
    assert_eq!(good.run(&world, SEED, None, None), Ok(End::Complete));
    for (call, how) in FAULTS {
        let calls = good.disk.calls(call);
        assert!(calls > 0, "{call:?} is not called");
        for (after, lasts) in [(0, true), (0, false), (calls / 2, false), (calls - 1, true)] {
            let lasts = lasts && how != Misbehavior::Misdirected;
            let fault = Fault { call, how, after, lasts };
            let mut host = SimulatedHost::new();
            let end = host.run(&world, SEED, None, Some(fault));
            let end = end.unwrap_or_else(|what| panic!("{fault:?}: {what}"));
            assert!(host.disk.calls(call) > after, "{fault:?} has not failed");
            if let (Misbehavior::Error(Errno::NOSPC | Errno::DQUOT), End::Failed(category)) =
                (how, end)
            {
                assert_eq!(category, Category::DiskFull, "{fault:?}");
            }
            if end != End::Complete {
                let completed = host.complete(&world, &mut SplitMix64::new(SEED, after));
                assert_eq!(completed, Ok(()), "{fault:?}, then {end:?}");
            }
        }
    }
}

/// A receiver that hears more than its memory holds before its files are open. Those symbols are
/// on the disk, but no call for them is needed.
#[test]
fn a_disk_that_takes_no_early_symbols_costs_no_file() {
    const SEED: u64 = 4;
    let mut world = World::new(&[raptorq(4 << 20, 32_768, 4)], SEED);
    (world.loss, world.rate) = (12, 640_000_000);
    world.record(40);
    let mut good = SimulatedHost::new();
    assert_eq!(good.run(&world, SEED, None, None), Ok(End::Complete));
    for (call, how) in [
        (Call::CreateUnnamed, Misbehavior::Error(Errno::OPNOTSUPP)),
        (Call::WriteUnnamed, Misbehavior::Error(Errno::NOSPC)),
        (Call::WriteUnnamed, Misbehavior::Error(Errno::IO)),
        (Call::WriteUnnamed, Misbehavior::Short),
        (Call::ReadUnnamed, Misbehavior::Error(Errno::IO)),
        (Call::ReadUnnamed, Misbehavior::Short),
    ] {
        let calls = good.disk.calls(call);
        assert!(calls > 0, "{call:?} is not called");
        for (after, lasts) in [(0, true), (0, false), (calls / 2, true), (calls / 2, false)] {
            let fault = Fault { call, how, after, lasts };
            let mut host = SimulatedHost::new();
            assert_eq!(host.run(&world, SEED, None, Some(fault)), Ok(End::Complete), "{fault:?}");
        }
    }
}

/// A bundle of so many files that a commit syncs them with one call.
fn many_files() -> World {
    World::new(&[Shape { files: 70, ..raptorq(9_000, 512, 1) }], 3)
}

#[test]
fn many_files_that_are_committed_together_survive_a_loss_of_power_at_any_boundary() {
    const SEED: u64 = 3;
    let world = many_files();
    let mut host = SimulatedHost::new();
    assert_eq!(host.run(&world, SEED, None, None), Ok(End::Complete));
    assert_eq!(host.check_what_stays(&world, &mut SplitMix64::new(SEED, 0)), Ok(()));
    assert!(host.disk.calls(Call::SyncFileSystem) > 0);
    assert_eq!(host.disk.calls(Call::Sync), 0, "each file by itself");
    for after in (0..host.disk.boundaries()).step_by(7) {
        let mut random = SplitMix64::new(SEED, after);
        let mut host = SimulatedHost::new();
        let crash = Crash { after, tears: false };
        let resumed = host.run(&world, SEED, Some(crash), None).and_then(|_| {
            host.lose_power(&mut random);
            host.check(&world, false)?;
            host.complete(&world, &mut random)
        });
        assert_eq!(resumed, Ok(()), "boundary {after}");
    }
}

#[test]
fn many_files_get_no_names_if_the_sync_of_their_file_system_fails() {
    const SEED: u64 = 3;
    let world = many_files();
    let how = Misbehavior::Error(Errno::IO);
    let fault = Fault { call: Call::SyncFileSystem, how, after: 0, lasts: false };
    let mut host = SimulatedHost::new();
    assert_eq!(host.run(&world, SEED, None, Some(fault)), Ok(End::Failed(Category::Io)));
    assert!((1..70).all(|number| !host.directory().join(format!("file 1 {number}")).exists()));
    assert_eq!(host.complete(&world, &mut SplitMix64::new(SEED, 0)), Ok(()));
}

/// A run that cannot read the journal gives up. It must not begin another one: the journal has the
/// files that have their names already.
#[test]
fn a_journal_that_cannot_be_read_once_is_not_lost() {
    const SEED: u64 = 5;
    let world = World::new(&[raptorq(3_000, 200, 1), raptorq(5_000, 512, 1)], SEED);
    let mut host = SimulatedHost::new();
    assert_eq!(host.run(&world, SEED, None, None), Ok(End::Complete));
    let fault =
        Fault { call: Call::Read, how: Misbehavior::Error(Errno::IO), after: 0, lasts: false };
    for after in 0..host.disk.boundaries() {
        let mut random = SplitMix64::new(SEED, after);
        let mut host = SimulatedHost::new();
        let completed = host
            .run(&world, SEED, Some(Crash { after, tears: false }), None)
            .and_then(|_| host.run(&world, SEED, None, Some(fault)))
            .and_then(|end| match end {
                End::Complete => Ok(()),
                _ => host.complete(&world, &mut random),
            });
        assert_eq!(completed, Ok(()), "boundary {after}");
    }
}

#[test]
fn a_name_that_the_disk_refuses_costs_no_other() {
    const SEED: u64 = 3;
    let world = many_files();
    for after in [0, 5, 69] {
        let how = Misbehavior::Error(Errno::NAMETOOLONG);
        let fault = Fault { call: Call::Rename, how, after, lasts: false };
        let mut host = SimulatedHost::new();
        let end = host.run(&world, SEED, None, Some(fault));
        assert_eq!(end, Ok(End::Failed(Category::Refused)), "the one after {after}");
        let names = std::fs::read_dir(host.directory()).unwrap();
        let names = names.filter(|name| !is_staging(&name.as_ref().unwrap().file_name()));
        assert_eq!(names.count(), 69, "the one after {after}");
        assert_eq!(host.complete(&world, &mut SplitMix64::new(SEED, 0)), Ok(()));
    }
}

/// Plans of the gate in which one call fails once.
const PLANS: u64 = 200;

/// Whether a call is for one of several objects, or for one of the files that share one. Others are
/// for the whole reception: its journal, its directory.
fn is_of_a_file(call: Call, shares_object: bool) -> bool {
    match call {
        Call::Rename | Call::SetMode | Call::SetTimes | Call::Reserve | Call::Unlink => true,
        Call::Write | Call::WriteSpool | Call::SetLength | Call::Punch => !shares_object,
        _ => false,
    }
}

#[test]
fn a_call_that_fails_once_costs_one_file_at_most() {
    for seed in 0..PLANS {
        let mut random = SplitMix64::new(seed, 9);
        let files = 2 + random.below(11) as usize;
        let shares = random.below(2) == 0;
        let shapes = match shares {
            true => vec![Shape { files, ..raptorq(9_000, 512, 1) }],
            false => vec![raptorq(2_000, 512, 1); files],
        };
        let mut world = World::new(&shapes, seed);
        world.loss = [0, 20][random.below(2) as usize];
        let faults: Vec<_> =
            FAULTS.into_iter().filter(|(call, _)| is_of_a_file(*call, shares)).collect();
        let (call, how) = faults[random.below(faults.len() as u32) as usize];
        // The first bytes that are written are those of the manifest, for the next run.
        let first = u64::from(call == Call::Write);
        let after = first + u64::from(random.below(2 * files as u32));
        let fault = Fault { call, how, after, lasts: false };
        let mut host = SimulatedHost::new();
        let end = host.run(&world, seed, None, Some(fault));
        let there = world.count(&host.directory());
        let what = format!("{fault:?}, seed {seed}: {end:?}, {there} of {files} files");
        assert!(there == files || there + 1 == files && end != Ok(End::Complete), "{what}");
        if there < files {
            assert_eq!(host.complete(&world, &mut random), Ok(()), "{what}");
        }
    }
}
