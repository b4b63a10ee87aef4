//! Named threads, whose start may fail, and their panics as errors. A thread runs in the tracing
//! span of its starter.
//!
//! `std::thread::spawn` and `Scope::spawn` panic if the system has no thread left: a limit on
//! processes (`ulimit -u`, the `pids` controller of a container) or no memory for a stack. These
//! functions return that as an error.
//!
//! A caller that returns the error from inside a scope must end the threads that it has started
//! before, by dropping its ends of their channels or by a flag: the scope waits for them.

use crate::sys;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use tracing::Span;

/// The system has no thread left.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread: {0}")]
pub struct ThreadError(#[source] pub io::Error);

/// A panic: a defect of this program, or of code that its user gave it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("thread {thread:?} panicked: {message}")]
pub struct PanicError {
    /// Name of the thread; empty if it has none.
    pub thread: String,
    /// What it panicked with; empty if that is no text.
    pub message: String,
}

impl PanicError {
    /// The panic of a thread. `payload`: what `catch_unwind` or a join returned.
    pub fn new(thread: &str, payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self { thread: thread.to_owned(), message: text.unwrap_or_default().to_owned() }
    }
}

/// Calls `work`. What it owns is dropped also if it panics; what it borrows must then not be used
/// again, except by code that ends.
///
/// # Errors
/// Its panic, which has been printed.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, PanicError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        PanicError::new(std::thread::current().name().unwrap_or_default(), &*payload)
    })
}

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

/// Lets the threads of this process share the memory that the C library of GNU reserves, instead of
/// 64 MiB of address space for each: for processes whose address space is limited. To be called
/// before they are started.
pub fn share_reserved_memory() {
    sys::share_one_arena();
}

/// Lets a process with little memory keep none that it has freed: its threads
/// [share](share_reserved_memory) it, and blocks of 128 KiB are given back. To be called before
/// they are started, and instead of [`return_freed_memory`].
pub fn keep_little_memory() {
    sys::share_one_arena();
    sys::return_blocks_of(LEAST_RETURNED_BYTES);
}

/// Least size of a block of memory that is given back to the system as soon as it is freed.
const RETURNED_BYTES: i32 = 1 << 20;
/// The same of a process with little memory. Each costs page faults, when it is written to again.
const LEAST_RETURNED_BYTES: i32 = 128 << 10;

/// Lets threads of this process give large blocks of memory back to the system as soon as they free
/// them. Without it the C library of GNU keeps them for the next ones, several for each thread: a
/// process whose threads free what others have allocated then has twice the memory that it uses.
pub fn return_freed_memory() {
    sys::return_blocks_of(RETURNED_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_names_its_thread_and_its_message() {
        let silent = |payload: Box<dyn Any + Send>| -> u8 { std::panic::resume_unwind(payload) };
        let catching = move || {
            let text = catch(|| silent(Box::new("why")));
            let owned = catch(|| silent(Box::new("why".to_owned())));
            (text, owned, catch(|| silent(Box::new(7))), catch(|| 7))
        };
        let ended = spawn("worker", catching).unwrap().join().unwrap();
        let panicked = |message: &str| {
            Err(PanicError { thread: "worker".to_owned(), message: message.to_owned() })
        };
        assert_eq!(ended, (panicked("why"), panicked("why"), panicked(""), Ok(7)));
    }
}
