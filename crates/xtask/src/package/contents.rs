//! The files of a package, as they are installed.

use super::target::Target;
use super::{PROGRAM, Release, licenses};
use crate::command::{Outcome, copy, output, run, write};
use std::path::Path;
use std::process::Command;

/// Shells, and where their completions of a program are.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/fontana"),
    ("zsh", "share/zsh/site-functions/_fontana"),
    ("fish", "share/fish/vendor_completions.d/fontana.fish"),
];

/// Files of the repository, and where they are installed.
const COPIES: [(&str, &str); 7] = [
    ("contrib/systemd/fontana-send@.service", "lib/systemd/system/fontana-send@.service"),
    ("contrib/systemd/fontana-recv@.service", "lib/systemd/system/fontana-recv@.service"),
    ("contrib/sysctl.d/60-fontana.conf", "share/doc/fontana/examples/60-fontana.conf"),
    ("README.md", "share/doc/fontana/README.md"),
    ("CHANGELOG.md", "share/doc/fontana/CHANGELOG.md"),
    ("LICENSE-MIT", "share/doc/fontana/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/fontana/LICENSE-APACHE"),
];

/// Writes the files to `root`, below `usr`. `writer` is the program as this host can run it.
///
/// # Errors
/// A file cannot be written, or the program fails.
pub(super) fn stage(
    release: &Release,
    target: Target,
    program: &Path,
    writer: &Path,
    root: &Path,
) -> Outcome<()> {
    let usr = root.join("usr");
    copy(program, &usr.join("bin/fontana"))?;
    for (from, to) in COPIES {
        copy(&release.root.join(from), &usr.join(to))?;
    }
    for (shell, path) in COMPLETIONS {
        let script = output(Command::new(writer).args(["completions", shell]))?;
        write(&usr.join(path), script)?;
    }
    let pages = usr.join("share/man/man1");
    std::fs::create_dir_all(&pages).map_err(|error| error.to_string())?;
    run(Command::new(writer).arg("man").arg(&pages))?;
    let third_party = licenses::of_dependencies(release, target, &[PROGRAM])?;
    write(&usr.join("share/doc/fontana/THIRD-PARTY-LICENSES.txt"), third_party)?;
    write(&usr.join("share/doc/fontana/copyright"), copyright())?;
    // Whatever the umask is.
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(root))
}

/// What Debian's packages say of licenses.
fn copyright() -> &'static str {
    "Fontana is licensed under MIT or Apache-2.0, at your option: LICENSE-MIT, LICENSE-APACHE.\n\
     The libraries that are linked into it: THIRD-PARTY-LICENSES.txt.\n"
}
