//! The content of a session for people: counts, and a list for `--dry-run`.

use crate::args::SessionFormat;
use crate::events::Named;
use fontana::wire::{Entry, Manifest, Printable};
use fontana_console::console::Console;
use fontana_console::units::{Bytes, Count};
use serde::Serialize;

/// Names that a dry run lists: about what a terminal shows.
const LISTED: usize = 50;

pub(super) fn directories(manifest: &Manifest) -> u64 {
    count(manifest, |entry| matches!(entry, Entry::Directory(_)))
}

pub(super) fn links(manifest: &Manifest) -> u64 {
    count(manifest, |entry| matches!(entry, Entry::Symlink(_)))
}

fn count(manifest: &Manifest, kind: impl Fn(&Entry) -> bool) -> u64 {
    manifest.entries().iter().filter(|entry| kind(entry)).count() as u64
}

/// `3 files, 1 directory, 2 links, 4.0 kB`, without kinds of which there are none, except files.
pub(super) fn counts(manifest: &Manifest) -> String {
    let mut counts = Count(manifest.files().count() as u64, "file").to_string();
    let directories = (directories(manifest), ("directory", "directories"));
    let links = (links(manifest), ("link", "links"));
    for (number, (one, many)) in [directories, links] {
        if number > 0 {
            counts += &format!(", {number} {}", if number == 1 { one } else { many });
        }
    }
    format!("{counts}, {}", Bytes(manifest.content_length()))
}

/// Lists the first names, or for scripts all of them, as the event that `event` returns for each.
pub(crate) fn show<E: Serialize>(
    manifest: &Manifest,
    console: &Console,
    event: impl Fn(Named) -> E,
) {
    for entry in manifest.entries() {
        let (kind, bytes, target) = match entry {
            Entry::File(file) => ("file", Some(file.length()), None),
            Entry::Directory(_) => ("directory", None, None),
            Entry::Symlink(link) => ("link", None, Some(Printable(&link.target).to_string())),
        };
        let (kind, name) = (kind.into(), entry.path().to_string());
        console.result_event(&event(Named { kind, name, bytes, target }));
    }
    for entry in manifest.entries().iter().take(LISTED) {
        let path = entry.path();
        match entry {
            Entry::File(file) => {
                console.result(format_args!("  {path}  {}", Bytes(file.length())));
            }
            Entry::Directory(_) => console.result(format_args!("  {path}/")),
            Entry::Symlink(link) => {
                console.result(format_args!("  {path} -> {}", Printable(&link.target)));
            }
        }
    }
    let more = manifest.entries().len().saturating_sub(LISTED);
    if more > 0 {
        console.result(format_args!("  ... and {more} more (all of them: --json)"));
    }
}

/// A note about content that receivers do not get from this format.
pub(super) fn not_kept(manifest: &Manifest, mode: SessionFormat) -> Option<&'static str> {
    let is_below = |entry: &Entry| entry.path().components().nth(1).is_some();
    let is_plain = mode != SessionFormat::Fontana;
    if is_plain && manifest.entries().iter().any(is_below) {
        Some("directories, links, modes and times are not kept: other programs get the files only")
    } else if directories(manifest) > 0 {
        Some("owners, extended attributes and hard links are not kept")
    } else {
        None
    }
}
