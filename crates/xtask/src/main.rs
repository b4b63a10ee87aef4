//! Tasks of this repository that are programs. `cargo xtask package` makes packages of the program
//! `fontana`, and `cargo xtask wheel` one of the library for Python.
//!
//! | module | makes |
//! |---|---|
//! | `package` | the files of a package, and packages of them |
//! | `command` | runs of other programs |
//! | `usage` | what it prints of itself |
//!
//! Programs that it runs: cargo, tar, gzip, sha256sum, minisign, dpkg-deb, rpmbuild, maturin, and a
//! linker for the target. It never fetches anything but through cargo.

mod command;
mod package;
mod usage;

use std::process::ExitCode;
use usage::USAGE;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["package", options @ ..] => package::run(options),
        ["wheel", options @ ..] => package::wheel::run(options),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
