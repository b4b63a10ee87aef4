//! `--log`: the library's trace on standard error.

use tracing_subscriber::EnvFilter;

/// A filter with valid syntax.
#[derive(Clone, Debug)]
pub struct LogFilter(String);

/// Parses a filter, in the syntax of `tracing-subscriber`: `debug`, `fontana_net=debug,info`.
pub fn parse(text: &str) -> Result<LogFilter, String> {
    EnvFilter::builder()
        .parse(text)
        .map(|_| LogFilter(text.to_owned()))
        .map_err(|error| format!("{error}; try info, debug or fontana_net=debug"))
}

/// Writes what the filter selects to standard error from now on.
pub fn start(LogFilter(filter): LogFilter) {
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter));
    // It fails only if a subscriber is installed already; no other code installs one.
    let _ = log.with_writer(std::io::stderr).try_init();
}
