//! Programs that run during a transfer over sockets.

use super::transfer::Transfer;
use fontana::net::ThreadError;
use fontana::net::thread::spawn_scoped;
use serde_json::Value;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a reception has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// The program `fontana` beside this one.
pub(super) fn program() -> io::Result<Command> {
    let path = std::env::current_exe()?.with_file_name("fontana");
    if path.exists() {
        return Ok(Command::new(path));
    }
    let message = format!("there is no {path:?}: build or install fontana beside fontana-lab");
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

/// A program that is killed when it is no longer needed.
pub(super) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        Ok(Self { child, stdout: BufReader::new(stdout) })
    }

    /// The next of its events that has a field of this name.
    pub(super) fn event_with(&mut self, field: &str) -> io::Result<Value> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line)? > 0 {
            let event: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
            if !event[field].is_null() {
                return Ok(event);
            }
            line.clear();
        }
        Err(io::Error::other(format!("no {field} in what the program prints")))
    }

    /// Waits for the end of a receiver.
    pub(super) fn watch(&mut self, transfer: &mut Transfer) -> io::Result<()> {
        let (mut log, mut summary) = (0, None);
        let stderr = self.child.stderr.take();
        let process = self.child.id();
        let (errors, ended) = std::thread::scope(|scope| {
            let errors = spawn_scoped(scope, "errors", || count(stderr));
            let mut line = String::new();
            let began = Instant::now();
            while self.stdout.read_line(&mut line)? > 0 && began.elapsed() < DEADLINE {
                // Several times a second: events of progress come as long as the receiver runs.
                transfer.memory_max = transfer.memory_max.max(peak_memory(process));
                log += line.len() as u64;
                let event = serde_json::from_str::<Value>(&line).unwrap_or_default();
                match event["event"].as_str() {
                    Some("summary") => summary = Some(event),
                    Some("error") => transfer.error = event["message"].as_str().map(str::to_owned),
                    _ => {}
                }
                line.clear();
            }
            let ended = self.child.wait();
            let errors = errors.map_err(|ThreadError(error)| error)?.join();
            Ok::<_, io::Error>((errors.unwrap_or_default(), ended))
        })?;
        transfer.log_bytes = log + errors;
        transfer.exit_code = ended?.code();
        if let Some(summary) = summary {
            transfer.seconds = summary["seconds"].as_f64().unwrap_or_default();
            transfer.symbols = summary["fresh"].as_u64().unwrap_or_default();
            transfer.kernel_drops = summary["kernel_drops"].as_u64().unwrap_or_default();
        }
        Ok(())
    }

    /// The process, and its output.
    pub(super) fn parts(&mut self) -> (&mut Child, &mut BufReader<ChildStdout>) {
        (&mut self.child, &mut self.stdout)
    }

    pub(super) fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The number of bytes that a program writes.
pub(super) fn count(output: Option<impl Read>) -> u64 {
    let Some(mut output) = output else { return 0 };
    let (mut bytes, mut buffer) = (0, [0; 4096]);
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        bytes += read as u64;
    }
    bytes
}

/// Most resident memory of a process so far, in bytes, without the pages of the program's file.
pub(super) fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let bytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kilobytes << 10)
    };
    Some(bytes("VmHWM:")?.saturating_sub(bytes("RssFile:")?))
}
