//! Downloads from web servers of different rates, of Fontana and of aria2, in alternating runs.
//!
//! The servers are nginx on hosts of this computer, behind token buckets. How fast each is, `curl`
//! measures through the same bucket before the first run. A run is compared with the time that all
//! servers together take at these rates, as long as they serve.

mod kinds;
mod network;
mod plan;
mod row;
mod scenario;

pub(crate) use plan::MirrorsPlan;

use crate::net::files::{are_equal, write_noise};
use crate::net::process::Process;
use crate::net::{built, missing};
use network::{Server, WebNetwork};
use plan::{Client, FILE};
use row::{DownloadRow, HEADING};
use scenario::Scenario;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const USAGE: &str = "\
usage: fontana-bench mirrors [--scenario NAME,..] [--repetitions N] [--size MIB] [--json]
                             [--fontana PATH] [--directory DIR] [--kinds]

  mirrors downloads from four web servers of different rates, as root, beside aria2:
          all, killed, silent, damaged, wrong
          --kinds: from 1 to 5 equal ones, with files, shelves, fresh symbols, and all of these";

/// Rates of the servers' links in Mbit/s; what a download gets is less.
const RATES: [u32; 4] = [40, 20, 10, 5];

/// Programs of the system, with their packages.
const REQUIRED: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("nginx", "nginx-light"),
    ("curl", "curl"),
];
const ARIA2: &[(&str, &str)] = &[("aria2c", "aria2")];

/// A run ends after this many times the ideal.
const PATIENCE: f64 = 4.0;

/// Runs all scenarios, and prints each run as soon as it has ended.
///
/// # Errors
/// What is missing, or failed.
pub(crate) fn run(plan: &MirrorsPlan, json: bool) -> Result<(), String> {
    let lacking = missing(REQUIRED);
    if !lacking.is_empty() {
        return Err(format!("the bench needs: apt-get install {}", lacking.join(" ")));
    }
    let program = built(plan.fontana.clone(), "-p fontana-cli --bins", "fontana")?;
    let directory = TempDir::with_prefix_in("fontana-bench-", &plan.directory)
        .map_err(|error| format!("{}: {error}", plan.directory.display()))?;
    if plan.kinds {
        return kinds::run(plan, &program, directory.path(), json);
    }
    let mut clients = vec![Client::Fontana];
    match missing(ARIA2).as_slice() {
        [] => clients.push(Client::Aria2),
        lacking => eprintln!("without aria2: apt-get install {}", lacking.join(" ")),
    }
    let bench = Bench::prepare(directory.path(), program, plan.size)?;
    if !json {
        let rates: Vec<_> = bench.rates.iter().map(|rate| format!("{:.1}", rate / 1e6)).collect();
        println!("curl alone: {} Mbit/s\n{HEADING}", rates.join(", "));
    }
    for &scenario in &plan.scenarios {
        for _ in 0..plan.repetitions {
            for &client in &clients {
                let row = bench.download(scenario, client)?;
                println!("{}", if json { row.json() } else { row.line() });
            }
        }
    }
    Ok(())
}

/// The servers, and what they serve.
struct Bench {
    directory: PathBuf,
    fontana: PathBuf,
    network: WebNetwork,
    size: u64,
    ticket: String,
    /// Bits per second that each server delivers alone.
    rates: Vec<f64>,
}

impl Bench {
    fn prepare(directory: &Path, fontana: PathBuf, size: u64) -> Result<Self, String> {
        let content = directory.join(FILE);
        write_noise(&content, size).map_err(|error| format!("{}: {error}", content.display()))?;
        let network = WebNetwork::new(&RATES)?;
        let ticket = publish(&fontana, &content, &network, &[])?;
        for (number, altered) in
            [(0, None), (1, Some(Scenario::Damaged)), (2, Some(Scenario::Wrong))]
        {
            let root = root(directory, number);
            fs::create_dir(&root).map_err(|error| error.to_string())?;
            copy_manifest(directory, &root)?;
            let altered = altered.map_or(Ok(()), |scenario| {
                scenario::write_altered(scenario, &content, &root.join(FILE))
            });
            altered.map_err(|error| error.to_string())?;
        }
        fs::hard_link(&content, root(directory, 0).join(FILE))
            .map_err(|error| error.to_string())?;
        let bench = Self {
            directory: directory.to_owned(),
            fontana,
            network,
            size,
            ticket,
            rates: Vec::new(),
        };
        let servers = bench.servers(Scenario::All)?;
        let rates = servers.iter().zip(RATES).map(|(server, rate)| {
            // Three seconds of its link.
            let bytes = (u64::from(rate) * 3_000_000 / 8).min(size);
            bench.network.rate_of(server, bytes)
        });
        let rates = rates.collect::<Result<_, _>>()?;
        drop(servers);
        Ok(Self { rates, ..bench })
    }

    /// Starts the servers of a scenario.
    fn servers(&self, scenario: Scenario) -> Result<Vec<Server>, String> {
        let altered = match scenario {
            Scenario::Damaged => 1,
            Scenario::Wrong => 2,
            Scenario::All | Scenario::Killed | Scenario::Silent => 0,
        };
        let start = |number: usize| {
            let set = if number == scenario::ALTERED { altered } else { 0 };
            self.network.serve(number, &root(&self.directory, set), FILE, &self.directory)
        };
        (0..RATES.len()).map(start).collect()
    }

    fn download(&self, scenario: Scenario, client: Client) -> Result<DownloadRow, String> {
        let mut servers = self.servers(scenario)?;
        let into = TempDir::new_in(&self.directory).map_err(|error| error.to_string())?;
        let log = self.directory.join("log");
        let _ = fs::remove_file(&log);
        let command = match client {
            Client::Fontana => {
                let mut command = Command::new(&self.fontana);
                command.args(["recv", "--json", &self.ticket, "-o"]).arg(into.path());
                command
            }
            Client::Aria2 => {
                let mut command = Command::new("aria2c");
                command.args(["--quiet", "-s4", "-k1M", "--file-allocation=none", "-d"]);
                command.arg(into.path()).args(self.network.urls().map(|url| url + FILE));
                command
            }
        };
        let bits = self.size as f64 * 8.0;
        let ideal = scenario.ideal(bits, &self.rates);
        let halfway = Duration::from_secs_f64(bits / self.rates.iter().sum::<f64>() / 2.0);
        let begun = Instant::now();
        let mut process = Process::start(self.network.client(), command, &log)?;
        let mut is_disturbed = false;
        while !process.has_ended() && begun.elapsed().as_secs_f64() < PATIENCE * ideal {
            if !is_disturbed && begun.elapsed() >= halfway {
                is_disturbed = true;
                match scenario {
                    Scenario::Killed => drop(servers.remove(scenario::FASTEST)),
                    Scenario::Silent => self.network.set_up(scenario::FASTEST, false)?,
                    Scenario::All | Scenario::Damaged | Scenario::Wrong => {}
                }
            }
            thread::sleep(Duration::from_millis(2));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let has_ended = process.has_succeeded();
        drop(process);
        drop(servers);
        if scenario == Scenario::Silent {
            self.network.set_up(scenario::FASTEST, true)?;
        }
        let file = into.path().join(FILE);
        let is_equal = file.is_file()
            && are_equal(&self.directory.join(FILE), &file).map_err(|error| error.to_string())?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        Ok(DownloadRow::new(
            scenario, client, has_ended, is_equal, seconds, ideal, &said, self.size,
        ))
    }
}

/// The content of a set of servers: 0 is right, 1 damaged, 2 wrong.
fn root(directory: &Path, set: usize) -> PathBuf {
    directory.join(format!("set{set}"))
}

/// Writes the manifest beside the content. Returns the ticket.
fn publish(
    fontana: &Path,
    content: &Path,
    network: &WebNetwork,
    options: &[&str],
) -> Result<String, String> {
    let mut command = Command::new(fontana);
    command
        .arg("publish")
        .args(options)
        .args(network.urls().flat_map(|url| ["--web".to_owned(), url]));
    let output = command.arg(content).output().map_err(|error| error.to_string())?;
    let ticket = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match ticket.starts_with("fontana://") {
        true => Ok(ticket),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The file with the manifest in a directory.
fn manifest_of(directory: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let manifest = paths.find(|path| path.extension().is_some_and(|ending| ending == "fontana"));
    manifest.ok_or_else(|| format!("no manifest in {}", directory.display()))
}

fn copy_manifest(from: &Path, to: &Path) -> Result<(), String> {
    let manifest = manifest_of(from)?;
    let name = manifest.file_name().unwrap_or_default();
    fs::copy(&manifest, to.join(name)).map(drop).map_err(|error| error.to_string())
}
