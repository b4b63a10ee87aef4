//! How fast a sender is alone: on a host whose packets end in a switch, because there is no
//! receiver. Segmentation is left to the interface, as on a network card.

use crate::net::files::write_noise;
use crate::net::hosts::{Hosts, INTERFACE};
use crate::net::process::Process;
use crate::net::tool::GROUP;
use crate::net::{built, missing};
use crate::numbers::within;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const USAGE: &str = "\
usage: fontana-bench sender [--repetitions N] [--size MIB] [--passes N] [--json] [--fontana PATH]
                            [--directory DIR]

  sender  rate of a sender without receivers, as root, in alternating runs: one pass of source
          symbols, repair symbols alone, and a raw sender";

const PORT: u16 = 7701;
/// More than any host here sends, in bit/s.
const RATE: &str = "100G";
/// For how long the raw sender is counted.
const RAW: Duration = Duration::from_secs(2);

/// What is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct SenderPlan {
    repetitions: usize,
    /// Bytes of the file.
    size: u64,
    /// Passes of the runs with repair symbols; the first one has source symbols.
    passes: u64,
    /// Fontana's program; `None`: that of this workspace.
    fontana: Option<PathBuf>,
    /// Where the file is, in a directory of its own.
    directory: PathBuf,
}

impl SenderPlan {
    /// Parses what follows `sender`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self {
            repetitions: 5,
            size: 1 << 30,
            passes: 3,
            fontana: None,
            directory: "/dev/shm".into(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--repetitions" => plan.repetitions = within(&value()?, 1..=1_000)? as usize,
                "--size" => plan.size = within(&value()?, 1..=65_536)? << 20,
                "--passes" => plan.passes = within(&value()?, 2..=100)?,
                "--fontana" => plan.fontana = Some(value()?.into()),
                "--directory" => plan.directory = value()?.into(),
                other => return Err(format!("what is {other}?")),
            }
        }
        Ok(plan)
    }
}

/// Runs the senders in turn, and prints each run and the medians.
///
/// # Errors
/// What is missing, or failed.
pub(crate) fn run(plan: &SenderPlan, is_json: bool) -> Result<(), String> {
    let lacking = missing(&[("ip", "iproute2")]);
    if !lacking.is_empty() {
        return Err(format!("the bench needs: apt-get install {}", lacking.join(" ")));
    }
    let what = "-p fontana-cli -p fontana-bench --bins --example raw";
    let fontana = built(plan.fontana.clone(), what, "fontana")?;
    let raw = built(None, what, "examples/raw")?;
    let directory = TempDir::with_prefix_in("fontana-bench-", &plan.directory)
        .map_err(|error| format!("{}: {error}", plan.directory.display()))?;
    let file = directory.path().join("content");
    write_noise(&file, plan.size).map_err(|error| format!("{}: {error}", file.display()))?;
    let bench = Bench { fontana, raw, file, log: directory.path().join("log") };
    // A thread of its own: it moves to the namespace of the switch for good.
    let measure = || bench.measure(plan, is_json);
    let result = thread::scope(|scope| scope.spawn(measure).join());
    result.map_err(|_| "the bench has panicked".to_owned())?
}

struct Bench {
    fontana: PathBuf,
    raw: PathBuf,
    file: PathBuf,
    log: PathBuf,
}

/// What a sender says of itself.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// UDP payload.
    bytes: f64,
    seconds: f64,
    processor: f64,
}

impl Bench {
    fn measure(&self, plan: &SenderPlan, is_json: bool) -> Result<(), String> {
        let hosts = Hosts::connected(0)?;
        hosts.enter_switch()?;
        let mut rates = [const { Vec::new() }; 3];
        for _ in 0..plan.repetitions {
            let source = self.send(&hosts, 1)?;
            let all = self.send(&hosts, plan.passes)?;
            let repair = Sent {
                bytes: all.bytes - source.bytes,
                seconds: all.seconds - source.seconds,
                processor: all.processor - source.processor,
            };
            let found = [rate(source), rate(repair), self.raw(&hosts)?];
            rates.iter_mut().zip(found).for_each(|(all, one)| all.push(one));
            show(
                &json!({
                    "source_mbit": found[0],
                    "repair_mbit": found[1],
                    "raw_mbit": found[2],
                    "cpu_s_per_gb_source": source.processor / source.bytes * 1e9,
                    "cpu_s_per_gb_repair": repair.processor / repair.bytes * 1e9,
                }),
                is_json,
            );
        }
        let [source, repair, raw] = rates.map(median);
        show(
            &json!({
                "medians_of": plan.repetitions,
                "source_mbit": source,
                "repair_mbit": repair,
                "raw_mbit": raw,
                "source_share": source / raw,
            }),
            is_json,
        );
        Ok(())
    }

    fn send(&self, hosts: &Hosts, passes: u64) -> Result<Sent, String> {
        let _ = fs::remove_file(&self.log);
        let mut command = Command::new(&self.fontana);
        command.args(["send", "--json", "-i", INTERFACE, "--rate", RATE]);
        // Per cent of repair symbols, after a pass of source symbols.
        let repair = (100 * (passes - 1)).to_string();
        command.args(["--to", &format!("{GROUP}:{PORT}"), "--push", &repair]);
        command.arg(&self.file);
        let mut process = Process::start(&hosts.sender, command, &self.log)?;
        while !process.has_ended() {
            thread::sleep(Duration::from_millis(2));
        }
        let processor = process.processor().as_secs_f64();
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let summary = events.into_iter().find(|event| event["event"] == "summary");
        let summary = summary.ok_or(said)?;
        let number = |name: &str| summary[name].as_f64().unwrap_or(f64::NAN);
        Ok(Sent { bytes: number("payload_bytes"), seconds: number("seconds"), processor })
    }

    /// Mbit/s of UDP payload of the raw sender.
    fn raw(&self, hosts: &Hosts) -> Result<f64, String> {
        let mut command = Command::new(&self.raw);
        let here = crate::net::hosts::address(0).to_string();
        command.args(["send", &format!("{GROUP}:{PORT}"), &here]);
        let process = Process::start(&hosts.sender, command, &self.log)?;
        thread::sleep(Duration::from_millis(200));
        let (begun, before) = (Instant::now(), Hosts::sent());
        thread::sleep(RAW);
        let sent = Hosts::sent() - before;
        let seconds = begun.elapsed().as_secs_f64();
        drop(process);
        Ok(sent as f64 * 8.0 / 1e6 / seconds)
    }
}

fn rate(sent: Sent) -> f64 {
    sent.bytes * 8.0 / 1e6 / sent.seconds
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn show(row: &Value, is_json: bool) {
    if is_json {
        return println!("{row}");
    }
    let fields = row.as_object().into_iter().flatten();
    let fields =
        fields.map(|(name, value)| format!("{name} {:.2}", value.as_f64().unwrap_or(f64::NAN)));
    println!("{}", fields.collect::<Vec<_>>().join(", "));
}

#[cfg(test)]
mod tests {
    // `cargo bench` compiles this without a harness: then there are no tests to use it.
    #[allow(unused_imports)]
    use super::*;

    #[test]
    fn passes_and_size_are_chosen() {
        let parse = |words: &str| SenderPlan::parse(words.split_whitespace().map(str::to_owned));
        let plan = parse("--passes 2 --size 64 --repetitions 1").unwrap();
        assert_eq!((plan.passes, plan.size, plan.repetitions), (2, 64 << 20, 1));
        assert_eq!(parse("--passes 1").unwrap_err(), "1 is not a number from 2 to 100");
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
