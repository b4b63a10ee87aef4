//! Debian packages.

use super::archive::gzip;
use super::{DESCRIPTION, Package, SUMMARY};
use crate::command::{Outcome, output, run, write};
use std::process::Command;

/// Makes `fontana_VERSION_ARCHITECTURE.deb`.
///
/// # Errors
/// dpkg-deb fails.
pub(super) fn make(package: &Package<'_>) -> Outcome<()> {
    let root = package.work.join("deb");
    run(Command::new("cp").arg("--archive").arg(&package.files).arg(&root))?;
    let pages = root.join("usr/share/man/man1");
    for page in std::fs::read_dir(pages).map_err(|error| error.to_string())?.flatten() {
        gzip(&page.path())?;
    }
    let sizes = output(Command::new("find").arg(&root).args(["-type", "f", "-printf", "%s\n"]))?;
    let bytes: u64 = sizes.lines().filter_map(|size| size.parse::<u64>().ok()).sum();
    let kibibytes = bytes.div_ceil(1024);
    let (version, architecture) = (&package.release.version, package.target.debian());
    let description = DESCRIPTION.replace('\n', "\n ");
    let control = format!(
        "Package: fontana\nVersion: {version}\nArchitecture: {architecture}\nSection: net\n\
         Priority: optional\nMaintainer: The developers of Fontana <fontana@example.invalid>\n\
         Installed-Size: {kibibytes}\nRecommends: ca-certificates\n\
         Description: {SUMMARY}\n {description}\n"
    );
    let sums = "find usr -type f -print0 | sort -z | xargs -0 md5sum";
    let sums = output(package.command("sh").current_dir(&root).args(["-c", sums]))?;
    write(&root.join("DEBIAN/control"), control)?;
    write(&root.join("DEBIAN/md5sums"), sums)?;
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    let path = package.out.join(format!("fontana_{version}_{architecture}.deb"));
    run(package
        .command("dpkg-deb")
        .args(["--root-owner-group", "--uniform-compression", "-Zxz", "--build"])
        .args([root, path]))
}
