//! One transfer: starts the programs, watches their files and memberships, and measures.
//!
//! The time counts from the start of the sender's process, when all receivers that are there from
//! the start have opened their sockets. A receiver has the file when it has its name and its
//! length. It has enough when it has left the group, or has the file if that is earlier.

use super::files::{are_equal, warm};
use super::hosts::Hosts;
use super::proc::{self, HostTimes};
use super::process::Process;
use super::record::RunRecord;
use super::setting::Disturbance;
use super::tool::{Commands, GROUP};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between two looks at the receivers, by their number: looking takes about 1 % of it.
const fn interval(receivers: usize) -> Duration {
    if receivers <= 4 { Duration::from_millis(2) } else { Duration::from_millis(5) }
}

/// Interval between two measurements of memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time for receivers to open their sockets, and to end after their file is complete.
const PATIENCE: Duration = Duration::from_secs(5);
/// From a receiver's socket to its switch knowing its memberships.
const JOINING: Duration = Duration::from_millis(200);
/// Longest time of a transfer: that of this rate in bits per second, and an allowance, which is
/// longer if a sender has to notice that a receiver is gone.
const SLOWEST: f64 = 100e6;
const ALLOWANCE: Duration = Duration::from_secs(5);
const ALLOWANCE_DISTURBED: Duration = Duration::from_secs(60);

/// What was sent and when, since the start of the sender.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Duration,
    sent: u64,
}

/// A receiver, over all its processes.
struct Reception {
    number: usize,
    directory: PathBuf,
    process: Option<Process>,
    /// Of processes before this one.
    processor_before: Duration,
    memory_before: u64,
    is_member: bool,
    enough: Option<Moment>,
    complete: Option<Moment>,
}

/// A transfer in progress.
pub(crate) struct Transfer<'a> {
    commands: Commands<'a>,
    hosts: &'a Hosts,
    directory: &'a Path,
    receptions: Vec<Reception>,
    sender: Option<Process>,
    sender_processor: Duration,
    sender_memory: u64,
    /// What the interface had sent before.
    sent_before: u64,
}

/// Runs a transfer below `directory`, and deletes what it has written.
///
/// # Errors
/// A program cannot be started.
pub(crate) fn run(
    commands: Commands<'_>,
    hosts: &Hosts,
    directory: &Path,
) -> Result<RunRecord, String> {
    warm(directory, commands.size * (hosts.receivers.len() as u64 + 1)).unwrap();
    let drops_before = hosts.kernel_drops();
    let queued_before = hosts.queued()?;
    let times_before = host_times();
    let mut transfer = Transfer::new(commands, hosts, directory);
    let result = transfer.run();
    let steal = host_times().steal_since(times_before);
    let drops = hosts.kernel_drops() - drops_before;
    let queue_loss = hosts.queued()?.loss_since(queued_before);
    let record = result.map(|()| RunRecord { queue_loss, ..transfer.record(drops, steal) });
    drop(transfer);
    for number in 1..=hosts.receivers.len() {
        let _ = fs::remove_dir_all(receiver_directory(directory, number));
    }
    record
}

fn receiver_directory(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("receiver{number}"))
}

fn host_times() -> HostTimes {
    HostTimes::parse(&fs::read_to_string("/proc/stat").unwrap()).unwrap()
}

impl<'a> Transfer<'a> {
    fn new(commands: Commands<'a>, hosts: &'a Hosts, directory: &'a Path) -> Self {
        let reception = |number| Reception {
            number,
            directory: receiver_directory(directory, number),
            process: None,
            processor_before: Duration::ZERO,
            memory_before: 0,
            is_member: false,
            enough: None,
            complete: None,
        };
        Self {
            commands,
            hosts,
            directory,
            receptions: (1..=hosts.receivers.len()).map(reception).collect(),
            sender: None,
            sender_processor: Duration::ZERO,
            sender_memory: 0,
            sent_before: Hosts::sent(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let is_late = self.commands.setting.disturbance == Disturbance::Late;
        let early = self.receptions.len() - usize::from(is_late);
        for index in 0..early {
            self.start_receiver(index)?;
        }
        self.wait_for_sockets(early);
        let start = Instant::now();
        let early: Vec<_> = (1..=early).collect();
        self.start_sender(&early)?;
        self.watch(start)?;
        self.end();
        Ok(())
    }

    fn start_receiver(&mut self, index: usize) -> Result<(), String> {
        let reception = &mut self.receptions[index];
        if let Some(mut process) = reception.process.take() {
            process.kill();
            reception.processor_before += process.processor();
            reception.memory_before = reception.memory_before.max(process.memory());
            reception.is_member = false;
            reception.enough = None;
        }
        fs::create_dir_all(&reception.directory).unwrap();
        let command = self.commands.receiver(reception.number, &reception.directory);
        let log = self.directory.join(format!("receiver{}.log", reception.number));
        reception.process = Some(Process::start(&self.hosts.receivers[index], command, &log)?);
        Ok(())
    }

    fn wait_for_sockets(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        let is_ready =
            |reception: &Reception| reception.process.as_ref().is_some_and(Process::has_socket);
        while !self.receptions[..count].iter().all(is_ready) && Instant::now() < deadline {
            std::thread::sleep(interval(count));
        }
        std::thread::sleep(JOINING);
    }

    fn start_sender(&mut self, receivers: &[usize]) -> Result<(), String> {
        let command = self.commands.sender(receivers);
        let log = self.directory.join("sender.log");
        self.sender = Some(Process::start(&self.hosts.sender, command, &log)?);
        Ok(())
    }

    /// Watches until all receivers have the file, or none can get it any more.
    fn watch(&mut self, start: Instant) -> Result<(), String> {
        let size = self.commands.size;
        let is_plain = self.commands.setting.disturbance == Disturbance::Plain;
        let allowance = if is_plain { ALLOWANCE } else { ALLOWANCE_DISTURBED };
        let limit = allowance + Duration::from_secs_f64(size as f64 * 8.0 / SLOWEST);
        let mut is_disturbed = is_plain;
        let mut memory_at = Duration::ZERO;
        loop {
            let mut now = None;
            let before = self.sent_before;
            let take = || Moment { at: start.elapsed(), sent: Hosts::sent() - before };
            let mut moment = || *now.get_or_insert_with(take);
            for reception in &mut self.receptions {
                reception.poll(&self.commands, &mut moment);
            }
            if !is_disturbed && moment().sent >= size / 2 {
                is_disturbed = true;
                self.start_receiver(self.receptions.len() - 1)?;
            }
            if start.elapsed() >= memory_at {
                memory_at = start.elapsed() + MEMORY_INTERVAL;
                let processes = self.receptions.iter_mut().filter_map(|r| r.process.as_mut());
                processes.chain(&mut self.sender).for_each(Process::poll_memory);
            }
            let mut missing = self.receptions.iter_mut().filter(|r| r.complete.is_none());
            let none_receives = missing.all(|r| r.process.as_mut().is_none_or(Process::has_ended));
            let is_over = none_receives && is_disturbed || start.elapsed() > limit;
            if is_over {
                return Ok(());
            }
            if self.sender.as_mut().is_some_and(Process::has_ended) {
                self.count_sender();
                let missing = self.receptions.iter().filter(|r| r.complete.is_none());
                let missing: Vec<_> = missing.map(|r| r.number).collect();
                if is_plain || !self.commands.tool.counts_receivers() {
                    return Ok(());
                }
                self.start_sender(&missing)?;
            }
            std::thread::sleep(interval(self.receptions.len()));
        }
    }

    /// Adds the processor time and the memory of a sender that has ended.
    fn count_sender(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.sender_processor += sender.processor();
            self.sender_memory = self.sender_memory.max(sender.memory());
        }
    }

    /// Ends all processes: the sender at once, receivers when they have ended themselves.
    fn end(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.kill();
        }
        self.count_sender();
        let deadline = Instant::now() + PATIENCE;
        let ends = !self.commands.tool.is_peer();
        for reception in &mut self.receptions {
            let Some(process) = &mut reception.process else { continue };
            let is_ending = reception.complete.is_some() && ends;
            while is_ending && !process.has_ended() && Instant::now() < deadline {
                std::thread::sleep(interval(1));
            }
            if !process.has_ended() {
                process.kill();
            }
        }
    }

    fn record(&self, kernel_drops: u64, steal: f64) -> RunRecord {
        let Commands { tool, setting, size, file, .. } = &self.commands;
        let gigabytes = *size as f64 / 1e9;
        let has_file = |reception: &&Reception| {
            reception.complete.is_some()
                && (!tool.has_file()
                    || are_equal(file, &reception.directory.join(file.file_name().unwrap()))
                        .is_ok_and(|equal| equal))
        };
        let receivers_ok = self.receptions.iter().filter(has_file).count();
        let is_ok = receivers_ok == self.receptions.len();
        let last = |moment: fn(&Reception) -> Option<Moment>| {
            let moments: Option<Vec<_>> = self.receptions.iter().map(moment).collect();
            moments?.into_iter().max_by_key(|moment| moment.at).filter(|_| is_ok)
        };
        let (complete, enough) = (last(|r| r.complete), last(|r| r.enough));
        let receivers = self.receptions.len() as f64;
        let processor: Duration = self.receptions.iter().map(Reception::processor).sum();
        let memory = self.receptions.iter().map(Reception::memory).max().unwrap_or(0);
        let milliseconds = |(complete, enough): (Moment, Moment)| {
            complete.at.saturating_sub(enough.at).as_secs_f64() * 1e3
        };
        RunRecord {
            program: *tool,
            mode: setting.mode,
            loss: setting.loss,
            receivers: setting.receivers,
            scenario: setting.disturbance,
            receivers_ok,
            goodput_mbit: complete.map(|last| *size as f64 * 8e-6 / last.at.as_secs_f64()),
            sent_until_enough: enough.map(|last| last.sent as f64 / *size as f64),
            tail_ms: complete.zip(enough).map(milliseconds),
            cpu_s_per_gb_sender: is_ok.then(|| self.sender_processor.as_secs_f64() / gigabytes),
            cpu_s_per_gb_receiver: is_ok.then(|| processor.as_secs_f64() / receivers / gigabytes),
            rss_anon_mb_sender: self.sender_memory as f64 / 1e6,
            rss_anon_mb_receiver: memory as f64 / 1e6,
            kernel_drops,
            queue_loss: 0.0,
            file: if is_ok && tool.has_file() { "equal" } else { "no file" },
            size: *size,
            rate_mbit: tool.is_told_a_rate().then_some(self.commands.rate),
            steal_percent: steal,
        }
    }
}

impl Reception {
    /// Notes that it has enough, or the file.
    fn poll(&mut self, commands: &Commands<'_>, moment: &mut impl FnMut() -> Moment) {
        let Some(process) = &mut self.process else { return };
        if self.complete.is_some() {
            return;
        }
        let is_complete = if commands.tool.has_file() {
            let path = self.directory.join(commands.file.file_name().unwrap());
            fs::metadata(path).is_ok_and(|file| file.len() == commands.size)
        } else {
            process.has_ended() && process.has_succeeded()
        };
        if is_complete {
            self.complete = Some(moment());
        }
        if self.enough.is_none() {
            let is_member = proc::is_member(&process.memberships(), GROUP);
            if is_complete || self.is_member && !is_member {
                self.enough = Some(moment());
            }
            self.is_member = is_member;
        }
    }

    fn processor(&self) -> Duration {
        let now = self.process.as_ref().map(Process::processor).unwrap_or_default();
        self.processor_before + now
    }

    fn memory(&self) -> u64 {
        self.process.as_ref().map_or(0, Process::memory).max(self.memory_before)
    }
}
