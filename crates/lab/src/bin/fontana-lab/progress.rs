//! Progress on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const CASES: &str = "{bar:24} {pos} of {len} cases, {elapsed}";

/// A bar for the cases of experiments.
pub(crate) fn cases() -> ProgressBar {
    let style = ProgressStyle::with_template(CASES)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━━ ");
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()).with_style(style)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_template_is_valid() {
        assert!(super::ProgressStyle::with_template(super::CASES).is_ok());
    }
}
