//! The commit that this program was built from (set by `build.rs`).

/// It, or `unknown`.
pub(crate) const COMMIT: &str = match option_env!("FONTANA_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
