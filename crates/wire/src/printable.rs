//! Escaping of received names for display.

use std::fmt::{self, Write as _};

/// Adapter that displays bytes as text in which every character is visible. Control characters,
/// format characters (bidirectional overrides, zero-width characters, tags), line separators and
/// bytes that are not UTF-8 appear as `\u{...}` and `\x..`. A backslash is doubled, so that
/// different names never look the same.
///
/// ```
/// use fontana_wire::Printable;
///
/// assert_eq!(Printable("naïve.txt").to_string(), "naïve.txt");
/// assert_eq!(Printable("\x1b[2Jgone").to_string(), "\\u{1b}[2Jgone");
/// assert_eq!(Printable(b"caf\xe9").to_string(), "caf\\xe9");
/// ```
///
/// A file name may contain terminal escape sequences that change earlier output, or Unicode
/// controls that reverse the order of what follows (`gpj.exe` shown as `exe.jpg`). [`Printable`]
/// escapes such characters.
#[derive(Clone, Copy)]
pub struct Printable<T>(pub T);

impl<T: AsRef<[u8]>> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_ref().utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    c if is_active(c) => write!(f, "{}", c.escape_unicode())?,
                    c => f.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl<T: AsRef<[u8]>> fmt::Debug for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// True for characters of Unicode's general categories Cc (control), Cf (format), Zl and Zp (line
/// and paragraph separators), and for blanks that fonts draw as nothing.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{feff}'
            | '\u{600}'..='\u{605}' | '\u{890}'..='\u{891}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
