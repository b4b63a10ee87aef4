//! One to five equal mirrors of each kind, as in the figures of the paper on mirror sites: how much
//! faster several are than one, and how many bytes arrive twice.

use super::network::{Server, WebNetwork};
use super::plan::{FILE, MirrorsPlan};
use super::{PATIENCE, copy_manifest, manifest_of, publish};
use crate::net::files::{are_equal, write_noise};
use crate::net::process::Process;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Mirrors of a kind: 1 to this many.
const MOST: usize = 5;
/// Rate of each mirror's link in Mbit/s.
const RATE: u32 = 20;

/// What a mirror has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The files, served by nginx.
    Files,
    /// A shelf with 1.05 symbols for each source symbol, served by nginx.
    Shelf,
    /// Symbols that `fontana serve` computes.
    Fresh,
    /// One after the other of these.
    Mixed,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Files, Self::Shelf, Self::Fresh, Self::Mixed];

    fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Shelf => "shelves",
            Self::Fresh => "fresh",
            Self::Mixed => "mixed",
        }
    }

    /// What the mirror with this number has.
    fn of_mirror(self, number: usize) -> Self {
        match self {
            Self::Mixed => [Self::Files, Self::Fresh, Self::Shelf][number % 3],
            kind => kind,
        }
    }
}

pub(super) const HEADING: &str = "\
kind    mirrors  seconds  ideal  ratio  speed-up  received  file";

/// Runs all kinds, and prints each download as soon as it has ended.
///
/// # Errors
/// What is missing, or failed.
pub(super) fn run(
    plan: &MirrorsPlan,
    fontana: &Path,
    directory: &Path,
    is_json: bool,
) -> Result<(), String> {
    let bench = Bench::prepare(fontana, directory, plan.size)?;
    if !is_json {
        println!("curl alone: {:.1} Mbit/s\n{HEADING}", bench.rate / 1e6);
    }
    for kind in Kind::ALL {
        for _ in 0..plan.repetitions {
            let mut alone = None;
            for mirrors in 1..=MOST {
                let row = bench.download(kind, mirrors, &mut alone)?;
                println!("{}", if is_json { row.to_string() } else { line(&row) });
            }
        }
    }
    Ok(())
}

fn line(row: &Value) -> String {
    let number = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
    format!(
        "{:7} {:7} {:8.2} {:6.2} {:6.3} {:9.2} {:9.4}  {}",
        row["kind"].as_str().unwrap_or_default(),
        row["mirrors"],
        number("seconds"),
        number("ideal_seconds"),
        number("ratio"),
        number("speedup"),
        number("received"),
        row["file"].as_str().unwrap_or_default(),
    )
}

/// The hosts, and what their servers have.
struct Bench {
    directory: PathBuf,
    fontana: PathBuf,
    network: WebNetwork,
    size: u64,
    manifest: PathBuf,
    /// Bits per second that each server delivers alone.
    rate: f64,
}

impl Bench {
    fn prepare(fontana: &Path, directory: &Path, size: u64) -> Result<Self, String> {
        let content = directory.join(FILE);
        write_noise(&content, size).map_err(|error| format!("{}: {error}", content.display()))?;
        let network = WebNetwork::new(&[RATE; MOST])?;
        publish(fontana, &content, &network, &[])?;
        let manifest = manifest_of(directory)?;
        let files = directory.join("files");
        fs::create_dir(&files).map_err(|error| error.to_string())?;
        copy_manifest(directory, &files)?;
        fs::hard_link(&content, files.join(FILE)).map_err(|error| error.to_string())?;
        for number in 0..MOST {
            let shelf = shelf(directory, number).display().to_string();
            let number = (number + 1).to_string();
            publish(fontana, &content, &network, &["--shelf", &shelf, "--mirror", &number])?;
        }
        let bench = Self {
            directory: directory.to_owned(),
            fontana: fontana.to_owned(),
            network,
            size,
            manifest,
            rate: f64::NAN,
        };
        let server = bench.serve(Kind::Files, 0)?;
        // Three seconds of its link.
        let rate = bench.network.rate_of(&server, size.min(u64::from(RATE) * 3_000_000 / 8))?;
        Ok(Self { rate, ..bench })
    }

    fn serve(&self, kind: Kind, number: usize) -> Result<Server, String> {
        let name = self.manifest.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match kind.of_mirror(number) {
            Kind::Shelf => {
                let root = shelf(&self.directory, number);
                self.network.serve(number, &root, name, &self.directory)
            }
            Kind::Fresh => {
                let mut command = Command::new(&self.fontana);
                command.arg("serve").arg(self.directory.join(FILE));
                command.arg("--manifest").arg(&self.manifest);
                self.network.serve_fresh(number, command)
            }
            Kind::Files | Kind::Mixed => {
                let root = self.directory.join("files");
                self.network.serve(number, &root, FILE, &self.directory)
            }
        }
    }

    /// `alone`: the seconds that one mirror took.
    fn download(
        &self,
        kind: Kind,
        mirrors: usize,
        alone: &mut Option<f64>,
    ) -> Result<Value, String> {
        let servers = (0..mirrors).map(|number| self.serve(kind, number));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let into = TempDir::new_in(&self.directory).map_err(|error| error.to_string())?;
        let log = self.directory.join("log");
        let _ = fs::remove_file(&log);
        let hash = self.manifest.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let web: String = servers.iter().map(|server| format!("&web={}", server.url())).collect();
        let mut command = Command::new(&self.fontana);
        command.args(["recv", "--json", &format!("fontana://web/?manifest={hash}{web}"), "-o"]);
        command.arg(into.path());
        let ideal = self.size as f64 * 8.0 / self.rate / mirrors as f64;
        let begun = Instant::now();
        let mut process = Process::start(self.network.client(), command, &log)?;
        while !process.has_ended() && begun.elapsed().as_secs_f64() < PATIENCE * ideal {
            thread::sleep(Duration::from_millis(2));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let has_succeeded = process.has_succeeded();
        drop(process);
        let is_equal = has_succeeded
            && are_equal(&self.directory.join(FILE), &into.path().join(FILE))
                .map_err(|error| error.to_string())?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let reports: Vec<_> = events.filter(|event| event["event"] == "mirror").collect();
        let sum = |field: &str| {
            reports.iter().filter_map(|report| report[field].as_u64()).sum::<u64>() as f64
        };
        let bytes = sum("bytes");
        let one = *alone.get_or_insert(seconds);
        Ok(json!({
            "kind": kind.name(),
            "mirrors": mirrors,
            "seconds": seconds,
            "ideal_seconds": ideal,
            "ratio": seconds / ideal,
            "speedup": one / seconds,
            "received": bytes / (bytes - sum("useless_bytes")),
            "file": match (has_succeeded, is_equal) {
                (true, true) => "equal",
                (true, false) => "other",
                (false, _) => "no file",
            },
        }))
    }
}

fn shelf(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("shelf{number}"))
}
