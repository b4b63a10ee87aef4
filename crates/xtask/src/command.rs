//! Runs of other programs, and files, with errors that name them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A result whose error is a sentence.
pub(crate) type Outcome<T> = Result<T, String>;

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn run(command: &mut Command) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} failed: {status}")),
        Err(error) => Err(format!("{command:?} cannot be run: {error}")),
    }
}

/// Runs a command to its end. Returns its standard output.
///
/// # Errors
/// It cannot be started, fails, or writes no text.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

/// Checks that a program can be run, before a build takes minutes. `source` has it.
///
/// # Errors
/// It cannot be run.
pub(crate) fn require(program: &str, source: &str) -> Outcome<()> {
    let ran = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    ran.map(drop).map_err(|error| format!("{program} cannot be run: {error}. Install {source}"))
}

/// Writes a file, and creates its directory.
///
/// # Errors
/// The system refuses it.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Outcome<()> {
    let written = create_parent(path).and_then(|()| fs::write(path, content));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file, and creates its directory.
///
/// # Errors
/// The system refuses it.
pub(crate) fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let copied = create_parent(to).and_then(|()| fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Reads a text.
///
/// # Errors
/// The system refuses it, or it is no text.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// An empty directory, in place of what was there.
///
/// # Errors
/// The system refuses it.
pub(crate) fn empty_directory(path: &Path) -> Outcome<()> {
    let removed = if path.exists() { fs::remove_dir_all(path) } else { Ok(()) };
    removed
        .and_then(|()| fs::create_dir_all(path))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The names of the packages, wheels and checksums in a directory, sorted.
///
/// # Errors
/// The system refuses it.
pub(crate) fn packages_in(directory: &Path) -> Outcome<Vec<String>> {
    let entries = fs::read_dir(directory);
    let entries = entries.map_err(|error| format!("{}: {error}", directory.display()))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_package = |name: &String| name.starts_with("fontana") || name.starts_with("SHA256SUMS");
    let mut names: Vec<_> = names.filter(is_package).collect();
    names.sort();
    Ok(names)
}

/// A directory for packages or wheels, without those of an earlier run.
///
/// # Errors
/// The system refuses it.
pub(crate) fn output_directory(path: &Path) -> Outcome<()> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    packages_in(path)?.iter().try_for_each(|name| {
        let package = path.join(name);
        fs::remove_file(&package).map_err(|error| format!("{}: {error}", package.display()))
    })
}

fn create_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
