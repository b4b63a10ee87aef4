//! The library as a program in C sees it.
#![allow(missing_docs, clippy::unwrap_used)]

use fontana_testing::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo has put the libraries, beside this program.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().to_owned()
}

/// Compiles the example with warnings as errors, and links it with the library of this kind.
fn compile(to: &Path, link: &[&str]) {
    let output = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(crate_directory().join("include"))
        .arg(crate_directory().join("examples/transfer.c"))
        .arg("-o")
        .arg(to)
        .arg("-L")
        .arg(libraries())
        .args(link)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_in_c_sends_and_receives() {
    let directory = tempfile::tempdir().unwrap();
    let (program, file) = (directory.path().join("transfer"), directory.path().join("file"));
    let received = directory.path().join("received");
    compile(&program, &["-lfontana_c"]);
    fs::write(&file, vec![7; 300_000]).unwrap();
    let output = Command::new(&program)
        .args([&file, &received])
        .env("LD_LIBRARY_PATH", libraries())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(received.join("file")).unwrap(), vec![7; 300_000]);
    for line in [
        "into a directory: 0 bytes in memory, events: yes",
        "into memory: 300000 bytes in memory, events: yes",
        "first byte: 7",
        "the sender: interrupted",
        "an invalid ticket: 2 Argument: ticket: ",
        "a missing file: 6 SourceMissing",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}

#[test]
fn the_static_library_links() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("transfer");
    compile(&program, &["-l:libfontana_c.a", "-lpthread", "-ldl", "-lm"]);
    let status = Command::new(&program).status().unwrap();
    assert_eq!(status.code(), Some(2), "without arguments it explains its usage");
}

#[test]
fn the_header_is_what_cbindgen_makes() {
    let output = Command::new("cbindgen")
        .arg("--config")
        .arg(crate_directory().join("cbindgen.toml"))
        .arg(crate_directory())
        .output();
    let Ok(output) = output else {
        return skip("cbindgen is not installed: cargo install --locked cbindgen");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let header = fs::read_to_string(crate_directory().join("include/fontana.h")).unwrap();
    let made = String::from_utf8(output.stdout).unwrap();
    assert!(header == made, "cbindgen makes another include/fontana.h:\n{made}");
}
