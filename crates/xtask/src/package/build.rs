//! The program, without paths of this host in it.

use super::target::Target;
use super::{PROGRAM, Release, cargo};
use crate::command::{Outcome, run};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest program, in bytes, that a package may have.
const MAX_BYTES: u64 = 12_000_000;

/// Builds the program for a target, with the profile `dist`. Returns its path.
///
/// # Errors
/// It does not build, or is too large.
pub(super) fn program(release: &Release, target: Target) -> Outcome<PathBuf> {
    let variable = target.triple().replace('-', "_");
    let mut cargo = Command::new(cargo());
    cargo
        .current_dir(&release.root)
        .args(["build", "--locked", "--profile", "dist", "-p", PROGRAM, "--target"])
        .arg(target.triple())
        .env(format!("CC_{variable}"), target.compiler());
    if target != Target::of_this_host()? {
        let variable = variable.to_uppercase();
        cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), target.compiler());
    }
    hide_paths(&mut cargo, release, target.triple())?;
    run(&mut cargo)?;
    let program = release.builds.join(target.triple()).join("dist/fontana");
    let bytes = program.metadata().map_err(|error| format!("{}: {error}", program.display()))?;
    let bytes = bytes.len();
    if bytes > MAX_BYTES {
        return Err(format!("the program has {bytes} bytes, at most {MAX_BYTES} are allowed"));
    }
    eprintln!("{}: {bytes} bytes", program.display());
    Ok(program)
}

/// Has a build for `triple` contain neither paths of this host nor the time.
///
/// # Errors
/// There is no home directory.
pub(super) fn hide_paths(build: &mut Command, release: &Release, triple: &str) -> Outcome<()> {
    let flags = format!("CFLAGS_{}", triple.replace('-', "_"));
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let home = home.ok_or("there is neither CARGO_HOME nor a home directory")?;
    // The last one that fits is used.
    let places: [(&Path, &str); 3] =
        [(&home, "/cargo"), (&release.root, "/fontana"), (&release.builds, "/target")];
    let map = |option: &str| {
        places.map(|(from, to)| format!("{option}={}={to}", from.display())).to_vec()
    };
    build
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", &release.builds)
        .env("SOURCE_DATE_EPOCH", &release.epoch)
        .env("CARGO_ENCODED_RUSTFLAGS", map("--remap-path-prefix").join("\u{1f}"))
        .env(flags, map("-ffile-prefix-map").join(" "));
    Ok(())
}
