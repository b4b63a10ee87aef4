//! File names inside a tree, received from a publisher that may be hostile.

use crate::printable::Printable;
use std::cmp::Ordering;
use std::fmt;

/// A relative path of 1 to [`RelativePath::MAX_DEPTH`] components. No component is empty, `.` or
/// `..`, contains `/` or NUL, or is longer than [`RelativePath::MAX_COMPONENT_SIZE`]. So a path
/// always names something *below* a directory. Components are raw bytes, as on Unix. Code that
/// writes to a file system checks what only that file system restricts, such as letter case and
/// device names.
///
/// Paths are ordered by their components, so that a directory directly precedes its content.
/// [`Display`](fmt::Display) escapes control characters and the like ([`Printable`]).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RelativePath(Box<[u8]>);

impl RelativePath {
    /// Longest component in bytes: the limit of Linux's file systems (NAME_MAX).
    pub const MAX_COMPONENT_SIZE: usize = 255;
    /// Largest number of components. Source trees and build trees stay below it, and every level
    /// takes an open directory in a receiver.
    pub const MAX_DEPTH: usize = 32;

    /// The path whose components are separated by slashes in `path`.
    ///
    /// # Errors
    /// [`PathError`] names the violated rule.
    pub fn new(path: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let path = path.as_ref();
        if path.is_empty() {
            return Err(PathError::Empty);
        }
        if path.starts_with(b"/") {
            return Err(PathError::Absolute);
        }
        for (above, component) in path.split(|&byte| byte == b'/').enumerate() {
            check_component(component)?;
            if above >= Self::MAX_DEPTH {
                return Err(PathError::Depth { limit: Self::MAX_DEPTH });
            }
        }
        Ok(Self(path.into()))
    }

    /// The path with these components.
    ///
    /// # Errors
    /// As [`RelativePath::new`], and [`PathError::Slash`] for a component that contains a slash.
    pub fn from_components<C: AsRef<[u8]>>(
        components: impl IntoIterator<Item = C>,
    ) -> Result<Self, PathError> {
        let mut path = Vec::new();
        for (index, component) in components.into_iter().enumerate() {
            let component = component.as_ref();
            if component.contains(&b'/') {
                return Err(PathError::Slash);
            }
            check_component(component)?;
            if index > 0 {
                path.push(b'/');
            }
            path.extend(component);
        }
        Self::new(path)
    }

    /// Components, from the outermost directory to the name itself.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }

    /// Components, separated by slashes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Number of leading components that this path and `other` have in common.
    pub(crate) fn shared_depth(&self, other: &Self) -> usize {
        self.components().zip(other.components()).take_while(|(a, b)| a == b).count()
    }

    /// True if this path lies below `directory`, at any depth.
    pub fn is_below(&self, directory: &Self) -> bool {
        self.0.strip_prefix(&*directory.0).is_some_and(|rest| rest.starts_with(b"/"))
    }
}

fn check_component(component: &[u8]) -> Result<(), PathError> {
    match component {
        b"" => Err(PathError::EmptyComponent),
        b"." => Err(PathError::Dot),
        b".." => Err(PathError::DotDot),
        _ if component.contains(&0) => Err(PathError::Nul),
        _ if component.len() > RelativePath::MAX_COMPONENT_SIZE => {
            Err(PathError::ComponentSize { actual: component.len() })
        }
        _ => Ok(()),
    }
}

impl Ord for RelativePath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.components().cmp(other.components())
    }
}

impl PartialOrd for RelativePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable(&self.0).fmt(f)
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Printable(&self.0), f)
    }
}

/// Reason why bytes are not a relative path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A path without bytes.
    #[error("the path is empty")]
    Empty,
    /// A path that begins with a slash.
    #[error("the path is absolute")]
    Absolute,
    /// Two slashes in a row, or one at the end.
    #[error("the path has an empty component")]
    EmptyComponent,
    /// A component `.`.
    #[error("the path has \".\" as a component")]
    Dot,
    /// A component `..`.
    #[error("the path has \"..\" as a component")]
    DotDot,
    /// A zero byte.
    #[error("the path has a zero byte in it")]
    Nul,
    /// A slash inside a component.
    #[error("a component of the path has a slash in it")]
    Slash,
    /// A component that is too long for file systems.
    #[error(
        "a component of the path has {actual} bytes, at most {} are possible",
        RelativePath::MAX_COMPONENT_SIZE
    )]
    ComponentSize {
        /// Length of the component in bytes.
        actual: usize,
    },
    /// Too many components.
    #[error("the path has more than {limit} components")]
    Depth {
        /// Largest number of components.
        limit: usize,
    },
    /// Only for names from a URI: a name that is not text, or that has a special meaning on some
    /// system.
    #[error("the path is not portable: {0}")]
    NotPortable(&'static str),
}
