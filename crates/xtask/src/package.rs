//! Packages of the program: the same files for all of them.

use crate::command::{
    self, Outcome, empty_directory, output, output_directory, packages_in, require, write,
};
use crate::usage::USAGE;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use target::Target;

mod archive;
mod build;
mod contents;
mod deb;
mod image;
mod licenses;
mod rpm;
mod target;
pub(crate) mod wheel;

/// What is the same for all packages of a run.
#[derive(Debug)]
struct Release {
    /// The workspace.
    root: PathBuf,
    /// Where cargo builds.
    builds: PathBuf,
    version: String,
    /// The time of all files, in seconds since 1970.
    epoch: String,
}

/// A target's files, and where packages of them go.
#[derive(Debug)]
struct Package<'a> {
    release: &'a Release,
    target: Target,
    /// Files below `usr`, as they are installed.
    files: PathBuf,
    /// For what a format needs beside them.
    work: PathBuf,
    /// For packages.
    out: &'a Path,
}

/// The crate of the program.
const PROGRAM: &str = "fontana-cli";

/// The summary of the program, in packages.
const SUMMARY: &str = "bulk data to any number of hosts at once, by multicast";
const DESCRIPTION: &str = "\
Fontana sends files, directories, streams and disk images from one host to any number of receivers,
by multicast, broadcast or one-way links. Receivers join at any time, lose packets, and have the
exact files after about as many bytes as they are long.";

/// Makes packages, as the options say.
///
/// # Errors
/// Options that do not exist, or a program that fails.
pub(crate) fn run(options: &[&str]) -> Outcome<()> {
    let (mut targets, mut out, mut makes_rpm, mut key) = (Vec::new(), None, true, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--no-rpm" => makes_rpm = false,
            "--target" => targets.push(Target::named(options.next().ok_or(USAGE)?)?),
            "--out" => out = Some(PathBuf::from(options.next().ok_or(USAGE)?)),
            "--sign" => key = Some(Path::new(options.next().ok_or(USAGE)?)),
            _ => return Err(format!("unknown option {option}\n\n{USAGE}")),
        }
    }
    if targets.is_empty() {
        targets.push(Target::X86_64);
    }
    // It writes the manual pages and completions of all targets.
    let host = Target::of_this_host()?;
    for target in targets.iter().chain([&host]) {
        require(target.compiler(), target.compiler_source())?;
    }
    if makes_rpm {
        require("rpmbuild", "Debian's rpm, or use --no-rpm")?;
    }
    if key.is_some() {
        require("minisign", "Debian's minisign")?;
    }
    let release = Release::read()?;
    // `target/package` is cargo's own.
    let out = out.unwrap_or_else(|| release.builds.join("packages"));
    output_directory(&out)?;
    let writer = build::program(&release, host)?;
    for target in targets {
        let program =
            if target == host { writer.clone() } else { build::program(&release, target)? };
        let work = release.builds.join("packaging").join(target.triple());
        empty_directory(&work)?;
        let files = work.join("root");
        contents::stage(&release, target, &program, &writer, &files)?;
        let package = Package { release: &release, target, files, work, out: &out };
        archive::make(&package)?;
        image::make(&package)?;
        deb::make(&package)?;
        if makes_rpm {
            rpm::make(&package)?;
        }
    }
    checksums(&out)?;
    key.map_or(Ok(()), |key| sign(&release, &out, key))
}

impl Release {
    fn read() -> Outcome<Self> {
        let metadata = output(Command::new(cargo()).args([
            "metadata",
            "--locked",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("cargo metadata");
        let packages = metadata["packages"].as_array().ok_or("cargo metadata")?;
        let program = packages.iter().find(|package| package["name"] == PROGRAM);
        let root = PathBuf::from(text(&metadata["workspace_root"])?);
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => output(Command::new("git").arg("-C").arg(&root).args([
                "log",
                "-1",
                "--format=%ct",
            ]))?
            .trim()
            .to_owned(),
        };
        Ok(Self {
            root,
            builds: PathBuf::from(text(&metadata["target_directory"])?),
            version: text(&program.ok_or("the workspace has no program")?["version"])?,
            epoch,
        })
    }
}

impl Package<'_> {
    /// The path of a package: its name has the version and the target.
    fn path(&self, ending: &str) -> PathBuf {
        let (version, target) = (&self.release.version, self.target.name());
        self.out.join(format!("fontana-{version}-{target}{ending}"))
    }

    /// A program that sees the time of the release.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", &self.release.epoch).env("LC_ALL", "C").env("TZ", "UTC");
        command
    }
}

/// The cargo that runs this program.
fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The SHA-256 hash of a file, in hexadecimal digits.
fn sha256(path: &Path) -> Outcome<String> {
    let line = output(Command::new("sha256sum").arg("--").arg(path))?;
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}

/// Writes `SHA256SUMS`, which `sha256sum --check` reads.
fn checksums(out: &Path) -> Outcome<()> {
    let names = packages_in(out)?;
    let sums = output(Command::new("sha256sum").current_dir(out).arg("--").args(&names))?;
    print!("{sums}");
    write(&out.join("SHA256SUMS"), sums)
}

/// Writes `SHA256SUMS.minisig`, which `minisign -V` reads: the same bytes each time.
fn sign(release: &Release, out: &Path, key: &Path) -> Outcome<()> {
    // Its own comment would have the time of the signature.
    let comment = format!("fontana {}", release.version);
    command::run(
        Command::new("minisign")
            .args(["-S", "-t", &comment, "-s"])
            .arg(key)
            .arg("-m")
            .arg(out.join("SHA256SUMS")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn packages_of_an_earlier_run_are_deleted_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["fontana_0.0.1_amd64.deb", "SHA256SUMS", "SHA256SUMS.minisig", "thesis.txt"] {
            fs::write(directory.path().join(name), name).unwrap();
        }
        output_directory(directory.path()).unwrap();
        assert!(packages_in(directory.path()).unwrap().is_empty());
        assert!(directory.path().join("thesis.txt").exists());
    }

    #[test]
    fn a_signature_verifies_and_is_the_same_each_time() {
        if Command::new("minisign").arg("-v").output().is_err() {
            return fontana_testing::skip("minisign is not installed");
        }
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let release = Release {
            root: PathBuf::new(),
            builds: PathBuf::new(),
            version: "1.2.3".to_owned(),
            epoch: "0".to_owned(),
        };
        let mut make = Command::new("minisign");
        output(make.args(["-G", "-W", "-s"]).arg(at("secret")).arg("-p").arg(at("public")))
            .unwrap();
        fs::write(at("SHA256SUMS"), "sums").unwrap();
        let signature = || {
            sign(&release, directory.path(), &at("secret")).unwrap();
            fs::read_to_string(at("SHA256SUMS.minisig")).unwrap()
        };
        let (first, second) = (signature(), signature());
        assert_eq!(first, second);
        assert!(first.contains("trusted comment: fontana 1.2.3\n"), "{first}");
        let verify = || {
            let mut verify = Command::new("minisign");
            verify.arg("-V").arg("-p").arg(at("public")).arg("-m").arg(at("SHA256SUMS"));
            output(&mut verify)
        };
        verify().unwrap();
        fs::write(at("SHA256SUMS"), "other sums").unwrap();
        assert!(verify().is_err());
        assert!(sign(&release, directory.path(), &at("missing")).is_err());
    }
}
