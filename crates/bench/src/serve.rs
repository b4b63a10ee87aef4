//! What `fontana serve` costs: for many clients beside one, and for a receiver that lacks a few
//! symbols.
//!
//! The clients are `curl`, all at once, each for the symbols of all blocks. The receiver takes a
//! session that is sent once on the loopback interface, loses 5 % of its packets, and then draws
//! what it lacks.

use crate::net::files::write_noise;
use crate::net::{built, missing};
use crate::numbers::within;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const USAGE: &str = "\
usage: fontana-bench serve [--clients N] [--size MIB] [--json] [--fontana PATH] [--directory DIR]

  serve   what a server of fresh symbols costs for N clients beside one, and what a receiver draws
          that lacks 5 % of its symbols";

/// Source symbols of a block: those of the tail.
const BLOCK_SYMBOLS: u64 = 10_000;
/// Bytes of a symbol of `fontana serve`.
const SYMBOL_SIZE: u64 = 1400;
/// Bytes before a symbol.
const ID_SIZE: u64 = 4;

/// What is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct ServePlan {
    clients: u64,
    /// Bytes of the file.
    size: u64,
    /// Fontana's program; `None`: that of this workspace.
    fontana: Option<PathBuf>,
    /// Where the files are, in a directory of their own.
    directory: PathBuf,
}

impl ServePlan {
    /// Parses what follows `serve`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan =
            Self { clients: 20, size: 64 << 20, fontana: None, directory: "/dev/shm".into() };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--clients" => plan.clients = within(&value()?, 1..=64)?,
                "--size" => plan.size = within(&value()?, 1..=2_048)? << 20,
                "--fontana" => plan.fontana = Some(value()?.into()),
                "--directory" => plan.directory = value()?.into(),
                other => return Err(format!("what is {other}?")),
            }
        }
        Ok(plan)
    }
}

/// Runs the server for one client, for all, and for a tail.
///
/// # Errors
/// What is missing, or failed.
pub(crate) fn run(plan: &ServePlan, is_json: bool) -> Result<(), String> {
    let lacking = missing(&[("curl", "curl")]);
    if !lacking.is_empty() {
        return Err(format!("the bench needs: apt-get install {}", lacking.join(" ")));
    }
    let fontana = built(plan.fontana.clone(), "-p fontana-cli --bins", "fontana")?;
    let directory = TempDir::with_prefix_in("fontana-bench-", &plan.directory)
        .map_err(|error| format!("{}: {error}", plan.directory.display()))?;
    let bench = Bench { fontana, directory: directory.path().to_owned() };
    let file = directory.path().join("content");
    write_noise(&file, plan.size).map_err(|error| error.to_string())?;
    let show = |row: &Value| match is_json {
        true => println!("{row}"),
        false => println!("{}", text(row)),
    };
    let one = bench.share(&file, plan.size, 1)?;
    show(&one);
    let all = bench.share(&file, plan.size, plan.clients)?;
    show(&all);
    let ratio = |field: &str| {
        let of = |row: &Value| row[field].as_f64().unwrap_or(f64::NAN);
        of(&all) / of(&one)
    };
    show(&json!({
        "clients": plan.clients,
        "encoded_ratio": ratio("encoded_symbols"),
        "cpu_ratio": ratio("cpu_seconds"),
    }));
    show(&bench.tail(&file)?);
    Ok(())
}

fn text(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

struct Bench {
    fontana: PathBuf,
    directory: PathBuf,
}

impl Bench {
    /// The symbols of all blocks for clients that come at once.
    fn share(&self, file: &Path, size: u64, clients: u64) -> Result<Value, String> {
        let blocks = size.div_ceil(SYMBOL_SIZE * BLOCK_SYMBOLS);
        // No block is longer.
        let count = size.div_ceil(SYMBOL_SIZE).div_ceil(blocks);
        let block_size = (count * SYMBOL_SIZE).to_string();
        let served = self.serve(file, &["--block-size", &block_size])?;
        let list: Vec<_> = (0..blocks).map(|sbn| format!("{sbn}:{count}")).collect();
        let web = format!("http://{}/", served.listen);
        let url = format!("{web}f/{}/1?start=0&blocks={}", served.manifest, list.join(","));
        let (before, begun) = (served.processor_time()?, Instant::now());
        let curl = || {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--fail", "--output", "/dev/null", &url]).spawn()
        };
        let started: Result<Vec<Child>, _> = (0..clients).map(|_| curl()).collect();
        for mut child in started.map_err(|error| error.to_string())? {
            if !child.wait().is_ok_and(|status| status.success()) {
                return Err("a client has failed".into());
            }
        }
        let (seconds, after) = (begun.elapsed().as_secs_f64(), served.processor_time()?);
        let stopped = served.stop()?;
        Ok(json!({
            "clients": clients,
            "encoded_symbols": stopped["encoded_symbols"],
            "sent_symbols": stopped["sent_symbols"],
            "cpu_seconds": (after - before).as_secs_f64(),
            "seconds": seconds,
        }))
    }

    /// What a receiver draws that lacks 5 % of the symbols.
    fn tail(&self, file: &Path) -> Result<Value, String> {
        let manifest = self.directory.join("manifest");
        let group = format!("239.255.78.{}:7788", std::process::id() % 250 + 1);
        let mut send = Command::new(&self.fontana);
        send.args(["send", "-i", "lo", "--rate", "200M", "--push", "0", "--json", "--to", &group]);
        let block_symbols = BLOCK_SYMBOLS.to_string();
        send.args(["--block-symbols", &block_symbols, "--manifest"]).arg(&manifest).arg(file);
        let mut sender = start(send, "session")?;
        let session = sender.first.clone();
        let manifest = manifest.to_str().unwrap_or_default();
        let served = self.serve(file, &["--manifest", manifest])?;
        let ticket = session["ticket"].as_str().unwrap_or_default();
        let into = self.directory.join("into");
        let mut receive = Command::new(&self.fontana);
        receive.args(["recv", "-i", "lo", "--mirrors", "8s", "--json"]);
        receive.env("FONTANA_SIMULATE_LOSS", "5");
        receive.args(["-o".as_ref(), into.as_os_str()]);
        receive.args([ticket, &format!("http://{}/", served.listen)]);
        let output = receive.output().map_err(|error| error.to_string())?;
        sender.lines.by_ref().for_each(drop);
        let _ = sender.child.wait();
        served.stop()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let event = |name: &str| {
            let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            events.rev().find(|event| event["event"] == name).unwrap_or_default()
        };
        let (mirror, summary) = (event("mirror"), event("summary"));
        let of = |event: &Value, field: &str| event[field].as_f64().unwrap_or(f64::NAN);
        let missing = of(&summary, "source_symbols") - of(&summary, "fresh");
        let symbol_size = of(&session, "symbol_size");
        let drawn = of(&mirror, "bytes") / (symbol_size + ID_SIZE as f64);
        Ok(json!({
            "tail": summary["verdict"],
            "missing_symbols": missing,
            "drawn_symbols": drawn,
            "ratio": drawn / missing,
            "useless_bytes": mirror["useless_bytes"],
        }))
    }

    fn serve(&self, file: &Path, more: &[&str]) -> Result<Served, String> {
        let mut serve = Command::new(&self.fontana);
        serve.args(["serve", "--json", "--listen", "127.0.0.1:0"]).args(more).arg(file);
        let started = start(serve, "serving")?;
        let of = |field: &str| started.first[field].as_str().unwrap_or_default().to_owned();
        let (listen, manifest) = (of("listen"), of("manifest"));
        Ok(Served { started, listen, manifest })
    }
}

/// Starts a program, and waits for its first event of this name.
fn start(mut command: Command, event: &str) -> Result<Started, String> {
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut lines = BufReader::new(output).lines();
    let found = lines.by_ref().find_map(|line| {
        let value: Value = serde_json::from_str(&line.ok()?).ok()?;
        (value["event"] == event).then_some(value)
    });
    let found = found.ok_or_else(|| format!("no event {event}"))?;
    Ok(Started { child, lines, first: found })
}

/// A program that has said that it is ready.
struct Started {
    child: Child,
    /// What it says after that.
    lines: Lines<BufReader<ChildStdout>>,
    first: Value,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running server.
struct Served {
    started: Started,
    listen: String,
    manifest: String,
}

impl Served {
    /// Processor time of the process so far.
    fn processor_time(&self) -> Result<Duration, String> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.started.child.id()));
        let stat = stat.map_err(|error| error.to_string())?;
        // The fields after the program's name; a tick is 10 ms on Linux.
        let (_, fields) = stat.rsplit_once(") ").ok_or("no stat")?;
        let ticks = fields.split(' ').skip(11).take(2).filter_map(|it| it.parse::<u64>().ok());
        Ok(Duration::from_millis(10 * ticks.sum::<u64>()))
    }

    /// Ends it. Returns its last event.
    fn stop(mut self) -> Result<Value, String> {
        let pid = self.started.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status();
        killed.map_err(|error| error.to_string())?;
        let last = self.started.lines.by_ref().map_while(Result::ok).last().unwrap_or_default();
        let _ = self.started.child.wait();
        serde_json::from_str(&last).map_err(|error| error.to_string())
    }
}
