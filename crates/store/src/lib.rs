//! The real disk: reading blocks to send, staging symbols that arrive, committing verified files.
//!
//! # Sending
//!
//! [`Tree::scan`] finds what is in directories. [`SourceFiles`] opens regular files and remembers
//! what they were; an [`ObjectSource`] lays extents of them end to end to the object that is sent;
//! an [`ObjectEncoder`] turns a list of ESIs into symbols within a memory budget. Reading is by
//! position, never by mapping: a file that somebody truncates is an error here, not a signal.
//!
//! # Receiving
//!
//! A [`TargetDirectory`] says where files go, checks names ([`TargetName`]) and never leads out of
//! itself, whatever is put in its way. [`Staging`] is a private directory
//! inside it, locked against a second receiver. A [`StagedObject`] puts source symbols at their
//! final offsets of the staged files and repair symbols into a sparse spool, [recovers] blocks by
//! executing a plan, and streams them back to be hashed. [`Staging::commit`] makes files that the
//! caller has verified appear under their names.
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
//! let encoder = ObjectEncoder::new(Arc::new(source), plans, Allowance::new(1 << 20));
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
//! object.write_repair(Sbn(0), 0, &symbols[24..])?;
//!
//! let mut decoder = scheme.decoder(4)?;
//! for esi in [0, 1, 3, 4711] {
//!     decoder.push(Esi(esi))?;
//! }
//! let fontana_fec::Progress::Solved(plan) = decoder.solve(scheme.block_profile(4).work) else {
//!     return Err("four symbols of four are nearly always enough".into());
//! };
//! object.recover_block(Sbn(0), &plan, 1 << 20, |esi| match esi {
//!     Esi(4711) => SymbolPlace::RepairSlot(0),
//!     _ => SymbolPlace::InPlace,
//! })?;
//! let mut received = Vec::new();
//! object.for_each_chunk_of_block(Sbn(0), |chunk| received.extend_from_slice(chunk))?;
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
//! 1. every staged file of the batch is given its length, mode and modification time; then each is
//!    `fsync`ed (many of them after a `syncfs`, which leaves less to do for each): bytes and inode
//!    are on the medium, still under a number;
//! 2. each is renamed to its final name, atomically, without replacing anything unless asked to;
//!    directories that are missing are made for it, with mode 0700;
//! 3. the directories that were changed are `fsync`ed: from here on the names survive a power
//!    failure;
//! 4. when everything is there, directories that were made are given their modes and times, the
//!    deepest first.
//!
//! A caller that notes between 1 and 2 that the files are right ([`Note::Committed`],
//! [`Staging::sync_notes`]) can finish, in its next life, what was interrupted between two names.
//!
//! Before that, symbols and the notes that speak of them survive the death of the process at once,
//! and a power failure from the next [`Staging::sync`] on: what is believed of the journal depends
//! on whether the machine has been started since.
//!
//! So at any instant a final name is either absent (or what it was before) or the whole verified
//! file. An `fsync` that failed is never repeated in the hope of a better answer: Linux reports a
//! write-back error once and then forgets the pages, so a second success proves nothing; the error
//! goes to the caller and the file stays in staging.
//!
//! # Memory and descriptors
//!
//! Nothing here grows with the size of a file. Work on a block takes the budget it is given and a
//! few fixed buffers; open descriptors are kept in bounded caches. All of it may be
//! shared between threads; none is started here.

mod attributes;
mod boot;
mod buffered;
mod commit;
mod device;
mod directories;
mod directory_table;
mod encode;
mod enter;
mod existing;
mod extents;
mod failure;
mod geometry;
mod growing;
mod ids;
mod journal;
mod leftover;
mod memo;
mod object_source;
mod open_files;
mod passes;
mod placement;
mod reconcile;
mod recover;
mod scan;
mod selection;
mod source;
mod staged_object;
mod staging;
mod sys;
mod target;
mod timestamp;

pub use attributes::FileAttributes;
pub use device::Device;
pub use encode::{Allowance, EncodeError, ObjectEncoder};
pub use existing::{Correction, ExistingFile};
pub use extents::{Extent, Extents};
pub use failure::{Room, StagingError};
pub use geometry::GeometryError;
pub use growing::GrowingFile;
pub use ids::FileIndex;
pub use journal::{Kept, KeptBlock, Note};
pub use leftover::Leftover;
pub use object_source::ObjectSource;
pub use rustix::io::Errno;
pub use scan::{Filter, Found, ScanError, Tree, TreeEntry};
pub use selection::Selection;
pub use source::{Change, Identity, SourceError, SourceFile, SourceFiles};
pub use staged_object::StagedObject;
pub use staging::{Staging, StagingOptions};
pub use target::{NameError, TargetDirectory, TargetName};
pub use timestamp::Timestamp;
