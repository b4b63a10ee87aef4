//! Names of received files and directories. They come from a sender, and are untrusted until
//! checked.

use crate::ours::is_ours;

/// Longest component on Linux's file systems (`NAME_MAX`), in bytes.
const MAX_COMPONENT: usize = 255;

/// Why a name is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no component, or an empty one.
    #[error("a file name, or a component of it, is empty")]
    Empty,
    /// The name is `.` or `..`, which name directories, the second one outside the target.
    #[error("a file cannot be named {0:?}")]
    Dots(String),
    /// The name contains a byte that would end the component or the name.
    #[error("the file name {name:?} contains {byte:?}")]
    Byte {
        /// The name, with invalid UTF-8 replaced.
        name: String,
        /// `/` or NUL.
        byte: char,
    },
    /// The name is longer than file systems allow.
    #[error("a file name has {actual} bytes, at most {limit} are allowed")]
    TooLong {
        /// Bytes of the name.
        actual: usize,
        /// Most bytes of a name.
        limit: usize,
    },
    /// The prefix of the name is reserved for staging directories.
    #[error("the file name {0:?} looks like a staging directory")]
    Reserved(String),
    /// Two files of a session have the same name.
    #[error("two files are named {0:?}")]
    Twice(String),
    /// This file system treats two names as the same.
    #[error("{first:?} and {second:?} are one name here: this file system ignores letter case")]
    CaseClash {
        /// One of them, with invalid UTF-8 replaced.
        first: String,
        /// The other.
        second: String,
    },
    /// The tag is not 1 to 64 ASCII letters, digits, `-` or `_`.
    #[error("{0:?} cannot be part of a staging directory's name")]
    Tag(String),
}

/// The checked name of a received file or directory, relative to the target directory: one or more
/// components, none of which is `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetName(Vec<u8>);

impl TargetName {
    /// Checks a name given as its components, in raw bytes, the outermost directory first.
    ///
    /// # Errors
    /// [`NameError`]: an invalid name is not repaired, because the result would be another name.
    pub fn new<C: AsRef<[u8]>>(components: &[C]) -> Result<Self, NameError> {
        let first = components.first().ok_or(NameError::Empty)?.as_ref();
        if is_ours(first) {
            return Err(NameError::Reserved(shown(first)));
        }
        components.iter().try_for_each(|component| check(component.as_ref()))?;
        let components: Vec<_> = components.iter().map(AsRef::as_ref).collect();
        Ok(Self(components.join(&b'/')))
    }

    /// The components in raw bytes, with slashes between them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The directory that contains it; `None` for the target directory itself.
    pub(crate) fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|&byte| byte == b'/')?;
        self.0.get(..slash).map(|parent| Self(parent.to_owned()))
    }

    /// The directories above it, the outermost first.
    pub(crate) fn parents(&self) -> Vec<Self> {
        let mut parents: Vec<_> =
            std::iter::successors(self.parent(), TargetName::parent).collect();
        parents.reverse();
        parents
    }

    /// Its last component.
    pub(crate) fn last(&self) -> &[u8] {
        self.0.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }
}

fn check(name: &[u8]) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_COMPONENT {
        return Err(NameError::TooLong { actual: name.len(), limit: MAX_COMPONENT });
    }
    if name == b"." || name == b".." {
        return Err(NameError::Dots(shown(name)));
    }
    if let Some(&byte) = name.iter().find(|&&byte| byte == b'/' || byte == 0) {
        return Err(NameError::Byte { name: shown(name), byte: byte.into() });
    }
    Ok(())
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(components: &[&[u8]]) -> Result<(), NameError> {
        TargetName::new(components).map(drop)
    }

    #[test]
    fn a_plain_name_is_taken_whatever_its_bytes_mean() {
        let longest = vec![b'x'; 255];
        let names: [&[u8]; 8] =
            [b"a", b"...", b"a b", b".hidden", b"\xff\xfe", b"\n\x1b[2J", b"CON", &longest];
        for name in names {
            assert_eq!(check(&[name]), Ok(()), "{name:?}");
            assert_eq!(TargetName::new(&[name]).unwrap().as_bytes(), name);
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        assert_eq!(check(&[]), Err(NameError::Empty));
        for around in [false, true] {
            // Alone, and between two valid components.
            let check = |name: &[u8]| match around {
                false => check(&[name]),
                true => check(&[b"a", name, b"b"]),
            };
            assert_eq!(check(b""), Err(NameError::Empty));
            assert_eq!(check(b"."), Err(NameError::Dots(".".into())));
            assert_eq!(check(b".."), Err(NameError::Dots("..".into())));
            for byte in ['/', '\0'] {
                for name in [format!("{byte}a"), format!("a{byte}"), format!("..{byte}a")] {
                    let expected = NameError::Byte { name: name.clone(), byte };
                    assert_eq!(check(name.as_bytes()), Err(expected));
                }
            }
            let too_long = NameError::TooLong { actual: 256, limit: 255 };
            assert_eq!(check(&[b'x'; 256]), Err(too_long));
        }
        let ours = b".fontana-pipe-0123456789abcdef";
        assert!(matches!(check(&[ours]), Err(NameError::Reserved(_))));
        assert!(matches!(check(&[ours, b"0"]), Err(NameError::Reserved(_))));
        assert_eq!(check(&[b"a", ours]), Ok(()), "only the target has staging in it");
        assert_eq!(check(&[b".fontana-notes"]), Ok(()));
    }

    #[test]
    fn a_name_knows_the_directories_above_it() {
        let name = TargetName::new(&["a", "b", "c"]).unwrap();
        let above = [TargetName::new(&["a"]).unwrap(), TargetName::new(&["a", "b"]).unwrap()];
        assert_eq!((name.parents(), name.last()), (above.to_vec(), &b"c"[..]));
        assert_eq!((above[0].parent(), above[0].last()), (None, &b"a"[..]));
    }
}
