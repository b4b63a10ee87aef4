//! `fontana publish`: describes files that web servers have, and prints the ticket.

use crate::args::PublishArguments;
use crate::events::PublishEvent;
use crate::head;
use crate::manifest_file;
use crate::version_file::VersionFile;
use fontana::wire::{Manifest, ShelfNumber, WebTicket};
use fontana::{MirrorHead, MirroredContent, NewFile, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::{Bytes, Count};
use std::path::{Path, PathBuf};

/// Writes the file with the manifest, and prints the ticket.
pub(crate) fn run(arguments: &PublishArguments, console: &Console) -> Result<Outcome, Failure> {
    let PublishArguments { files, block_size, content_version, .. } = arguments;
    let head_signing = head::Signing::read(&arguments.signing)?;
    for directory in [Some(directory(arguments)), arguments.shelf.clone()].into_iter().flatten() {
        // A shelf is as long as its content. A directory that is not there yet has none.
        let removed = NewFile::remove_abandoned(&directory).unwrap_or(0);
        if removed > 0 {
            let files = Count(removed, "file");
            console.note(format_args!("{files} of a process that was killed: removed"));
        }
    }
    let content = MirroredContent::describe(files, *block_size, *content_version)?;
    refuse_head(content.manifest())?;
    let head = head_signing.head(content.manifest())?;
    let path = directory(arguments).join(content.file_name());
    manifest_file::write_again(&path, content.manifest())?;
    head::write(&directory(arguments), &head)?;
    let manifest = content.manifest();
    let ticket = WebTicket { manifest: content.hash(), web: arguments.web.clone() };
    let (files, bytes) = (manifest.files().count() as u64, manifest.content_length());
    if let (Some(directory), Some(number)) = (&arguments.shelf, arguments.mirror) {
        write_shelf(&content, directory, number, arguments.stretch, console)?;
        head::write(directory, &head)?;
    }
    if let Some(key) = &arguments.signing.sign {
        VersionFile::keep_chosen(key, content.manifest().version(), console);
    }
    console.result_event(&PublishEvent::Published {
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
        "{count}, {}; each mirror needs them, {} and {} beside them, or a shelf",
        Bytes(bytes),
        path.display(),
        MirrorHead::FILE_NAME,
    ));
    Ok(console.failures(content.left_out().iter().map(|error| Failure::from(&**error))))
}

/// Refuses content with a file in the place of the mirror's head.
fn refuse_head(manifest: &Manifest) -> Result<(), Failure> {
    let name = MirrorHead::FILE_NAME;
    if manifest.entries().iter().all(|entry| entry.path().as_bytes() != name.as_bytes()) {
        return Ok(());
    }
    let message = format!("one of the files is {name}, which says what the mirror has");
    let hint = "leave it out, if it is that of an earlier version, or rename it";
    Err(Failure::new(Outcome::Usage, message, hint))
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
    console.result_event(&PublishEvent::Shelf {
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
