//! Writes a shelf: repair symbols in files (`docs/wire.md`, section 16).

use super::ShelfReport;
use crate::content::ContentObject;
use crate::error::Error;
use crate::new_file::NewFile;
use fontana_fec::{Esi, PlanCache, Sbn};
use fontana_net::thread::spawn_scoped;
use fontana_store::{ObjectEncoder, SolvedStore};
use fontana_wire::{ShelfIndex, ShelfLayout};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory for solving a block.
const BUDGET: usize = 1 << 30;

/// Writes the files of a shelf into a directory.
pub(super) fn write(
    index: &ShelfIndex,
    objects: &[ContentObject],
    directory: &Path,
    workers: usize,
) -> Result<ShelfReport, Error> {
    let failed = || Error::system("write a shelf");
    fs::create_dir_all(directory).map_err(failed())?;
    let plans = Arc::new(PlanCache::new(4));
    let mut report = ShelfReport::default();
    for object in objects {
        let encoder =
            ObjectEncoder::new(Arc::clone(&object.source), Arc::clone(&plans), SolvedStore::new(0));
        let layout = object.source.layout();
        let blocks = 0..layout.block_count();
        let lengths = blocks.clone().map(|sbn| layout.source_symbols(Sbn(sbn)).unwrap_or(0));
        let places = index.layout(layout.oti().symbol_size, lengths);
        let file = NewFile::create_readable_in(directory).map_err(failed())?;
        file.as_file().set_len(places.length()).map_err(failed())?;
        let shelf = ShelfFile { index, encoder: &encoder, places: &places, file: file.as_file() };
        shelf.write_blocks(blocks, workers)?;
        let name = ShelfIndex::symbols_file_name(index.manifest, object.toi.0 as u32);
        report.written += u64::from(keep(file, &directory.join(name)).map_err(failed())?);
        report.bytes += places.length();
        report.symbols += places.length() / u64::from(places.symbol_size().max(1));
    }
    let file = NewFile::create_readable_in(directory).map_err(failed())?;
    file.as_file().write_all_at(&index.emit(), 0).map_err(failed())?;
    let path = directory.join(ShelfIndex::file_name(index.manifest));
    report.written += u64::from(keep(file, &path).map_err(failed())?);
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed())?;
    Ok(report)
}

/// The file with the symbols of an object.
struct ShelfFile<'a> {
    index: &'a ShelfIndex,
    encoder: &'a ObjectEncoder,
    places: &'a ShelfLayout,
    file: &'a File,
}

impl ShelfFile<'_> {
    fn write_blocks(&self, blocks: Range<u32>, workers: usize) -> Result<(), Error> {
        let next = AtomicU32::new(blocks.start);
        let work = || -> Result<(), Error> {
            let mut memory = Vec::new();
            loop {
                let sbn = next.fetch_add(1, Ordering::Relaxed);
                if sbn >= blocks.end {
                    return Ok(());
                }
                self.write_block(Sbn(sbn), &mut memory)?;
            }
        };
        std::thread::scope(|scope| {
            let count = workers.min(blocks.len()).max(1);
            let threads: Vec<_> = (0..count)
                .map(|_| spawn_scoped(scope, "encode", work))
                .collect::<Result<_, _>>()?;
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }

    fn write_block(&self, sbn: Sbn, memory: &mut Vec<u8>) -> Result<(), Error> {
        let source = self.encoder.source();
        let count = self.index.block_symbols(source.layout().source_symbols(sbn).unwrap_or(0));
        let size = usize::from(self.places.symbol_size());
        let first = self.index.number.first_esi();
        let esis: Vec<Esi> = (first..first + count).map(Esi).collect();
        memory.resize(esis.len() * size, 0);
        if let Some(deviations) = self.encoder.encode(sbn, &esis, BUDGET, memory)? {
            return Err(source.changed(&deviations).into());
        }
        for round in 0..self.places.rounds() {
            let runs = self.places.round(round).filter(|run| run.sbn == sbn.0);
            for run in runs {
                let [start, end] =
                    [run.indices.start, run.indices.end].map(|index| index as usize * size);
                let symbols = memory.get(start..end).unwrap_or_default();
                let written = self.file.write_all_at(symbols, run.offset);
                written.map_err(Error::system("write a shelf"))?;
            }
        }
        Ok(())
    }
}

/// Gives a new file its name, unless a file with the same bytes has it. Whether it did.
fn keep(file: NewFile, path: &Path) -> io::Result<bool> {
    if has_same_bytes(file.as_file(), path)? {
        return Ok(false);
    }
    file.replace(path)?;
    Ok(true)
}

fn has_same_bytes(new: &File, path: &Path) -> io::Result<bool> {
    let old = match File::open(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let length = new.metadata()?.len();
    if old.metadata()?.len() != length {
        return Ok(false);
    }
    let (mut old, mut at) = (BufReader::new(old), 0);
    let (mut of_old, mut of_new) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    while at < length {
        let most = usize::try_from(length - at).unwrap_or(usize::MAX).min(of_old.len());
        let (of_old, of_new) = (&mut of_old[..most], &mut of_new[..most]);
        old.read_exact(of_old)?;
        new.read_exact_at(of_new, at)?;
        if of_old != of_new {
            return Ok(false);
        }
        at += most as u64;
    }
    Ok(true)
}
