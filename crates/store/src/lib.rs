//! Files on disk: reads blocks to send, stages received symbols, and commits verified files.
//!
//! # Sending
//!
//! [`Tree::scan`] lists the contents of directories. [`SourceFiles`] opens regular files and
//! remembers their identity. An [`ObjectSource`] concatenates extents of them to the object that is
//! sent. An [`ObjectEncoder`] computes symbols from a list of ESIs within a memory budget. Files
//! are read by position, not mapped: a file that is truncated meanwhile is an error, not a signal.
//!
//! # Receiving
//!
//! A [`TargetDirectory`] is the directory that files are received into. It checks names
//! ([`TargetName`]), and no path leads out of it, even if directories are replaced by links.
//! [`Staging`] is a private directory inside it, locked against other receivers. A [`StagedObject`]
//! writes source symbols to their final offsets in the staged files and repair symbols to a sparse
//! spool, and [recovers] blocks by executing a plan; it passes on their bytes to be hashed.
//! [`Staging::commit`] gives files that the caller has verified their names.
//!
//! [recovers]: StagedObject::recover_block
//!
//! # Example
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (here, there) = (dir.path().join("greeting"), dir.path().join("inbox"));
//! use fontana_fec::codes::raptorq::RaptorQ;
//! use fontana_fec::{Esi, FecScheme, Oti, PlanCache, Sbn};
//! use fontana_proto::SymbolPlace;
//! use fontana_store::*;
//! use std::sync::Arc;
//!
//! std::fs::write(&here, "fair water flows to everyone")?;
//! let mut files = SourceFiles::default();
//! let file = files.add(&here)?;
//! let length = files.file(file)?.size();
//!
//! // Both ends must agree on this much.
//! let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
//! let layout = Oti { transfer_length: length, symbol_size: 8, scheme }.layout()?;
//! let extents = Extents::whole_file(FileIndex(0), length);
//!
//! let source = ObjectSource::new(Arc::new(files), layout, extents.clone())?;
//! let plans = Arc::new(PlanCache::new(2));
//! let encoder = ObjectEncoder::new(Arc::new(source), plans, SolvedStore::new(1 << 20));
//! let mut symbols = [0; 32];
//! encoder.encode(Sbn(0), &[Esi(0), Esi(1), Esi(3), Esi(4711)], 1 << 20, &mut symbols)?;
//!
//! // ... the network loses symbol 2 ...
//!
//! let target = Arc::new(TargetDirectory::open(there)?);
//! let staging = Arc::new(Staging::create(target, "example", StagingOptions::default())?.0);
//! let name = TargetName::new(&["greeting"])?;
//! let file = staging.add_file(name, length, FileAttributes::default())?;
//! let object = StagedObject::new(staging.clone(), layout, extents, 16)?;
//! object.write_source_run(Sbn(0), Esi(0), &symbols[..16])?;
//! object.write_source(Sbn(0), Esi(3), &symbols[16..24])?;
//! object.write_repair_run(Sbn(0), 0, &symbols[24..])?;
//!
//! let mut decoder = scheme.decoder(4)?;
//! for esi in [0, 1, 3, 4711] {
//!     decoder.push(Esi(esi))?;
//! }
//! let fontana_fec::Progress::Solved(plan) = decoder.solve(scheme.block_profile(4).work) else {
//!     return Err("four symbols of four are nearly always enough".into());
//! };
//! let place = |esi| match esi {
//!     Esi(4711) => SymbolPlace::RepairSlot(0),
//!     _ => SymbolPlace::InPlace,
//! };
//! let mut received = Vec::new();
//! let show = |bytes: &[u8]| received.extend_from_slice(bytes);
//! let memory = &mut RecoveryMemory::new(1 << 20);
//! object.recover_block(Sbn(0), RecoverySteps::all_of(&plan), memory, place, 0, show)?;
//! assert_eq!(received, b"fair water flows to everyone"); // really: compare hashes
//! staging.commit(&[file])?;
//! staging.remove()?;
//! # assert_eq!(std::fs::read(dir.path().join("inbox/greeting"))?, received);
//! # Ok(())
//! # }
//! ```
//!
//! # What a crash leaves
//!
//! A commit runs in this order:
//!
//! 1. every staged file of the batch gets its length, mode and modification time; then each is
//!    `fsync`ed (many of them after a `syncfs`, which leaves less to do for each): bytes and inode
//!    are on the disk, still under a number;
//! 2. each is renamed to its final name, atomically, without replacing anything unless requested;
//!    missing directories are created for it, with mode 0700;
//! 3. the changed directories are `fsync`ed: from here on the names survive a power failure;
//! 4. when everything is there, created directories get their modes and times, the deepest first.
//!
//! A caller that notes between 1 and 2 that the files are right ([`Note::Committed`],
//! [`Staging::sync_notes`]) can, after a restart, complete a commit that was interrupted between
//! two names.
//!
//! Before the commit, symbols and their notes survive the end of the process at once, and a power
//! failure from the next [`Staging::sync`] on: which notes of the journal are believed depends on
//! whether the host has been rebooted since.
//!
//! So at any instant a final name either is absent (or what it was before), or names the whole
//! verified file. A failed `fsync` is never repeated: Linux reports a write-back error once and
//! then drops the pages, so a second success proves nothing. The error goes to the caller, and the
//! file stays in staging.
//!
//! # Memory and descriptors
//!
//! Memory does not grow with the size of a file. An operation on a block takes the given budget and
//! a few fixed buffers. Open descriptors are kept in bounded caches. All types may be shared
//! between threads; the crate starts none.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `scan`, `source`, `extents` | [`Tree`], [`SourceFiles`], [`Extents`]: what is sent |
//! | `object_source`, `object_copy`, `encode`, `solved` | [`ObjectSource`], [`ObjectEncoder`], [`SolvedStore`]: blocks and symbols of an object |
//! | `target`, `existing`, `selection` | [`TargetDirectory`], [`ExistingFile`], [`Selection`]: where files are received |
//! | `staging`, `staged_object`, `recover` | [`Staging`], [`StagedObject`]: files and symbols until they are verified |
//! | `journal`, `leftover`, `reconcile` | [`Note`], [`Kept`], [`Leftover`]: what an interrupted receiver resumes from |
//! | `commit`, `across`, `directories`, `memo`, `ours` | final names, directories, small files that outlive receptions, and the names of these |
//! | `spill` | [`SpillFile`]: symbols that arrive before their objects are known |
//! | `device`, `memory`, `growing` | [`Device`], [`Memory`], [`GrowingFile`]: content that is written in place, or of unknown length |
//! | `disk`, `writable`, `boot` | [`Disk`]: the calls to the file system, which tests can fail; [`OptionalCall`]: those that the content does not need; [`BootId`] |
//! | `failure`, `geometry` | [`StagingError`], [`GeometryError`] |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod across;
mod attributes;
mod boot;
mod buffered;
mod commit;
mod device;
mod directories;
mod directory_table;
mod disk;
mod encode;
mod enter;
mod existing;
mod extents;
mod failure;
mod geometry;
mod growing;
mod holder;
mod identity;
mod ids;
mod journal;
mod leftover;
mod lock;
mod memo;
mod memory;
mod object_copy;
mod object_source;
mod open_files;
mod ours;
mod passes;
mod placement;
mod reconcile;
mod recover;
mod remove;
mod resend;
mod scan;
mod selection;
mod solved;
mod source;
mod spill;
mod staged_object;
mod staging;
mod sys;
mod target;
mod timestamp;
mod writable;

pub use attributes::FileAttributes;
pub use boot::BootId;
pub use commit::FailedFiles;
pub use device::Device;
pub use disk::{Disk, HostDisk, OptionalCall};
pub use encode::{EncodeError, ObjectEncoder};
pub use existing::{Correction, ExistingFile};
pub use extents::{Extent, Extents};
pub use failure::{Room, StagingError};
pub use geometry::GeometryError;
pub use growing::GrowingFile;
pub use identity::{Change, Identity};
pub use ids::FileIndex;
pub use journal::{Kept, KeptBlock, Note};
pub use leftover::Leftover;
pub use memory::Memory;
pub use object_copy::ObjectCopy;
pub use object_source::ObjectSource;
pub use ours::is_ours;
pub use recover::{RecoveryMemory, RecoverySteps};
pub use rustix::io::Errno;
pub use scan::{Filter, Found, LeftOut, ScanError, Tree, TreeEntry};
pub use selection::Selection;
pub use solved::{ScratchFile, SolvedStore};
pub use source::{Descriptors, Deviations, SourceBytes, SourceError, SourceFile, SourceFiles};
pub use spill::SpillFile;
pub use staged_object::StagedObject;
pub use staging::give::Given;
pub use staging::{Staging, StagingOptions};
pub use target::{NameError, TargetDirectory, TargetName};
pub use timestamp::Timestamp;
