//! The wheel for Python: the library, and the program for `pip install`.

use super::target::Target;
use super::{Release, build, licenses};
use crate::command::{self, Outcome, copy, empty_directory, write};
use crate::usage::USAGE;
use std::path::PathBuf;
use std::process::Command;

/// The oldest C library that the wheel needs: of 2012 (PEP 599).
const COMPATIBILITY: &str = "manylinux2014";

/// Makes a wheel for this host's processor, as the options say.
///
/// # Errors
/// Options that do not exist, or a program that fails.
pub(crate) fn run(options: &[&str]) -> Outcome<()> {
    let release = Release::read()?;
    let out = match options {
        [] => release.builds.join("wheel"),
        ["--out", out] => PathBuf::from(out),
        _ => return Err(USAGE.to_owned()),
    };
    let target = Target::of_this_host()?;
    let program = build::program(&release, target)?;
    let python = release.root.join("crates/python");
    let data = python.join("fontana.data");
    let (scripts, doc) = (data.join("scripts"), data.join("data/share/doc/fontana"));
    copy(&program, &scripts.join("fontana"))?;
    let licenses = licenses::of_dependencies(&release, target)?;
    write(&doc.join("THIRD-PARTY-LICENSES.txt"), licenses)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&release.root.join(name), &doc.join(name))?;
    }
    empty_directory(&out)?;
    let mut maturin = Command::new("maturin");
    maturin
        .args(["build", "--release", "--locked", "--zig", "--compatibility", COMPATIBILITY])
        .arg("--manifest-path")
        .arg(python.join("Cargo.toml"))
        .arg("--out")
        .arg(&out);
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    build::hide_paths(&mut maturin, &release, &triple)?;
    let made = command::run(&mut maturin);
    // They would be in every wheel that is built from here.
    for directory in [scripts, doc] {
        std::fs::remove_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    made
}
