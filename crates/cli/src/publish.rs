//! `fontana publish`: describes files that web servers have, and prints the ticket.

use crate::args::PublishArguments;
use crate::console::Console;
use crate::events::PublishEvent;
use crate::failure::Failure;
use crate::manifest_file;
use crate::units::{Bytes, Count};
use fontana::wire::WebTicket;
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
        "{count}, {}; each mirror needs them, and {} beside them",
        Bytes(bytes),
        path.display()
    ));
    Ok(Outcome::Complete)
}

/// Where the manifest is written: beside the first file or directory.
fn directory(arguments: &PublishArguments) -> PathBuf {
    let beside = || {
        let first = arguments.files.first()?.canonicalize().ok()?;
        first.parent().map(Path::to_owned)
    };
    arguments.into.clone().or_else(beside).unwrap_or_else(|| ".".into())
}
