//! Which commit the program is built from: a run of the lab says it, so that it can be repeated.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // What changes with another branch, and with another commit.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    // Without one, where the sources are not a repository, it is called unknown.
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=FONTANA_COMMIT={commit}");
    }
}
