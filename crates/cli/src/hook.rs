//! The program that runs when something is complete (`--exec`).
//!
//! It gets its arguments as they were typed. There is no shell, and no argument comes from the
//! network. The environment describes what was received. Standard input is empty. The
//! program's output goes to standard error, so that standard output carries only results. The
//! caller waits for it without a limit.

use fontana::{AcceptedManifest, Outcome, SessionKey, Verified, wire::Manifest};
use fontana_console::failure::Failure;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program and its arguments.
pub(crate) struct Program<'a> {
    program: &'a OsStr,
    arguments: &'a [OsString],
    /// What `FONTANA_DIRECTORY` says.
    directory: Option<&'a Path>,
}

/// The description of a session for the hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    session: String,
    label: String,
    files: u64,
}

impl Described {
    pub(crate) fn new(session: SessionKey, manifest: &Manifest) -> Self {
        Self {
            session: format!("{}/{}", session.source, session.tsi),
            // An environment variable cannot contain NUL.
            label: manifest.label().replace('\0', ""),
            files: manifest.files().count() as u64,
        }
    }

    /// Only this number of files is received.
    pub(crate) fn select(&mut self, files: u64) {
        self.files = files;
    }
}

/// What the program's environment says of a completed reception.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Empty without a manifest.
    manifest: String,
    /// Empty without a manifest.
    version: String,
    verified: String,
    files: u64,
    bytes: u64,
    session: String,
    label: String,
}

impl Report {
    pub(crate) fn new(
        manifest: Option<AcceptedManifest>,
        verified: Option<Verified>,
        bytes: u64,
        described: &Described,
    ) -> Self {
        let text = |value: Option<String>| value.unwrap_or_default();
        Self {
            manifest: text(manifest.map(|manifest| manifest.hash.to_string())),
            version: text(manifest.map(|manifest| manifest.version.to_string())),
            verified: text(verified.map(|v| crate::events::verified(v).to_owned())),
            files: described.files,
            bytes,
            session: described.session.clone(),
            label: described.label.clone(),
        }
    }
}

/// How the program ended.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    Success,
    /// It failed, in this way.
    Failed(String),
    /// It could not be started, for this reason.
    NotStarted(String),
}

impl Ended {
    /// Waits for the end of a program.
    pub(crate) fn of(mut child: Child) -> Self {
        match child.wait() {
            Ok(status) if status.success() => Self::Success,
            Ok(status) => Self::Failed(match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => "no exit code".to_owned(),
            }),
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    /// A failure with exit code 5 unless it was a success. `program`: its name.
    pub(crate) fn check(self, program: &OsStr) -> Result<(), Failure> {
        let kept = "what was received is there and verified";
        let (message, hint) = match self {
            Self::Success => return Ok(()),
            Self::Failed(how) => (
                format!("--exec {program:?} failed: {how}"),
                format!("{kept}; only the program was not content"),
            ),
            Self::NotStarted(why) => (
                format!("--exec {program:?} cannot be started: {why}"),
                format!("{kept}; name a program that can be run, with its path"),
            ),
        };
        Err(Failure::new(Outcome::Io, message, hint))
    }
}

impl<'a> Program<'a> {
    /// `words`: the program and its arguments. `None` if it is empty.
    pub(crate) fn new(words: &'a [OsString], directory: Option<&'a Path>) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self { program, arguments, directory })
    }

    /// Runs the program, and waits for its end.
    pub(crate) fn run(&self, report: &Report) -> Ended {
        match self.start(Some(report)) {
            Ok(child) => Ended::of(child),
            Err(error) => Ended::NotStarted(error.to_string()),
        }
    }

    /// Starts the program. `report`: the completed reception that its environment describes, if it
    /// runs for one.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(&self, report: Option<&Report>) -> io::Result<Child> {
        let mut command = Command::new(self.program);
        command.args(self.arguments).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
        if let Some(directory) = self.directory {
            let absolute = std::path::absolute(directory);
            let directory = absolute.as_deref().unwrap_or(directory);
            command.env("FONTANA_DIRECTORY", directory);
        }
        if let Some(report) = report {
            command
                .env("FONTANA_MANIFEST", &report.manifest)
                .env("FONTANA_VERSION", &report.version)
                .env("FONTANA_VERIFIED", &report.verified)
                .env("FONTANA_FILES", report.files.to_string())
                .env("FONTANA_BYTES", report.bytes.to_string())
                .env("FONTANA_SESSION", &report.session)
                .env("FONTANA_LABEL", &report.label);
        }
        command.spawn()
    }
}
