//! `fontana publish`: describes files that web servers have, and prints the ticket.

use crate::args::PublishArguments;
use crate::console::Console;
use crate::events::PublishEvent;
use crate::failure::Failure;
use crate::manifest_file;
use crate::units::{Bytes, Count};
use fontana::wire::{ShelfNumber, WebTicket};
use fontana::{MirroredContent, Outcome};
use std::path::{Path, PathBuf};

/// Writes the file with the manifest, and prints the ticket.
pub(crate) fn run(arguments: &PublishArguments, console: &Console) -> Result<Outcome, Failure> {
    let content = MirroredContent::describe(&arguments.files, arguments.block_size)?;
    let path = directory(arguments).join(content.file_name());
    manifest_file::write_again(&path, content.manifest())?;
    let manifest = content.manifest();
    let ticket = WebTicket { manifest: content.hash(), web: arguments.web.clone() };
    let (files, bytes) = (manifest.files().count() as u64, manifest.content_length());
    if let (Some(directory), Some(number)) = (&arguments.shelf, arguments.mirror) {
        write_shelf(&content, directory, number, arguments.stretch, console)?;
    }
    console.event(&PublishEvent::Published {
        ticket: ticket.to_string(),
        manifest: content.hash().to_string(),
        path: path.display().to_string(),
        files,
        bytes,
        blocks: manifest.objects().iter().map(|o| o.block_hashes.len() as u64).sum(),
    });
    console.result(&ticket);
    let count = Count(files, "file");
    console.note(format_args!(
        "{count}, {}; each mirror needs them, and {} beside them, or a shelf",
        Bytes(bytes),
        path.display()
    ));
    Ok(Outcome::Complete)
}

/// Writes a shelf, and the manifest beside it.
fn write_shelf(
    content: &MirroredContent,
    directory: &Path,
    number: ShelfNumber,
    stretch_permille: u16,
    console: &Console,
) -> Result<(), Failure> {
    let report = content.write_shelf(directory, number, stretch_permille)?;
    manifest_file::write_again(&directory.join(content.file_name()), content.manifest())?;
    console.event(&PublishEvent::Shelf {
        path: directory.display().to_string(),
        number: number.get(),
        symbols: report.symbols,
        bytes: report.bytes,
        written: report.written,
    });
    console.note(format_args!(
        "shelf {number} in {}: {}, {}",
        directory.display(),
        Count(report.symbols, "symbol"),
        Bytes(report.bytes)
    ));
    Ok(())
}

/// Where the manifest is written: beside the first file or directory.
fn directory(arguments: &PublishArguments) -> PathBuf {
    let beside = || {
        let first = arguments.files.first()?.canonicalize().ok()?;
        first.parent().map(Path::to_owned)
    };
    arguments.into.clone().or_else(beside).unwrap_or_else(|| ".".into())
}
