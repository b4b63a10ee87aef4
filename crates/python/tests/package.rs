//! The package as it is installed: its files in Python, and the module that cargo has built beside
//! this program. `.ci/python` tests a wheel.
#![allow(missing_docs, clippy::unwrap_used)]

use fontana_testing::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_package_passes_its_tests() {
    let can_test = Command::new("python3").args(["-c", "import pytest"]).output();
    if !can_test.is_ok_and(|output| output.status.success()) {
        return skip("there is no python3 with pytest");
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = tempfile::tempdir().unwrap();
    let package = installed.path().join("fontana");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(here.join("python/fontana")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let program = std::env::current_exe().unwrap();
    let module = program.parent().unwrap().join("lib_fontana.so");
    fs::copy(module, package.join("_fontana.abi3.so")).unwrap();
    let output = Command::new("python3")
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
        .arg(here.join("tests"))
        .env("PYTHONPATH", installed.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FONTANA_WHEEL", "without the program")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
