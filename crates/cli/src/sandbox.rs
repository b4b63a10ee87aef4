//! Confinement of this process by the kernel, so that a defect in the code that handles packets
//! does not give an attacker the rights of the user.
//!
//! `process` confines a process by all of it: `files` limits which files it reaches (Landlock),
//! `network` and `calls` which sockets and system calls it has (seccomp), and `capabilities` gives
//! up the rights of root. They hold for the calling thread and the threads that it starts, and
//! cannot be lifted. `helper` is a process outside of them, which runs programs.

mod calls;
pub(crate) mod capabilities;
pub(crate) mod files;
pub(crate) mod helper;
pub(crate) mod network;
pub(crate) mod process;

#[cfg(test)]
mod tests;
