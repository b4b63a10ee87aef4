//! A program that runs beside the test: its events, its end, its memory.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A running program: ended when dropped.
pub struct Program {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    errors: Option<std::thread::JoinHandle<String>>,
    /// Peak resident memory when it was last looked at, in bytes.
    peak: Arc<AtomicU64>,
    pub seen: Vec<Value>,
}

impl Program {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (send, lines) = std::sync::mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (peak, pid) = (Arc::new(AtomicU64::new(0)), child.id());
        let seen_peak = Arc::clone(&peak);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Several times a second, whatever the test waits for.
                seen_peak.fetch_max(peak_memory(pid), Ordering::Relaxed);
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Self { child, lines, errors: Some(errors), peak, seen: Vec::new() }
    }

    /// The next event of this kind.
    pub fn wait_for(&mut self, event: &str, limit: Duration) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left.max(Duration::from_millis(1))) else {
                let _ = self.child.kill();
                let errors = self.errors.take().map(|e| e.join().unwrap_or_default());
                panic!("no {event} within {limit:?}: {:?}\n{errors:?}", self.seen.last());
            };
            let value: Value = serde_json::from_str(&line).unwrap_or(Value::String(line));
            self.seen.push(value.clone());
            self.peak_memory();
            if value["event"] == event {
                return value;
            }
        }
    }

    /// Peak resident memory so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let now = peak_memory(self.child.id());
        self.peak.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn interrupt(&self) {
        kill_process(self.pid(), Signal::INT).unwrap();
    }

    pub fn kill(&self) {
        kill_process(self.pid(), Signal::KILL).unwrap();
    }

    /// Kills it and what it has started, if it was started in a process group of its own.
    ///
    /// By a system call: `kill -KILL -1234` of procps 4.0.2 takes the first digit alone for the
    /// group, and group 1 is every process of the computer.
    pub fn kill_group(&self) {
        let _ = kill_process_group(self.pid(), Signal::KILL);
    }

    /// It is not reaped before the test has finished with it: no other process gets its number.
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Exit code, and what it wrote to standard error.
    pub fn finish(&mut self, limit: Duration) -> (Option<i32>, String) {
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "still running after {limit:?}");
            self.peak_memory();
            std::thread::sleep(Duration::from_millis(20));
        };
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(200)) {
            self.seen.push(serde_json::from_str(&line).unwrap_or(Value::String(line)));
        }
        let errors = self.errors.take().map(|e| e.join().unwrap_or_default());
        (status.code(), errors.unwrap_or_default())
    }

    /// The event of this kind that was seen last.
    pub fn last(&self, event: &str) -> Option<&Value> {
        self.all(event).next_back()
    }

    /// The events of this kind that were seen.
    pub fn all(&self, event: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.seen.iter().filter(move |value| value["event"] == event)
    }
}

/// `VmHWM` of a process, in bytes; 0 when it is over. `ip netns exec` replaces itself by the
/// program, so the child's numbers are the program's.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
