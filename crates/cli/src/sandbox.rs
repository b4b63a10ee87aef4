//! Confinement of this process by the kernel, so that a defect in the code that handles packets
//! does not give an attacker the rights of the user.
//!
//! `files` limits which files the process reaches (Landlock), `network` what it does with sockets
//! (seccomp). Both hold for the calling thread and the threads that it starts, and cannot be
//! lifted. `helper` is a process outside of them, which runs the program of `--exec`.

pub(crate) mod files;
pub(crate) mod helper;
pub(crate) mod network;

#[cfg(test)]
mod tests;
