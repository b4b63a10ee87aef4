//! The files that a process reaches: Landlock (landlock(7)).
//!
//! What the process has opened before stays open. No program can be started, no TCP connection
//! opened unless [`Tcp`] says so, and no signal sent to processes outside.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

/// Without this level a file cannot be moved to another directory, as a receiver does with every
/// file that is complete. Linux 5.19.
const LEAST: ABI = ABI::V2;

/// The newest level that is used: it was tested on a kernel that has it. What it restricts, Linux
/// 6.12 has too.
const NEWEST: ABI = ABI::V7;

/// What a confined process may do with a file, or with everything below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Read and list.
    Read,
    /// Read, list, create, write, move and delete files, directories and symbolic links.
    Change,
    /// Create, write, rename and delete files.
    Log,
    /// Delete files.
    Delete,
}

impl Right {
    fn accesses(self) -> BitFlags<AccessFs> {
        match self {
            Self::Read => make_bitflags!(AccessFs::{ReadFile | ReadDir}),
            Self::Change => make_bitflags!(AccessFs::{
                ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | MakeSym
                | RemoveFile | RemoveDir | Refer
            }),
            Self::Log => make_bitflags!(AccessFs::{WriteFile | MakeReg | RemoveFile}),
            Self::Delete => AccessFs::RemoveFile.into(),
        }
    }
}

/// A file or directory, and what may be done with it.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) path: PathBuf,
    pub(crate) right: Right,
}

impl Rule {
    pub(crate) fn new(path: impl Into<PathBuf>, right: Right) -> Self {
        Self { path: path.into(), right }
    }
}

/// What every process reads: settings of the network, its interfaces and what names the lines of a
/// panic; the number of processors, by which the C library shares out its memory; and its program.
pub(crate) fn of_every_process() -> Vec<Rule> {
    let mut rules = vec![
        Rule::new("/proc/self", Right::Read),
        Rule::new("/proc/sys", Right::Read),
        Rule::new("/sys/devices/system/cpu", Right::Read),
    ];
    rules.extend(std::env::current_exe().ok().map(|program| Rule::new(program, Right::Read)));
    rules
}

/// What a confined process may do with TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tcp {
    /// Nothing.
    Refused,
    /// Open connections, to mirrors, and accept none.
    Connect,
}

/// How far the kernel enforces the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enforcement {
    /// All that is asked for.
    Full,
    /// Files, but not all of: truncation, controls of devices, TCP, signals.
    Partial,
    /// Nothing: the kernel has no Landlock, or a level of it that is too old.
    Nothing,
}

/// Rules that could not be enforced.
#[derive(Debug)]
pub(crate) enum ConfineError {
    /// A path cannot be opened, for this reason.
    Path(PathBuf, String),
    /// The kernel refuses the rules.
    System(String),
}

impl Display for ConfineError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path, why) => write!(f, "{path:?} is needed, and {why}"),
            Self::System(why) => f.write_str(why),
        }
    }
}

/// Confines the calling thread, and the threads that it starts, to `rules`. A path that does not
/// exist, or that the user may not reach, is left out: this process cannot use it either.
///
/// # Errors
/// A path cannot be opened for another reason, or the kernel has Landlock and refuses the rules.
pub(crate) fn confine(rules: &[Rule], tcp: Tcp) -> Result<Enforcement, ConfineError> {
    let tcp = match tcp {
        Tcp::Refused => AccessNet::from_all(NEWEST),
        Tcp::Connect => AccessNet::BindTcp.into(),
    };
    let system = |error: RulesetError| ConfineError::System(error.to_string());
    let least = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST));
    let Ok(ruleset) = least else { return Ok(Enforcement::Nothing) };
    let mut ruleset = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.handle_access(tcp))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(system)?;
    for Rule { path, right } in rules {
        let opened = match PathFd::new(or_working_directory(path)) {
            Ok(opened) => opened,
            Err(PathFdError::OpenCall { source, .. }) if is_out_of_reach(&source) => continue,
            Err(error) => return Err(ConfineError::Path(path.clone(), error.to_string())),
        };
        // Rights to directories are no rights to a file.
        let accesses = if path.is_file() {
            right.accesses() & AccessFs::from_file(NEWEST)
        } else {
            right.accesses()
        };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, accesses)).map_err(system)?;
    }
    Ok(match ruleset.restrict_self().map_err(system)?.ruleset {
        RulesetStatus::FullyEnforced => Enforcement::Full,
        RulesetStatus::PartiallyEnforced => Enforcement::Partial,
        RulesetStatus::NotEnforced => Enforcement::Nothing,
    })
}

fn or_working_directory(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
    )
}
