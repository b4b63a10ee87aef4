//! Starts the program, and keeps its output.

pub(crate) use fontana_testing::events::{documented, fields};
use fontana_testing::give;
pub(crate) use fontana_testing::{Run, arguments, noise};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) fn fontana() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fontana"));
    // The key of the host is not that of who runs the tests.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn run<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Run {
    Run::of(give(&mut fontana(), arguments))
}

/// A group and port that no other test uses, nor another run of the tests.
pub(crate) fn place() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    // The port differs as well: one test listens on it for all groups.
    let port = 20_000 + (process * 64 + number) % 12_000;
    format!("239.255.{}.{}:{port}", process % 251, 1 + number)
}

/// A program that runs beside the test.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Self {
        Self::start_with(Stdio::null(), arguments)
    }

    /// Starts it with this standard input.
    pub(crate) fn start_with<A: AsRef<std::ffi::OsStr>>(stdin: Stdio, arguments: &[A]) -> Self {
        let mut child = give(&mut fontana(), arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// The next line of its output; blocks until there is one.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended: {:?}", self.child.wait_with_stderr());
        line.trim_end().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What `look` finds out about the process, which runs.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(u32) -> T) -> T {
        look(self.child.id())
    }

    /// Processor time that it has used so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The fields after the program's name; a tick is 10 ms on Linux.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks = fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap());
        Duration::from_millis(10 * ticks.sum::<u64>())
    }

    /// Its output, as bytes.
    pub(crate) fn stdout(&mut self) -> &mut BufReader<ChildStdout> {
        &mut self.stdout
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Run {
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut stdout).unwrap();
        let (code, stderr) = self.child.wait_with_stderr();
        Run { code, stdout, stderr }
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn stop(self) -> Run {
        self.signal(Signal::INT);
        self.wait()
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn hang_up(mut self) -> Run {
        drop(self.stdout);
        let (code, stderr) = self.child.wait_with_stderr();
        Run { code, stdout: String::new(), stderr }
    }
}

/// The most memory that a process has used so far, in bytes; 0 if it has ended.
pub(crate) fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    kilobytes.map_or(0, |kilobytes| kilobytes.parse::<u64>().unwrap() << 10)
}

trait WaitWithStderr {
    fn wait_with_stderr(&mut self) -> (Option<i32>, String);
}

impl WaitWithStderr for Child {
    fn wait_with_stderr(&mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut text).unwrap();
        }
        (self.wait().unwrap().code(), text)
    }
}

/// A sender on the loopback interface, and the ticket that it printed.
pub(crate) struct Sender {
    running: Running,
    pub(crate) ticket: String,
}

impl Sender {
    pub(crate) fn start(words: &str, files: &[&Path]) -> Self {
        Self::start_with(Stdio::null(), words, files)
    }

    /// Starts it with this standard input.
    pub(crate) fn start_with(stdin: Stdio, words: &str, files: &[&Path]) -> Self {
        let arguments = arguments(&format!("send -i lo {words}"), files);
        let mut running = Running::start_with(stdin, &arguments);
        let line = running.line();
        let ticket = line.split('\'').nth(1).unwrap_or_else(|| panic!("no ticket in {line}"));
        Self { ticket: ticket.to_owned(), running }
    }

    /// Ends it, and checks that it reported no error.
    pub(crate) fn finish(self) {
        self.running.stop().expect(130);
    }

    pub(crate) fn into_running(self) -> Running {
        self.running
    }
}

/// Heads and manifests that a sender of `file` sends, and its ticket. `words`: the session's
/// number, `/9`, and options.
pub(crate) fn record(file: &Path, words: &str) -> (String, Vec<Vec<u8>>, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let sender = Sender::start(&format!("--open --to 127.0.0.1:{port}{words}"), &[file]);
    let (mut public, mut packet) = (Vec::new(), [0; 2048]);
    while public.len() < 8 {
        let length = socket.recv(&mut packet).unwrap();
        // The TOI of a header with 32 bits of each CCI, TSI and TOI.
        if matches!(packet[12..16], [0xFF, 0xFF, 0xFF, 0xFE | 0xFF]) {
            public.push(packet[..length].to_vec());
        }
    }
    let ticket = sender.ticket.clone();
    sender.finish();
    (ticket, public, port)
}

/// A ticket without the port for reports: other tests may have it at another time.
pub(crate) fn without_port(ticket: &str) -> &str {
    ticket.split("&ask=").next().unwrap_or(ticket)
}

/// Checks the message and the hint.
pub(crate) fn assert_says(run: &Run, message: &str, hint: &str) {
    let mut lines = run.stderr.lines();
    let found = lines.by_ref().any(|line| line.starts_with("error: ") && line.contains(message));
    assert!(found, "{message:?} in {}", run.stderr);
    let found = lines.any(|line| line.starts_with("  ") && line.contains(hint));
    assert!(found, "{hint:?} below the message in {}", run.stderr);
}
