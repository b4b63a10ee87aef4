//! The program that runs when something is complete (`--exec`).
//!
//! It gets its arguments as they were typed. There is no shell, and no argument comes from the
//! network. The environment describes what was received, in raw bytes. Standard input is empty. The
//! program's output goes to standard error, so that standard output carries only results. The
//! caller waits for it without a limit.

use crate::failure::Failure;
use fontana::{Outcome, ReceiveReport, SessionKey, wire::Manifest};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program and its arguments.
pub(crate) struct Hook<'a> {
    program: &'a OsStr,
    arguments: &'a [OsString],
    directory: &'a Path,
}

/// The description of a session for the hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    session: String,
    label: Vec<u8>,
    files: u64,
}

impl Described {
    pub(crate) fn new(session: SessionKey, manifest: &Manifest) -> Self {
        Self {
            session: format!("{}/{}", session.source, session.tsi),
            // An environment variable cannot contain NUL.
            label: manifest.label().bytes().filter(|&byte| byte != 0).collect(),
            files: manifest.files().count() as u64,
        }
    }

    /// Only this number of files is received.
    pub(crate) fn select(&mut self, files: u64) {
        self.files = files;
    }
}

impl<'a> Hook<'a> {
    /// `words`: the program and its arguments. `None` if it is empty.
    pub(crate) fn new(words: &'a [OsString], directory: &'a Path) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self { program, arguments, directory })
    }

    /// Runs the program for a completed reception, and waits for its end.
    ///
    /// # Errors
    /// A failure with exit code 5 if it cannot be started or does not succeed.
    pub(crate) fn run(
        &self,
        summary: &ReceiveReport,
        described: &Described,
    ) -> Result<(), Failure> {
        let text = |value: Option<String>| value.unwrap_or_default();
        let directory = std::path::absolute(self.directory);
        let directory = directory.as_deref().unwrap_or(self.directory);
        let status = Command::new(self.program)
            .args(self.arguments)
            .env("FONTANA_DIRECTORY", directory)
            .env(
                "FONTANA_MANIFEST",
                text(summary.manifest.map(|manifest| manifest.hash.to_string())),
            )
            .env(
                "FONTANA_VERSION",
                text(summary.manifest.map(|manifest| manifest.version.to_string())),
            )
            .env("FONTANA_VERIFIED", summary.verified.map_or("", crate::events::verified))
            .env("FONTANA_FILES", described.files.to_string())
            .env("FONTANA_BYTES", summary.bytes.to_string())
            .env("FONTANA_SESSION", &described.session)
            .env("FONTANA_LABEL", OsStr::from_bytes(&described.label))
            .stdin(Stdio::null())
            .stdout(Stdio::from(io::stderr()))
            .status();
        let kept = "what was received is there and verified";
        let failed = |message, hint| Err(Failure::new(Outcome::Io, message, hint));
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                let how = match (status.code(), status.signal()) {
                    (Some(code), _) => format!("exit code {code}"),
                    (None, Some(signal)) => format!("ended by signal {signal}"),
                    (None, None) => "no exit code".to_owned(),
                };
                let message = format!("--exec {:?} failed: {how}", self.program);
                failed(message, format!("{kept}; only the program was not content"))
            }
            Err(error) => {
                let message = format!("--exec {:?} cannot be started: {error}", self.program);
                failed(message, format!("{kept}; name a program that can be run, with its path"))
            }
        }
    }
}
