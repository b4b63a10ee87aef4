//! A process outside of the sandbox that runs the program of `--exec` with the
//! rights of the user.
//!
//! It is this program itself, started with a hidden command before the sandbox is. The program and
//! its arguments are on its command line. So a confined process can only say when the program runs,
//! and what `FONTANA_*` variables it gets: a line of JSON on the helper's standard input. A line on
//! its standard output answers when the program has started, and another one when it has ended. The
//! helper ends when its standard input does.

use super::network;
use crate::args::ExecHelperArguments;
use crate::hook::{Ended, Program, Report};
use fontana::Outcome;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "exec-helper";

/// Most bytes of a line: a label of 64 KiB takes at most four for each.
const MAX_LINE: u64 = 1 << 20;

/// The helper, as the confined process sees it.
pub(crate) struct Helper {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts it. `words`: the program and its arguments. `directory`: what `FONTANA_DIRECTORY`
    /// says. `without_networks`: the program opens no sockets but those of this host.
    ///
    /// # Errors
    /// `/proc` is not mounted, or the system starts no process.
    pub(crate) fn start(
        words: &[OsString],
        directory: Option<&Path>,
        without_networks: bool,
    ) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg0("fontana")
            .arg(COMMAND)
            .args(without_networks.then_some("--without-networks"))
            .args(directory.map(|path| ["--directory".as_ref(), path.as_os_str()]).iter().flatten())
            .arg("--exec")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        Ok(Self { child, requests, answers: BufReader::new(answers) })
    }

    /// Runs the program for a completed reception, and waits for its end.
    ///
    /// # Errors
    /// The helper has ended.
    pub(crate) fn run(&mut self, report: &Report) -> io::Result<Ended> {
        match self.begin(Some(report))? {
            Some(ended) => Ok(ended),
            None => self.end(),
        }
    }

    /// Starts the program. Returns why it has not started, or `None` if it runs.
    ///
    /// # Errors
    /// The helper has ended.
    pub(crate) fn begin(&mut self, report: Option<&Report>) -> io::Result<Option<Ended>> {
        let line = line_of(&report)?;
        self.requests.as_mut().ok_or_else(gone)?.write_all(&line)?;
        match next_line(&mut self.answers)?.ok_or_else(gone)? {
            Answer::Started => Ok(None),
            Answer::Ended(ended) => Ok(Some(ended)),
        }
    }

    /// Waits for the end of the program that runs.
    ///
    /// # Errors
    /// The helper has ended.
    pub(crate) fn end(&mut self) -> io::Result<Ended> {
        loop {
            if let Answer::Ended(ended) = next_line(&mut self.answers)?.ok_or_else(gone)? {
                return Ok(ended);
            }
        }
    }
}

/// What the helper answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Started,
    Ended(Ended),
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the process that runs it is gone")
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It ends at the end of its input.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// Runs the helper.
pub(crate) fn serve(arguments: &ExecHelperArguments) -> Outcome {
    // Ctrl-C goes to all processes of a terminal: the receiver decides when this one ends.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    if arguments.without_networks && network::refuse_networks().is_err() {
        return Outcome::InternalError;
    }
    let Some(program) = Program::new(&arguments.exec, arguments.directory.as_deref()) else {
        return Outcome::Usage;
    };
    let mut requests = BufReader::new(io::stdin());
    while let Ok(Some(report)) = next_line::<Option<Report>>(&mut requests) {
        let ended = match program.start(report.as_ref()) {
            Ok(child) => answer(&Answer::Started).map(|()| Ended::of(child)),
            Err(error) => Ok(Ended::NotStarted(error.to_string())),
        };
        if ended.and_then(|ended| answer(&Answer::Ended(ended))).is_err() {
            break;
        }
    }
    Outcome::Complete
}

fn answer(answer: &Answer) -> io::Result<()> {
    let line = line_of(answer)?;
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn line_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// The next value; `None` at the end.
fn next_line<T: serde::de::DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&line)?)) }
}
