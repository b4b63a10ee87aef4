//! Signals: the first cancels the session, the second ends the program. A limit on the size of
//! files is an error of the write that exceeds it.

use crate::exit;
use crate::failure::Failure;
use fontana::net::thread::spawn;
use fontana::{CancellationToken, Outcome};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Cancels `stop` at the first SIGINT, SIGTERM or SIGHUP; exits at the second.
pub fn stop_on_signals(stop: &CancellationToken) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Outcome::Io, format!("cannot listen for signals: {error}"), "")
    };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let stop = stop.clone();
    let listen = move || {
        for _ in signals.forever() {
            if stop.is_cancelled() {
                // A session that does not stop may wait for a disk or a lock: exit without cleaning
                // up.
                signal_hook::low_level::exit(exit::code(Outcome::Interrupted).into());
            }
            stop.cancel();
        }
    };
    spawn("signals", listen)?;
    Ok(())
}

/// Lets a write that exceeds the limit on the size of files (`ulimit -f`) fail, with a message,
/// instead of ending the program without one.
pub fn survive_file_size_limit() {
    // Without the handler, the program ends as it would without this call.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
