//! Transfers from one sender to receivers on hosts of this computer, of Fontana and of peers, in
//! alternating runs, beside a sender and receivers without a protocol.
//!
//! Hosts are network namespaces on a switch. All programs run as processes; what they send, use and
//! lose is counted from outside ([`mod@run`]). Files are in a tmpfs.

pub(crate) mod arguments;
pub(crate) mod files;
pub(crate) mod hosts;
mod proc;
pub(crate) mod process;
mod record;
mod run;
pub(crate) mod setting;
pub(crate) mod tool;

use arguments::NetPlan;
use files::write_noise;
use hosts::{Hosts, Queue};
use record::{HEADING, RunRecord};
use rustix::fs::statfs;
use setting::{Setting, Tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use tool::{Commands, Key, Programs};

/// The magic number of tmpfs, statfs(2).
const TMPFS: u64 = 0x0102_1994;

/// Programs of the system that a bench needs, with their packages.
const REQUIRED: &[(&str, &str)] =
    &[("ip", "iproute2"), ("nft", "nftables"), ("ethtool", "ethtool")];
const UDPCAST: &[(&str, &str)] = &[("udp-sender", "udpcast"), ("udp-receiver", "udpcast")];
const UFTP: &[(&str, &str)] = &[("uftp", "uftp"), ("uftpd", "uftp")];

/// Runs all settings, and prints each run as soon as it has ended.
///
/// # Errors
/// What is missing, or failed.
pub(crate) fn run(plan: &NetPlan, json: bool) -> Result<(), String> {
    let tools = check_tools(plan)?;
    let programs = programs(plan)?;
    let directory = TempDir::with_prefix_in("fontana-bench-", &plan.directory)
        .map_err(|error| format!("{}: {error}", plan.directory.display()))?;
    // The field has another type on other architectures.
    #[allow(clippy::unnecessary_cast)]
    let kind = statfs(directory.path()).map_err(|error| error.to_string())?.f_type as u64;
    if kind != TMPFS {
        return Err(format!("{} is not a tmpfs: --directory DIR", plan.directory.display()));
    }
    let file = directory.path().join("content");
    write_noise(&file, plan.size).map_err(|error| format!("{}: {error}", file.display()))?;
    let key = key(&programs, directory.path().join("key"))?;
    for setting in &plan.settings {
        let measure = || measure(plan, setting, &tools, &programs, &file, &key, json);
        // A thread of its own: it moves to the namespace of the switch for good.
        let result = std::thread::scope(|scope| scope.spawn(measure).join());
        result.map_err(|_| "the bench has panicked".to_owned())??;
    }
    Ok(())
}

/// Runs one setting.
fn measure(
    plan: &NetPlan,
    setting: &Setting,
    tools: &[Tool],
    programs: &Programs,
    file: &Path,
    key: &Key,
    json: bool,
) -> Result<(), String> {
    let queue = plan.rate.zip(plan.queue).map(|(rate, kilobytes)| Queue::at(rate, kilobytes));
    let hosts = Hosts::new(setting, queue)?;
    hosts.enter_switch()?;
    let tools: Vec<_> = tools.iter().copied().filter(|&tool| setting.suits(tool)).collect();
    if !json {
        let Setting { mode, loss, receivers, disturbance } = setting;
        let (mode, disturbance) = (mode.name(), disturbance.name());
        println!("\n{mode}, {loss} % loss, {receivers} receivers, {disturbance}\n{HEADING}");
    }
    let ticket = match tools.contains(&Tool::FontanaTicket) {
        true => ticket(programs, &hosts, file)?,
        false => String::new(),
    };
    let mut records = Vec::new();
    for _ in 0..plan.repetitions {
        for &tool in &tools {
            let rate = plan.rate.unwrap_or_else(|| setting.rate(tool));
            let memory = plan.memory.as_deref();
            let NetPlan { size, burst, block_symbols, .. } = *plan;
            let commands = Commands {
                tool,
                setting,
                programs,
                file,
                size,
                rate,
                memory,
                burst,
                block_symbols,
                key,
                ticket: &ticket,
            };
            let run = || run::run(commands, &hosts, file.parent().unwrap());
            let record = beside_loops(plan.busy, run)?;
            println!("{}", if json { record.json() } else { record.line() });
            records.push(record);
        }
    }
    if !json && plan.repetitions > 1 {
        println!("medians of {}", plan.repetitions);
        for tool in tools {
            let of_tool: Vec<_> = records.iter().filter(|r| r.program == tool).collect();
            RunRecord::medians(&of_tool).iter().for_each(|medians| println!("{}", medians.line()));
        }
    }
    Ok(())
}

/// Runs `work` while this many threads compute.
fn beside_loops<T>(loops: usize, work: impl FnOnce() -> T) -> T {
    /// Ends the loops, even if the work panics: the scope waits for them.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        for _ in 0..loops {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        work()
    })
}

/// The tools of the plan whose programs are installed. Says which are not.
fn check_tools(plan: &NetPlan) -> Result<Vec<Tool>, String> {
    let missing = missing(REQUIRED);
    if !missing.is_empty() {
        return Err(format!("the bench needs: apt-get install {}", missing.join(" ")));
    }
    let is_installed = |tool: &Tool| {
        let missing = missing_of(*tool);
        if !missing.is_empty() {
            eprintln!("without {}: apt-get install {}", tool.name(), missing.join(" "));
        }
        missing.is_empty()
    };
    Ok(plan.tools.iter().copied().filter(is_installed).collect())
}

fn missing_of(tool: Tool) -> Vec<&'static str> {
    match tool {
        Tool::Udpcast => missing(UDPCAST),
        Tool::Uftp => missing(UFTP),
        _ => Vec::new(),
    }
}

/// Packages of programs that are not in the path.
pub(crate) fn missing(programs: &[(&str, &'static str)]) -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    let is_missing = |program: &str| !directories.iter().any(|at| at.join(program).exists());
    let mut packages: Vec<_> =
        programs.iter().filter(|(name, _)| is_missing(name)).map(|(_, package)| *package).collect();
    packages.dedup();
    packages
}

/// Fontana and the examples of this crate.
fn programs(plan: &NetPlan) -> Result<Programs, String> {
    let what = "-p fontana-cli -p fontana-bench --bins --example flute --example raw";
    Ok(Programs {
        fontana: built(plan.fontana.clone(), what, "fontana")?,
        flute: built(None, what, "examples/flute")?,
        raw: built(None, what, "examples/raw")?,
    })
}

/// A new key, made by Fontana.
fn key(programs: &Programs, file: PathBuf) -> Result<Key, String> {
    let output = Command::new(&programs.fontana).arg("keygen").arg(&file).output();
    let output = output.map_err(|error| error.to_string())?;
    let public = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || public.is_empty() {
        return Err(format!("fontana keygen: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Key { file, public })
}

/// The ticket of the file in the sender's network. It is the same in each session of the host.
fn ticket(programs: &Programs, hosts: &Hosts, file: &Path) -> Result<String, String> {
    let mut command = Command::new(&programs.fontana);
    command.args(tool::SEND_BY_TICKET).arg("--dry-run").arg(file);
    let output = hosts.sender.within(|| command.output()).map_err(|error| error.to_string())?;
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let lines = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut tickets =
        lines.filter_map(|line: serde_json::Value| Some(line["ticket"].as_str()?.into()));
    tickets.next().ok_or_else(|| format!("no ticket: {}", String::from_utf8_lossy(&output.stderr)))
}

/// A program in the directory of this one, unless another is named. Cargo builds it, if it runs
/// this program.
///
/// # Errors
/// It cannot be built, or is missing.
pub(crate) fn built(named: Option<PathBuf>, what: &str, program: &str) -> Result<PathBuf, String> {
    let words = format!("build --release --locked {what}");
    if let (Some(cargo), None) = (std::env::var_os("CARGO"), &named) {
        let status = Command::new(cargo).args(words.split_whitespace()).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("cargo {words} failed"));
        }
    }
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = here.ancestors().nth(2).map(|target| target.join("release")).unwrap_or_default();
    let path = named.unwrap_or_else(|| target.join(program));
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{} is missing: cargo {words}", path.display())),
    }
}
