//! Named threads, whose start may fail. A thread runs in the tracing span of its starter.
//!
//! `std::thread::spawn` and `Scope::spawn` panic if the system has no thread left: a limit on
//! processes (`ulimit -u`, the `pids` controller of a container) or no memory for a stack. These
//! functions return that as an error.
//!
//! A caller that returns the error from inside a scope must end the threads that it has started
//! before, by dropping its ends of their channels or by a flag: the scope waits for them.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use tracing::Span;

/// The system has no thread left.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread: {0}")]
pub struct ThreadError(#[source] pub io::Error);

/// Starts a thread. Linux shows the first 15 bytes of `name` (`top -H`).
///
/// # Errors
/// The system has no thread left.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ThreadError> {
    let span = Span::current();
    let work = move || span.in_scope(work);
    Builder::new().name(name.to_owned()).spawn(work).map_err(ThreadError)
}

/// Starts a thread of a scope. Linux shows the first 15 bytes of `name` (`top -H`).
///
/// # Errors
/// The system has no thread left.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ThreadError> {
    let span = Span::current();
    let work = move || span.in_scope(work);
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(ThreadError)
}
