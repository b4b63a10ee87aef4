//! Tests of the repository's own documents: links lead to files, and prose follows the style rules.

mod links;
mod papers;
mod prose;

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the workspace.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Paths below the root of all files with this extension, sorted: those of the root directory
/// itself, and everything in `docs`, `crates` and `.github`.
pub(super) fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            found.push(path);
        } else if ["docs", "crates", ".github"].iter().any(|name| path.ends_with(name)) {
            walk(&path, &mut found);
        }
    }
    found.retain(|path| path.extension().is_some_and(|found| found == extension));
    let mut found: Vec<_> =
        found.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect();
    found.sort();
    found
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The lines of a Markdown text outside of fenced code, with their numbers, from 1.
fn lines_outside_fences<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let mut fenced = false;
    lines.filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}
