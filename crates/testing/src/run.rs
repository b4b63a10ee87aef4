//! Programs of this workspace, run to their ends.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The result of a run.
pub struct Run {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started, or writes something other than text.
    #[must_use]
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// The same run.
    ///
    /// # Panics
    /// With all output, if the exit code is another one.
    #[expect(clippy::must_use_candidate, reason = "the check may be all that is wanted")]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The events on standard output.
    ///
    /// # Panics
    /// If it wrote other lines, too.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The only event of this name.
    ///
    /// # Panics
    /// If there is none, or several.
    #[must_use]
    pub fn event(&self, name: &str) -> Value {
        let mut found = self.events().into_iter().filter(|event| event["event"] == name);
        let event = found.next().unwrap_or_else(|| panic!("no {name} in {}", self.stdout));
        assert!(found.next().is_none(), "several {name} in {}", self.stdout);
        event
    }
}

/// The arguments, split at spaces, then paths as they are.
///
/// # Panics
/// If a path is not text.
#[must_use]
pub fn arguments(words: &str, paths: &[&Path]) -> Vec<String> {
    let paths = paths.iter().map(|path| path.to_str().expect("text").to_owned());
    words.split_whitespace().map(str::to_owned).chain(paths).collect()
}

/// Gives a command these words. Those that set a variable of the program (`FONTANA_X=1`) set it, as
/// before a command of a shell.
pub fn give<'a, A: AsRef<OsStr>>(command: &'a mut Command, words: &[A]) -> &'a mut Command {
    for word in words.iter().map(AsRef::as_ref) {
        let variable = word.to_str().filter(|word| word.starts_with("FONTANA_"));
        match variable.and_then(|word| word.split_once('=')) {
            Some((name, value)) => command.env(name, value),
            None => command.arg(word),
        };
    }
    command
}

/// A program of another crate of this workspace, in the profile of the test that runs it.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    built(&["--bin", name, "--example", ANY], Path::new(name))
}

/// An example of this workspace, in the profile of the test that runs it.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    built(&["--examples"], &Path::new("examples").join(name))
}

/// Cargo, for a program that cargo has started. It does not see what that was told of its package:
/// build scripts that read it would run again, and everything that depends on them would be built
/// again, now and the next time.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let of_package =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| of_package(name)).for_each(|name| {
        cargo.env_remove(name);
    });
    cargo
}

/// Cargo unites the features of dev-dependencies with those of others where it builds an example,
/// as for tests, and not for programs alone. Without one, each crate whose dependencies have other
/// features then would be built once more, while the tests run.
const ANY: &str = "send_file";

/// `cargo test --workspace` builds all programs and examples; `cargo test --test NAME` does not.
fn built(what: &[&str], path: &Path) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let test = std::env::current_exe().expect("a path");
    let directory = test.ancestors().nth(2).expect("below target/PROFILE/deps");
    let profile = match directory.file_name().and_then(OsStr::to_str) {
        None | Some("debug") => "dev",
        Some(profile) => profile,
    };
    let mut build = cargo();
    // With the features of all crates, as in `cargo test --workspace`: nothing is built twice.
    build.args(["build", "--quiet", "--offline", "--workspace", "--profile", profile]).args(what);
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(build.status().is_ok_and(|status| status.success()), "{build:?}");
    directory.join(path)
}
