//! Selection of the names that a receiver takes.

use crate::scan::ScanError;
use crate::scan::check_pattern;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Patterns of the selected names; `None` selects everything.
///
/// ```
/// use fontana_store::Selection;
///
/// let selection = Selection::new(&["*.jpg".into(), "/photos/2026/".into()])?;
/// assert!(selection.takes(b"photos/1999/a.jpg", false));
/// assert!(selection.takes(b"photos/2026/notes.txt", false), "its directory matches");
/// assert!(!selection.takes(b"photos/1999/notes.txt", false));
/// # Ok::<(), fontana_store::ScanError>(())
/// ```
///
/// Patterns are those of `.gitignore`, by the crate `ignore`, relative to the top of the session.
/// They match raw bytes. The time of a match grows with the length of the name, independent of the
/// patterns (they become finite automata).
#[derive(Clone, Debug)]
pub struct Selection(Option<Gitignore>);

impl Selection {
    /// Selects what matches one of `patterns`, and everything below directories that do.
    ///
    /// # Errors
    /// [`ScanError::Pattern`] for the first invalid pattern.
    pub fn new(patterns: &[String]) -> Result<Self, ScanError> {
        if patterns.is_empty() {
            return Ok(Self(None));
        }
        let wrong = |pattern: &str, error: ignore::Error| ScanError::Pattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        };
        let mut builder = GitignoreBuilder::new("");
        builder.allow_unclosed_class(false);
        for pattern in patterns {
            check_pattern(pattern)?;
            builder.add_line(None, pattern).map_err(|error| wrong(pattern, error))?;
        }
        Ok(Self(Some(builder.build().map_err(|error| wrong("", error))?)))
    }

    /// The pattern that selects the file of this name alone; `None` if it is no text for a command
    /// line.
    ///
    /// ```
    /// use fontana_store::Selection;
    ///
    /// assert_eq!(Selection::pattern_of(b"photos/[1].jpg").unwrap(), "/photos/\\[1\\].jpg");
    /// assert_eq!(Selection::pattern_of(b"two\nlines"), None);
    /// ```
    pub fn pattern_of(name: &[u8]) -> Option<String> {
        let name = str::from_utf8(name).ok().filter(|name| !name.contains(char::is_control))?;
        // At the beginning a slash: only this path, and no name in any directory.
        let mut pattern = String::from("/");
        for (index, character) in name.char_indices() {
            let is_last = index + character.len_utf8() == name.len();
            let is_special = matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
            if is_special || (is_last && character == ' ') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        Some(pattern)
    }

    /// True if everything is selected.
    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// True if a relative name, components with slashes between them, is selected.
    pub fn takes(&self, name: &[u8], is_directory: bool) -> bool {
        let name = Path::new(OsStr::from_bytes(name));
        match &self.0 {
            None => true,
            // The crate `ignore` would panic; names that were checked never have a root.
            Some(_) if name.has_root() => false,
            Some(patterns) => patterns.matched_path_or_any_parents(name, is_directory).is_ignore(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_gitignore_on_raw_bytes() {
        let takes = |pattern: &str, name: &[u8], is_directory| {
            Selection::new(&[pattern.into()]).unwrap().takes(name, is_directory)
        };
        for (pattern, name, expected) in [
            ("*.raw", &b"a.raw"[..], true),
            ("*.raw", b"d/e/a.raw", true),
            ("*.raw", b"a.raws", false),
            ("/a", b"a", true),
            ("/a", b"d/a", false),
            ("d/", b"d/e/f", true),
            ("d/", b"d", false), // a file of that name is no directory
            ("d/**/f", b"d/x/y/f", true),
            ("f?", b"f\xff", true),
            ("two\nlines", b"two\nlines", true),
            ("a", b"/a", false),
        ] {
            assert_eq!(takes(pattern, name, false), expected, "{pattern:?} {name:?}");
        }
        assert!(takes("d/", b"d", true));
        let everything = Selection::new(&[]).unwrap();
        assert!(everything.is_everything() && everything.takes(b"anything", false));
    }

    #[test]
    fn the_pattern_of_a_file_selects_it_alone() {
        let names = [
            "a",
            "d/a",
            "*",
            "d/[x]?",
            "x ",
            "back\\slash",
            "!a",
            "#a",
            "it's",
            "a b",
            "a{b",
            "{a,b}",
        ];
        for name in names {
            let pattern = Selection::pattern_of(name.as_bytes()).unwrap();
            let selection = Selection::new(std::slice::from_ref(&pattern)).unwrap();
            let taken = names.iter().filter(|other| selection.takes(other.as_bytes(), false));
            assert_eq!(taken.collect::<Vec<_>>(), [&name], "{pattern}");
        }
        assert_eq!(Selection::pattern_of(b"\xFF"), None);
    }

    #[test]
    fn a_pattern_that_means_nothing_is_refused() {
        for pattern in ["", "  ", "#a", "!a", "[", "a{b"] {
            let refused = Selection::new(&["fine".into(), pattern.into()]);
            let named =
                matches!(&refused, Err(ScanError::Pattern { pattern: p, .. }) if p == pattern);
            assert!(named, "{pattern:?}: {refused:?}");
        }
    }
}
