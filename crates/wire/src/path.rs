//! Names of files inside a tree, as they come from a publisher who may be hostile.
//!
//! A [`RelativePath`] is a list of components that name something *below* a directory, whatever
//! they are. They are raw bytes, as on Unix. What only some file systems mind (letter case, device
//! names) is for the one who writes to that file system.

use crate::printable::Printable;
use std::cmp::Ordering;
use std::fmt;

/// One or more components: none is empty, `.` or `..`, none contains `/` or NUL, none is longer than
/// [`RelativePath::MAX_COMPONENT_SIZE`], and there are at most [`RelativePath::MAX_DEPTH`].
///
/// Paths are ordered by their components, so that a directory is followed by all that is in it.
/// Displayed, control characters and the like are escaped ([`Printable`]).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RelativePath(Box<[u8]>);

impl RelativePath {
    /// Longest component in bytes: the limit of Linux's file systems (NAME_MAX).
    pub const MAX_COMPONENT_SIZE: usize = 255;
    /// Most components. Trees of people and build systems stay below; every level costs a receiver
    /// an open directory.
    pub const MAX_DEPTH: usize = 32;

    /// The path whose components `path` has between slashes.
    ///
    /// # Errors
    /// [`PathError`] says which rule is broken.
    pub fn new(path: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let path = path.as_ref();
        if path.is_empty() {
            return Err(PathError::Empty);
        }
        if path.starts_with(b"/") {
            return Err(PathError::Absolute);
        }
        let mut depth = 0;
        for component in path.split(|&byte| byte == b'/') {
            check_component(component)?;
            depth += 1;
            if depth > Self::MAX_DEPTH {
                return Err(PathError::Depth { limit: Self::MAX_DEPTH });
            }
        }
        Ok(Self(path.into()))
    }

    /// The path with these components.
    ///
    /// # Errors
    /// As [`RelativePath::new`]; a component with a slash in it is [`PathError::Slash`].
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

    /// The components, from the outermost directory to the name itself.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }

    /// The components with slashes between them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Components that this path and `other` begin with alike.
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

/// Why bytes are not the name of something below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing at all.
    #[error("the path is empty")]
    Empty,
    /// Begins with a slash.
    #[error("the path is absolute")]
    Absolute,
    /// Two slashes in a row, or one at the end.
    #[error("the path has an empty component")]
    EmptyComponent,
    /// `.` as a component.
    #[error("the path has \".\" as a component")]
    Dot,
    /// `..` as a component.
    #[error("the path has \"..\" as a component")]
    DotDot,
    /// A zero byte.
    #[error("the path has a zero byte in it")]
    Nul,
    /// A slash inside a component.
    #[error("a component of the path has a slash in it")]
    Slash,
    /// A component that no file system takes.
    #[error(
        "a component of the path has {actual} bytes, at most {} are possible",
        RelativePath::MAX_COMPONENT_SIZE
    )]
    ComponentSize {
        /// Bytes of the component.
        actual: usize,
    },
    /// Too many components.
    #[error("the path has more than {limit} components")]
    Depth {
        /// How many there may be.
        limit: usize,
    },
    /// From a URI only: a name that is not text, or means something else on some system.
    #[error("the path is not portable: {0}")]
    NotPortable(&'static str),
}
