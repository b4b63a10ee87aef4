//! A measured process on a host.

use super::proc;
use fontana_net::Namespace;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running or ended process; killed when dropped.
pub(crate) struct Process {
    child: Child,
    has_ended: bool,
    processor: Duration,
    /// Peak of its anonymous memory in bytes, as far as it was polled.
    memory: u64,
}

impl Process {
    /// Starts a command on a host. What it prints goes to `log`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        host: &Namespace,
        mut command: Command,
        log: &Path,
    ) -> Result<Self, String> {
        let log = File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = host.within(|| command.spawn()).map_err(|error| error.to_string())?;
        let child = child.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { child, has_ended: false, processor: Duration::ZERO, memory: 0 })
    }

    /// Whether it has ended, with any exit code.
    pub(crate) fn has_ended(&mut self) -> bool {
        if !self.has_ended {
            let times = proc::process_times(&self.read("stat")).unwrap();
            // Not waited for yet, so the numbers are final.
            self.processor = times.processor;
            self.has_ended = times.has_ended;
        }
        self.has_ended
    }

    /// Whether it has ended with exit code 0.
    pub(crate) fn has_succeeded(&mut self) -> bool {
        self.has_ended() && self.child.wait().is_ok_and(|status| status.success())
    }

    /// Whether it has a UDP socket, or another process on its host.
    pub(crate) fn has_socket(&self) -> bool {
        proc::has_socket(&self.read("net/udp"))
    }

    /// Text of its host's group memberships; empty when the process has ended.
    pub(crate) fn memberships(&self) -> String {
        self.read("net/igmp")
    }

    /// Measures its memory.
    pub(crate) fn poll_memory(&mut self) {
        let now = proc::anonymous_memory(&self.read("status"));
        self.memory = self.memory.max(now.unwrap_or(0));
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        while !self.has_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Processor time until it ended, or when it was last asked whether it had.
    pub(crate) fn processor(&self) -> Duration {
        self.processor
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
