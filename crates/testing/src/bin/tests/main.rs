//! All tests of the workspace, as `cargo test --workspace` runs them, but those that mostly wait
//! run beside the others: `cargo tests [OPTION OF CARGO TEST]...`
//!
//! The output of a program is printed when the program has ended, with its time. Up to
//! [`FEW`] tests of a program that fail run once more when all others have ended: a host that
//! does not run a thread for seconds makes any test of time fail.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its results, and what it does")]

use serde::Deserialize;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

/// Test programs that wait for packets at a rate most of their time. Each runs beside all others,
/// which take the processors one after another.
const WAITING: [&str; 2] = ["namespaces", "fontana"];

/// More tests than this do not fail by the host.
const FEW: usize = 3;

/// A line of `cargo test --message-format json`; lines without a program are left out.
#[derive(Deserialize)]
struct Built {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A test program.
struct Program {
    executable: PathBuf,
    /// The directory of its package, where cargo runs it.
    directory: PathBuf,
    name: String,
    waits: bool,
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--") {
        println!("options of cargo test only; single tests: cargo test -p CRATE NAME");
        return ExitCode::from(2);
    }
    match run() {
        Ok(failed) if failed.is_empty() => ExitCode::SUCCESS,
        Ok(failed) => {
            println!("\nfailed: {}", failed.join(", "));
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds and runs everything. Returns what failed.
fn run() -> io::Result<Vec<String>> {
    let Some(programs) = build()? else { return Ok(vec!["the build".into()]) };
    let (waiting, computing): (Vec<_>, Vec<_>) = programs.iter().partition(|program| program.waits);
    let first = Mutex::new(Vec::new());
    let report = |program| {
        if let Err(failure) = Program::run(program, &[]) {
            let mut first = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.push((program, failure));
        }
    };
    thread::scope(|scope| {
        waiting.iter().for_each(|program| {
            scope.spawn(|| report(program));
        });
        computing.iter().for_each(|program| report(program));
    });
    let mut failed = Vec::new();
    let first = first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (program, Failure { error, tests }) in first {
        if (1..=FEW).contains(&tests.len()) && program.run(&tests).is_ok() {
            println!("\npassed when they ran alone: {}", tests.join(", "));
        } else {
            failed.push(format!("{} ({error}) {}", program.name, tests.join(", ")));
        }
    }
    if !cargo_test().arg("--doc").status()?.success() {
        failed.push("examples of the documentation".into());
    }
    Ok(failed)
}

/// Builds all test programs, and the programs and examples that they run; `None` if that fails.
fn build() -> io::Result<Option<Vec<Program>>> {
    let mut cargo = cargo_test();
    cargo.args(["--no-run", "--message-format", "json-render-diagnostics"]).stdout(Stdio::piped());
    let mut child = cargo.spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let lines = io::BufRead::lines(lines).collect::<io::Result<Vec<_>>>()?;
    let built = lines.iter().filter_map(|line| serde_json::from_str::<Built>(line).ok());
    let programs = built.filter(|built| built.profile.test).filter_map(|built| {
        let is_test = built.target.kind.iter().any(|kind| kind == "test");
        Some(Program {
            waits: is_test && WAITING.contains(&built.target.name.as_str()),
            executable: built.executable?,
            directory: built.manifest_path.parent()?.to_owned(),
            name: format!("{} {}", built.target.kind.join(" "), built.target.name),
        })
    });
    let programs = programs.collect();
    Ok(child.wait()?.success().then_some(programs))
}

/// `cargo test` of the workspace, with the options of this program.
fn cargo_test() -> Command {
    let mut cargo = fontana_testing::cargo();
    cargo.args(["test", "--workspace"]).args(std::env::args_os().skip(1));
    cargo
}

impl Program {
    /// Runs these tests of it, one after another, or all if there are none. Prints what it printed.
    fn run(&self, tests: &[String]) -> Result<(), Failure> {
        let began = Instant::now();
        eprintln!("     running {}", self.name);
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        if !tests.is_empty() {
            command.args(["--exact", "--test-threads", "1"]).args(tests);
        }
        let output = command.output()?;
        let mut out = io::stdout().lock();
        writeln!(out, "\n     {}, {:.0} s", self.name, began.elapsed().as_secs_f64())?;
        out.write_all(&output.stdout)?;
        out.write_all(&output.stderr)?;
        if output.status.success() {
            return Ok(());
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        // Those that should panic have that behind their names.
        let name = |line: &str| {
            let named = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(named.split(' ').next()?.into())
        };
        let tests = printed.lines().filter_map(name).collect();
        Err(Failure { error: io::Error::other(output.status.to_string()), tests })
    }
}

/// A run of a program that failed.
struct Failure {
    error: io::Error,
    /// The tests that failed; none if the program ended otherwise.
    tests: Vec<String>,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self { error, tests: Vec::new() }
    }
}
