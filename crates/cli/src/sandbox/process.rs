//! A process that is confined as a whole.

use super::capabilities::{self, ALL_ATTRIBUTES, ALL_FILES, LOW_PORTS};
use super::files::{self, ConfineError, Enforcement, Rule, Tcp};
use super::network::{self, Sockets};
use fontana_console::console::Console;

/// What a process needs, and keeps.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    /// Its files, and what it does with TCP. `None`: all files that its user reaches.
    pub(crate) files: Option<(&'a [Rule], Tcp)>,
    /// Its sockets. `None` if system calls are filtered already.
    pub(crate) sockets: Option<Sockets<'a>>,
    /// It sets permissions and times of what it writes, and as root of directories of other users.
    pub(crate) sets_attributes: bool,
    /// The ports that it will listen at.
    pub(crate) ports: &'a [u16],
}

/// How far the kernel confines a process.
#[derive(Clone, Debug)]
pub(crate) struct Confined {
    pub(crate) files: Enforcement,
    /// What is not enforced, as sentences.
    pub(crate) lacks: Vec<String>,
}

impl Confined {
    /// Nothing is enforced, as the user wishes.
    pub(crate) fn declined() -> Self {
        Self { files: Enforcement::Nothing, lacks: Vec::new() }
    }

    /// Says what is not enforced.
    pub(crate) fn tell(&self, console: &Console) {
        for lack in &self.lacks {
            console.warning(lack, "");
        }
    }
}

/// Confines the calling thread, and the threads that it starts, as far as the kernel can.
///
/// # Errors
/// The kernel has Landlock, and refuses the rules.
pub(crate) fn confine(needs: &Needs<'_>) -> Result<Confined, ConfineError> {
    let mut lacks = Vec::new();
    let mut kept = ALL_FILES;
    if needs.ports.iter().any(|&port| (1..1024).contains(&port)) {
        kept |= LOW_PORTS;
    }
    if needs.sets_attributes {
        kept |= ALL_ATTRIBUTES;
    }
    let reaches_all = capabilities::reaches_all_files();
    let files = match needs.files {
        Some((rules, tcp)) => {
            let files = files::confine(rules, tcp)?;
            lacks.extend(lack_of_files(files, reaches_all));
            files
        }
        None => Enforcement::Nothing,
    };
    if let Some(sockets) = &needs.sockets
        && let Err(why) = network::confine(sockets)
    {
        lacks.push(format!("the kernel refuses no system calls to this process: {why}"));
    }
    if let Err(why) = capabilities::give_up_others(kept) {
        lacks.push(format!("this process keeps the rights of root: {why}"));
    }
    Ok(Confined { files, lacks })
}

/// What is not enforced of the rules about files. `reaches_all`: the process reads and writes the
/// files of all users.
fn lack_of_files(files: Enforcement, reaches_all: bool) -> Option<String> {
    let lack = match files {
        Enforcement::Full => return None,
        Enforcement::Partial => {
            "this kernel's Landlock is old: the process is confined to its files, but may truncate \
             files or control devices elsewhere"
        }
        Enforcement::Nothing if reaches_all => {
            "this kernel has no Landlock, or one without moves between directories: the process is \
             not confined to its files, and as root it reaches those of all users"
        }
        Enforcement::Nothing => {
            "this kernel has no Landlock, or one without moves between directories: the process is \
             not confined to its files"
        }
    };
    Some(lack.to_owned())
}
