//! `--log`: what the library traces, on standard error.

use tracing_subscriber::EnvFilter;

/// What is traced.
#[derive(Clone, Debug)]
pub(crate) struct LogFilter(String);

/// Parses a filter, in the syntax of `tracing-subscriber`: `debug`, `fontana_net=debug,info`.
pub(crate) fn parse(text: &str) -> Result<LogFilter, String> {
    EnvFilter::builder()
        .parse(text)
        .map(|_| LogFilter(text.to_owned()))
        .map_err(|error| format!("{error}; try info, debug or fontana_net=debug"))
}

/// Writes what the filter selects to standard error from now on.
pub(crate) fn start(LogFilter(filter): LogFilter) {
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter));
    // It fails if there is one already, and nothing else starts one.
    let _ = log.with_writer(std::io::stderr).try_init();
}
