//! The licenses of what is linked into the program.

use super::target::Target;
use super::{Release, cargo};
use crate::command::{Outcome, output, read};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the beginning of the text says.
const PREFACE: &str = "\
This package contains these libraries. Each is followed by its license, as an SPDX expression.
Below the list are the texts that come with them. The text of Apache-2.0, for those that come
without one, is in LICENSE-APACHE.
";

/// What is linked beside crates.
const SYSTEM: &str = "\
the standard library of Rust  MIT OR Apache-2.0: The Rust Project contributors
musl libc  MIT: Copyright (c) 2005-2020 Rich Felker, et al.
";

const MUSL: &str = "\
Permission is hereby granted, free of charge, to any person obtaining
a copy of this software and associated documentation files (the
\"Software\"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to
permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be
included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

/// The licenses of the crates that are linked into `members` of the workspace, and their texts.
///
/// # Errors
/// cargo fails, or a crate has neither a license nor a text.
pub(super) fn of_dependencies(
    release: &Release,
    target: Target,
    members: &[&str],
) -> Outcome<String> {
    let crates = crates(release, target, members)?;
    let places = places(release, target)?;
    let mut text = format!("{PREFACE}\n{SYSTEM}");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    texts.insert(MUSL.to_owned(), vec!["musl libc".to_owned()]);
    for (name, license) in &crates {
        text.push_str(&format!("{name}  {license}\n"));
        let place = places.get(name).ok_or_else(|| format!("cargo metadata has no {name}"))?;
        let files = files_of(place)?;
        if license.is_empty() && files.is_empty() {
            return Err(format!("{name} has no license"));
        }
        for file in files {
            texts.entry(read(&file)?).or_default().push(name.clone());
        }
    }
    for (license, mut names) in texts {
        names.dedup();
        let line = "-".repeat(72);
        text.push_str(&format!("\n{line}\n{}\n\n{}\n", names.join(", "), license.trim_end()));
    }
    Ok(text)
}

/// The crates of others in `members`, as name and version, with their licenses.
fn crates(
    release: &Release,
    target: Target,
    members: &[&str],
) -> Outcome<BTreeSet<(String, String)>> {
    let tree = output(
        Command::new(cargo())
            .current_dir(&release.root)
            .args(["tree", "--locked", "-e", "normal", "--prefix", "none"])
            .args(members.iter().flat_map(|member| ["-p", member]))
            .args(["--no-dedupe", "-f", "{p}\t{l}", "--target", target.triple()]),
    )?;
    let others = tree.lines().filter_map(|line| {
        let (package, license) = line.split_once('\t')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.trim_start_matches('v'));
        let is_ours = name == "fontana" || name.starts_with("fontana-");
        (!is_ours).then(|| (format!("{name} {version}"), license.to_owned()))
    });
    Ok(others.collect())
}

/// The directory of each crate's source, by name and version.
fn places(release: &Release, target: Target) -> Outcome<BTreeMap<String, PathBuf>> {
    let metadata = output(
        Command::new(cargo())
            .current_dir(&release.root)
            .args(["metadata", "--locked", "--format-version", "1", "--filter-platform"])
            .arg(target.triple()),
    )?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let place = |package: &Value| {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let manifest = PathBuf::from(text("manifest_path"));
        let directory = manifest.parent().map(Path::to_owned).unwrap_or_default();
        (format!("{} {}", text("name"), text("version")), directory)
    };
    Ok(packages.iter().map(place).collect())
}

/// The files of a crate that are texts of licenses, sorted.
fn files_of(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let is_license = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let beginnings = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        path.is_file() && beginnings.iter().any(|beginning| name.starts_with(beginning))
    };
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(is_license).collect();
    files.sort();
    Ok(files)
}
