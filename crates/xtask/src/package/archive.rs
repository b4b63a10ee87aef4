//! Archives: `bin`, `lib` and `share` in a directory that is named like the package.

use super::Package;
use crate::command::{Outcome, run};
use std::path::Path;
use std::process::Command;

/// Makes `fontana-VERSION-TARGET.tar.gz`.
///
/// # Errors
/// tar or gzip fails.
pub(super) fn make(package: &Package<'_>) -> Outcome<()> {
    let archive = package.path(".tar");
    let name = archive.file_stem().unwrap_or_default().to_string_lossy();
    let mut tar = tar(package, &package.files.join("usr"), &archive);
    run(tar.arg(format!("--transform=s,^\\.,{name},")).arg("."))?;
    gzip(&archive)
}

/// A tar that creates `archive` from what is in a directory: the same bytes each time.
pub(super) fn tar(package: &Package<'_>, directory: &Path, archive: &Path) -> Command {
    let mut tar = package.command("tar");
    tar.args(["--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", package.release.epoch))
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(directory)
        .arg("--create");
    tar
}

/// Compresses a file, in its place. Its name gets the ending `.gz`.
///
/// # Errors
/// gzip fails.
pub(super) fn gzip(path: &Path) -> Outcome<()> {
    run(Command::new("gzip").args(["--no-name", "--best", "--force"]).arg(path))
}
