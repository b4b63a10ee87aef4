//! Network namespaces of this process, without names (network_namespaces(7)).
//!
//! A thread that [enters](Namespace::enter) a namespace has its sockets there, and so have the
//! programs and threads that it starts: the thread acts as a host. iproute2's `ip` creates
//! interfaces inside; the other end of a pair goes to another namespace by its
//! [path](Namespace::path). A namespace has no name in the file system and exists while a
//! descriptor of it is open, so it vanishes with its contents when the process ends for any reason.
//!
//! It needs root (`CAP_SYS_ADMIN`), which every user has in a user namespace, where these are
//! allowed: `unshare --map-root-user --net PROGRAM`. Linux only; elsewhere [`Namespace::new`]
//! returns an error.
//!
//! ```no_run
//! use fontana_net::{Interfaces, Namespace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (left, right) = (Namespace::new()?, Namespace::new()?);
//! let path = right.path();
//! left.ip(&format!("link add eth0 up type veth peer name eth0 netns {path}"))?;
//! right.ip("link set eth0 up\n addr add 10.0.0.2/24 dev eth0")?;
//! let interfaces = right.within(Interfaces::list)??;
//! # Ok(())
//! # }
//! ```

mod switch;

pub use switch::Switch;

use crate::sys;
use crate::thread::{ThreadError, spawn, spawn_scoped};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;

/// A network namespace. A new one contains only a loopback interface, which is down.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

/// Why a namespace cannot be created or configured.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The process lacks the rights.
    #[error("a network namespace is only for root")]
    NotPermitted,
    /// iproute2 is not installed.
    #[error("program `ip` not found; install the package iproute2")]
    NoProgram,
    /// A command of `ip` failed.
    #[error("ip: {said}")]
    Refused {
        /// The output of `ip`: the system's reason, and the line of the failed command.
        said: String,
    },
    /// Another error of the system.
    #[error("network namespace: {0}")]
    System(#[source] io::Error),
}

impl Namespace {
    /// Creates a namespace. The calling thread does not enter it.
    ///
    /// # Errors
    /// The process lacks the rights, or the system has no namespaces, or no more of them.
    pub fn new() -> Result<Self, NamespaceError> {
        // The descriptor is opened by a thread that has entered a new namespace.
        let inside = spawn("namespace", sys::new_network_namespace).map_err(no_thread)?;
        join(inside.join()).map(Self).map_err(failed)
    }

    /// Creates a namespace that sends no frames of its own: interfaces without IPv6 send no
    /// neighbor and router solicitations. If the system refuses this, they send a few control
    /// frames.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn silent() -> Result<Self, NamespaceError> {
        let namespace = Self::new()?;
        let silence = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let _ = namespace.within(silence)?;
        Ok(namespace)
    }

    /// Moves the calling thread here permanently. What it opens and starts from now on is here;
    /// what it has opened before stays elsewhere.
    ///
    /// # Errors
    /// The process lacks the rights.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        sys::enter_network_namespace(self.0.as_fd()).map_err(failed)
    }

    /// Runs `work` here, on a new thread, and waits for it.
    ///
    /// # Errors
    /// As [`enter`](Self::enter), or if the thread cannot be started.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        thread::scope(|scope| {
            let inside = || self.enter().map(|()| work());
            let inside = spawn_scoped(scope, "namespace", inside).map_err(no_thread)?;
            join(inside.join())
        })
    }

    /// Runs these commands here by `ip -batch`, one per line, until one fails.
    ///
    /// # Errors
    /// There is no such program, or one of the commands failed.
    pub fn ip(&self, commands: &str) -> Result<(), NamespaceError> {
        self.within(|| {
            let mut ip = Command::new("ip");
            ip.args(["-batch", "-"]);
            ip.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut ip = ip.spawn().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => NamespaceError::NoProgram,
                _ => NamespaceError::System(error),
            })?;
            // An error is ignored, because `ip` reports it better: it has ended before reading
            // everything.
            let _ = ip.stdin.take().map(|mut to| to.write_all(commands.as_bytes()));
            let output = ip.wait_with_output().map_err(NamespaceError::System)?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr);
            Err(NamespaceError::Refused { said: said.trim().replace('\n', "; ") })
        })?
    }

    /// The path by which other programs find it while it exists: `ip link ... netns PATH`.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Resumes a panic of another thread in this one.
fn join<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn no_thread(ThreadError(error): ThreadError) -> NamespaceError {
    NamespaceError::System(error)
}

fn failed(error: io::Error) -> NamespaceError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NamespaceError::NotPermitted,
        _ => NamespaceError::System(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interfaces;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// A namespace if this process may create one; otherwise prints that the test is skipped.
    fn namespace() -> Option<Namespace> {
        match Namespace::new() {
            Ok(namespace) => Some(namespace),
            Err(NamespaceError::NotPermitted) => {
                fontana_testing::skip("network namespaces need root");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn names() -> Vec<String> {
        Interfaces::list().unwrap().iter().map(|interface| interface.name.clone()).collect()
    }

    #[test]
    fn a_thread_enters_a_namespace_alone() {
        let Some(namespace) = namespace() else { return };
        let before = names();
        namespace.ip("link add only-here type veth peer name other").unwrap();
        let inside = namespace.within(names).unwrap();
        assert!(inside.contains(&"only-here".to_owned()), "{inside:?}");
        let started = namespace.within(|| thread::spawn(names).join().unwrap()).unwrap();
        assert_eq!(started, inside, "threads that it starts are there too");
        assert_eq!(names(), before);
    }

    #[test]
    fn sockets_of_two_namespaces_exchange_datagrams_over_a_pair_of_interfaces() {
        let Some(left) = namespace() else { return };
        let right = Namespace::new().unwrap();
        let pair = format!("link add eth0 type veth peer name eth0 netns {}", right.path());
        left.ip(&pair).unwrap();
        for (namespace, host) in [(&left, 1), (&right, 2)] {
            let commands = format!("addr add 10.0.0.{host}/24 dev eth0\nlink set eth0 up");
            namespace.ip(&commands).unwrap();
        }
        let open = |namespace: &Namespace| namespace.within(|| UdpSocket::bind("0.0.0.0:7701"));
        let (from, to) = (open(&left).unwrap().unwrap(), open(&right).unwrap().unwrap());
        to.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        from.send_to(b"here", "10.0.0.2:7701").unwrap();
        let mut bytes = [0; 8];
        let (length, source) = to.recv_from(&mut bytes).unwrap();
        assert_eq!(
            (&bytes[..length], source.to_string().as_str()),
            (&b"here"[..], "10.0.0.1:7701")
        );
    }

    #[test]
    fn a_failed_command_of_ip_is_reported_with_its_line() {
        let Some(namespace) = namespace() else { return };
        let error = namespace.ip("link set lo up\nlink set there-is-no up").unwrap_err();
        let said = error.to_string();
        assert!(said.contains("there-is-no") && said.contains(":2"), "{said}");
    }

    #[test]
    fn a_panic_inside_is_resumed_outside() {
        let Some(namespace) = namespace() else { return };
        let inside = || namespace.within(|| -> u8 { panic!("inside") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(inside)).is_err());
    }
}
