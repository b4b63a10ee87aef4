//! `fontana send --from-list`: names of files, as another program writes them (KEEP_DATA in Roca
//! and Mordelet 2002, section 4.2.3), up to an order to send them (PUSH_DATA): the end of the list
//! or, in an FCAST session, an empty line.

use fontana::Outcome;
use fontana_console::failure::Failure;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Longest name in bytes: `PATH_MAX` of Linux without the final zero.
const MAX_NAME: usize = 4095;
/// Bytes that a name takes beside its own, about.
const NAME_OVERHEAD: usize = 100;

/// A list that is read.
pub(super) struct NameList {
    input: Box<dyn BufRead + Send>,
    /// For messages.
    place: String,
    /// What follows each name. `None`: nothing has been read yet.
    separator: Option<u8>,
    /// Number of the last line, or of the last name before a NUL byte.
    line: u64,
    /// The line of each name that receivers see.
    seen: BTreeMap<OsString, u64>,
    /// Bytes of memory that further names may take.
    room: usize,
    has_ended: bool,
}

/// What a list has next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Name(ListedPath),
    /// An empty line.
    Push,
    End,
}

/// A path, and the number of its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedPath {
    pub(super) path: PathBuf,
    pub(super) line: u64,
}

/// The names of a list up to the first order to send them, and the rest of it, if it goes on.
pub(super) struct FirstPush {
    pub(super) names: Vec<PathBuf>,
    pub(super) rest: Option<NameList>,
}

impl NameList {
    /// Opens the list; `-` is standard input. `memory`: bytes that its names may take.
    pub(super) fn open(path: &Path, memory: usize) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::new(BufReader::new(io::stdin()), "standard input".into(), memory));
        }
        let file = File::open(path).map_err(|error| {
            let message = format!("cannot open the list {path:?}: {error}");
            Failure::new(Outcome::Io, message, "check its name and permissions")
        })?;
        Ok(Self::new(BufReader::new(file), format!("{path:?}"), memory))
    }

    fn new(input: impl BufRead + Send + 'static, place: String, memory: usize) -> Self {
        Self {
            input: Box::new(input),
            place,
            separator: None,
            line: 0,
            seen: BTreeMap::new(),
            room: memory,
            has_ended: false,
        }
    }

    /// Reads names up to the first order. `is_growing`: the session takes further ones.
    pub(super) fn first_push(mut self, is_growing: bool) -> Result<FirstPush, Failure> {
        let mut names = Vec::new();
        loop {
            match self.next()? {
                Listed::Name(listed) => names.push(listed.path),
                Listed::Push if is_growing && !names.is_empty() => {
                    return Ok(FirstPush { names, rest: Some(self) });
                }
                Listed::Push => {}
                Listed::End if names.is_empty() => {
                    let message = format!("the list has no names: {}", self.place);
                    return Err(Failure::new(Outcome::Usage, message, "write one on each line"));
                }
                Listed::End => return Ok(FirstPush { names, rest: None }),
            }
        }
    }

    /// The next name, or what is in its place. An error is of one name, unless the list has ended
    /// then.
    pub(super) fn next(&mut self) -> Result<Listed, Failure> {
        if self.has_ended {
            return Ok(Listed::End);
        }
        let name = self.read().inspect_err(|_| self.has_ended = true)?;
        match name {
            None => self.has_ended = true,
            Some(name) if name.is_empty() => return Ok(Listed::Push),
            Some(name) => return self.check(PathBuf::from(OsString::from_vec(name))),
        }
        Ok(Listed::End)
    }

    /// Reads up to the next separator. `None`: the list has ended.
    fn read(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let failed = |place: &str, error: io::Error| {
            let message = format!("cannot read the list {place}: {error}");
            Failure::new(Outcome::Io, message, "")
        };
        let separator = self.separator().map_err(|error| failed(&self.place, error))?;
        let mut name = Vec::new();
        let read = self.input.by_ref().take(MAX_NAME as u64 + 1).read_until(separator, &mut name);
        if read.map_err(|error| failed(&self.place, error))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if name.last() == Some(&separator) {
            name.pop();
        }
        let refused = |list: &Self, what: &str, hint: &str| {
            Err(Failure::new(Outcome::Usage, list.at(what), hint))
        };
        if name.len() > MAX_NAME {
            let what = format!("a name of more than {MAX_NAME} bytes");
            return refused(self, &what, "write a name on each line");
        }
        if name.contains(&0) {
            let hint = "write a newline, or a NUL byte, after every name";
            return refused(self, "a NUL byte in a name", hint);
        }
        match self.room.checked_sub(2 * name.len() + NAME_OVERHEAD) {
            Some(room) => self.room = room,
            None => {
                let hint = "raise --memory, or name directories instead of the files in them";
                return refused(self, "no memory for more names", hint);
            }
        }
        Ok(Some(name))
    }

    /// A NUL byte if the first bytes have one, because no name has it; else a newline.
    fn separator(&mut self) -> io::Result<u8> {
        if let Some(separator) = self.separator {
            return Ok(separator);
        }
        loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(start) => {
                    let separator = if start.contains(&0) { 0 } else { b'\n' };
                    return Ok(*self.separator.insert(separator));
                }
            }
        }
    }

    /// Refuses a name that is no file's, or that another line has.
    fn check(&mut self, path: PathBuf) -> Result<Listed, Failure> {
        if path == Path::new("-") {
            let message = self.at("- is no name of a file");
            return Err(Failure::new(Outcome::Usage, message, "a file of this name is ./-"));
        }
        if let Err(error) = path.metadata() {
            let message = self.at(&format!("cannot open {path:?}: {error}"));
            return Err(Failure::new(Outcome::Io, message, "correct the list"));
        }
        // Others are names of directories that are known by where they lead, as `..` is.
        let Some(name) = path.file_name().map(OsStr::to_owned) else {
            return Ok(Listed::Name(ListedPath { path, line: self.line }));
        };
        match self.seen.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert(self.line);
                Ok(Listed::Name(ListedPath { path, line: self.line }))
            }
            Entry::Occupied(first) => {
                let name = Path::new(first.key());
                let what = format!("{name:?} is the name of line {}, too", first.get());
                let hint = "receivers see the last component of each path: rename one of them";
                Err(Failure::new(Outcome::Usage, self.at(&what), hint))
            }
        }
    }

    /// Where the list is, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn at(&self, what: &str) -> String {
        format!("line {} of {}: {what}", self.line, self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::os::unix::ffi::OsStrExt;

    const MEMORY: usize = 1 << 20;

    fn list(bytes: &[u8], memory: usize) -> NameList {
        // Buffers end within names.
        NameList::new(BufReader::with_capacity(64, Cursor::new(bytes.to_vec())), "L".into(), memory)
    }

    fn name(line: u64, path: impl Into<PathBuf>) -> Result<Listed, Failure> {
        Ok(Listed::Name(ListedPath { path: path.into(), line }))
    }

    fn message(result: Result<Listed, Failure>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn names_have_newlines_or_nul_bytes_after_them() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "a\nb"].map(|name| directory.path().join(name));
        [&one, &two].into_iter().for_each(|path| std::fs::write(path, "x").unwrap());
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        for end in [&b""[..], b"\n"] {
            let mut lines = list(&[&bytes(&one), end].concat(), MEMORY);
            assert_eq!(lines.next(), name(1, &one));
            assert_eq!([lines.next(), lines.next()], [Ok(Listed::End), Ok(Listed::End)]);
        }
        let joined = [&bytes(Path::new("/..")), &b"\0"[..], &bytes(&two), b"\0\0"].concat();
        let mut with_nul = list(&joined, MEMORY);
        assert_eq!([with_nul.next(), with_nul.next()], [name(1, "/.."), name(2, two)]);
        assert_eq!([with_nul.next(), with_nul.next()], [Ok(Listed::Push), Ok(Listed::End)]);
    }

    #[test]
    fn an_error_names_the_line_and_of_one_name_ends_nothing() {
        let mut wrong = list(b"/nowhere/x\n-\n/\n\n/etc\n/usr/../etc\n/usr", MEMORY);
        assert!(message(wrong.next()).starts_with("line 1 of L: cannot open \"/nowhere/x\": No"));
        assert_eq!(message(wrong.next()), "line 2 of L: - is no name of a file");
        assert_eq!(wrong.next(), name(3, "/"));
        assert_eq!(wrong.next(), Ok(Listed::Push));
        assert_eq!(wrong.next(), name(5, "/etc"));
        assert_eq!(message(wrong.next()), "line 6 of L: \"etc\" is the name of line 5, too");
        assert_eq!(wrong.next(), name(7, "/usr"));
        assert_eq!(wrong.next(), Ok(Listed::End));
    }

    #[test]
    fn what_is_no_list_ends_it_at_once() {
        let long = |length: usize| [&vec![b'/'; length][..], b"\n/usr"].concat();
        assert_eq!(list(&long(MAX_NAME), MEMORY).next(), name(1, "/"));
        let mixed = [&b"/etc\n".repeat(20)[..], b"/u\0sr\n"].concat();
        for (bytes, memory, what) in [
            (long(MAX_NAME + 1), MEMORY, "line 1 of L: a name of more than 4095 bytes"),
            (b"/dev\n/etc\n".to_vec(), NAME_OVERHEAD + 8, "line 2 of L: no memory for more names"),
            (mixed, MEMORY, "line 21 of L: a NUL byte in a name"),
        ] {
            let mut list = list(&bytes, memory);
            let error = loop {
                match list.next() {
                    Err(failure) if !failure.message.contains("line 1,") => break failure.message,
                    next => assert_ne!(next, Ok(Listed::End)),
                }
            };
            assert_eq!(error, what);
            assert_eq!(list.next(), Ok(Listed::End), "{what}");
        }
    }

    #[test]
    fn an_empty_line_is_an_order_only_where_files_can_join() {
        let first = |growing| list(b"\n/etc\n\n/usr\n", MEMORY).first_push(growing);
        let all = first(false).map_err(drop).ok().unwrap();
        assert_eq!(all.names, [Path::new("/etc"), Path::new("/usr")]);
        assert!(all.rest.is_none());
        let some = first(true).map_err(drop).ok().unwrap();
        assert_eq!(some.names, [Path::new("/etc")]);
        assert_eq!(some.rest.unwrap().next(), name(4, "/usr"));
        for empty in [&b""[..], b"\n\n"] {
            let failure = list(empty, MEMORY).first_push(true).map(drop).unwrap_err();
            assert_eq!(failure.message, "the list has no names: L");
        }
    }

    /// Whatever bytes a list has, it ends, with names that are in it.
    #[test]
    fn hostile_lists_end() {
        let lists = bolero::check!().with_type().cloned().with_iterations(500);
        lists.for_each(|(bytes, memory): (Vec<u8>, u16)| {
            let memory = memory.into();
            let mut list = list(&bytes, memory);
            let most = bytes.len() + 2;
            let ended = (0..most).any(|_| list.next() == Ok(Listed::End));
            assert!(ended && list.room <= memory && list.seen.len() <= most);
        });
    }
}
