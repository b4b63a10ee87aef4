//! The wheel for Python: the library, and the program for `pip install`.

use super::target::Target;
use super::{PROGRAM, Release, build, licenses};
use crate::command::{self, Outcome, copy, output_directory, require, write};
use crate::usage::USAGE;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A C library, and the oldest version of it that a wheel needs.
struct Library {
    /// Its name in Rust's targets.
    name: &'static str,
    /// Its tag in the name of the wheel.
    compatibility: &'static str,
}

/// Those of Python programs on Linux: glibc of 2012 (PEP 599), and musl of Alpine 3.13 (PEP 656).
const LIBRARIES: [Library; 2] = [
    Library { name: "gnu", compatibility: "manylinux2014" },
    Library { name: "musl", compatibility: "musllinux_1_2" },
];

/// Makes a wheel for each C library and this host's processor, as the options say.
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
    require(target.compiler(), target.compiler_source())?;
    require("maturin", "maturin and ziglang, by pip")?;
    let program = build::program(&release, target)?;
    let python = release.root.join("crates/python");
    let data = python.join("fontana.data");
    let (scripts, doc) = (data.join("scripts"), data.join("data/share/doc/fontana"));
    copy(&program, &scripts.join("fontana"))?;
    let licenses = licenses::of_dependencies(&release, target, &[PROGRAM, "fontana-python"])?;
    write(&doc.join("THIRD-PARTY-LICENSES.txt"), licenses)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&release.root.join(name), &doc.join(name))?;
    }
    output_directory(&out)?;
    let made = LIBRARIES.iter().try_for_each(|library| make(&release, library, &python, &out));
    // They would be in every wheel that is built from here.
    for directory in [scripts, doc] {
        std::fs::remove_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    made
}

fn make(release: &Release, library: &Library, python: &Path, out: &Path) -> Outcome<()> {
    let triple = format!("{}-unknown-linux-{}", std::env::consts::ARCH, library.name);
    let mut maturin = Command::new("maturin");
    maturin
        .args(["build", "--release", "--locked", "--zig", "--target", &triple])
        .args(["--compatibility", library.compatibility, "--manifest-path"])
        .arg(python.join("Cargo.toml"))
        .arg("--out")
        .arg(out);
    build::hide_paths(&mut maturin, release, &triple)?;
    command::run(&mut maturin)
}
