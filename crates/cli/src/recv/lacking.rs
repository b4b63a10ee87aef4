//! The files that an incomplete reception has, and those that it lacks: in the form of `--only`.

use crate::events::ReceiveEvent as Line;
use fontana::wire::Printable;
use fontana::{IncompleteFiles, MissingFile};
use fontana_console::console::Console;
use fontana_console::units::Count;

/// Files that are listed for people.
const LISTED: usize = 20;

/// Shows which files have their names, and lists the others: for people the first ones, and none if
/// that is all of the content.
pub(super) fn show(files: &IncompleteFiles, console: &Console) {
    for MissingFile { path, only, .. } in &files.missing {
        let (name, only) = (Printable(path.as_bytes()).to_string(), only.clone());
        console.event(&Line::Lacking { name, only });
    }
    if (files.missing.len() as u64) < files.wanted {
        console.say(sentence(files));
    }
}

fn sentence(IncompleteFiles { wanted, named, missing, .. }: &IncompleteFiles) -> String {
    let listed = missing.iter().take(LISTED).map(|MissingFile { path, only, .. }| match only {
        Some(pattern) => format!(" --only {}", quoted(pattern)),
        None => format!(" {}", Printable(path.as_bytes())),
    });
    let listed: String = listed.collect();
    let more = match missing.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more, all with --json"),
    };
    let have = if *named == 1 { "has its name" } else { "have their names" };
    let of = Count(*wanted, "file");
    match missing.len() {
        0 => format!("{named} of {of} {have}, and no byte is missing of the others"),
        _ => format!("{named} of {of} {have}; bytes are missing of:{listed}{more}"),
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::wire::RelativePath;

    #[test]
    fn the_first_ones_are_listed() {
        let mut files = IncompleteFiles::default();
        (files.wanted, files.named) = (40, 15);
        for number in 10..35 {
            files.missing.push(MissingFile::new(RelativePath::new(format!("d/{number}")).unwrap()));
        }
        let said = sentence(&files);
        assert!(said.starts_with("15 of 40 files have their names; bytes are missing of: --only"));
        assert!(said.ends_with(" --only '/d/29' and 5 more, all with --json"), "{said}");
        files.missing.truncate(1);
        assert!(sentence(&files).ends_with("missing of: --only '/d/10'"));
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
    }
}
