//! Documents and comments keep to a few rules of language: no word of a short list, and at most
//! [`COLUMNS`] columns. `allowed.txt` lists what is left to rewrite; its numbers only go down.

use super::{files, lines_outside_fences, numbered, read, without_code};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Width of a line of prose. Rows of tables, code, and lines with an address are exempt.
const COLUMNS: usize = 100;

/// Words and phrases, in lower case, with what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("nobody", "name the actor: no receiver, no host"),
    ("somebody", "name the actor: a user, an attacker"),
    ("anybody", "name the actor: any host"),
    ("everybody", "name the actor: all receivers"),
    ("whoever", "name the actor: the user who ..."),
    ("anew", "again"),
    ("at hand", "available"),
    ("heard enough", "reception complete"),
    ("poisoned", "corrupt"),
    ("neighbours", "other load on the host"),
    ("by turns", "alternating runs"),
    ("way out", "hint"),
    ("pour", "send"),
    ("pours", "sends"),
    ("poured", "sent"),
    ("pouring", "sending"),
    ("trains", "GSO batches"),
];

/// A page that the program writes (`fontana-lab run all --out docs`).
const GENERATED: &str = "docs/lab.md";

const LIST: &str = "crates/cli/tests/house/documents/allowed.txt";

#[derive(Default)]
struct Hits {
    words: Vec<String>,
    columns: Vec<String>,
}

#[test]
fn prose_has_no_more_hits_than_allowed() {
    let found = hits();
    let allowed = allowed();
    let groups: BTreeSet<_> = found.keys().chain(allowed.keys()).collect();
    let none = Hits::default();
    let (mut failures, mut notes) = (String::new(), String::new());
    for group in groups {
        let hits = found.get(group).unwrap_or(&none);
        let (words, columns) = allowed.get(group).copied().unwrap_or_default();
        for (what, hits, allowed) in
            [("words", &hits.words, words), ("columns", &hits.columns, columns)]
        {
            if hits.len() > allowed {
                let count = hits.len();
                let lines = hits.join("\n  ");
                writeln!(failures, "{group}: {count} {what}, allowed {allowed}\n  {lines}")
                    .unwrap();
            } else if hits.len() < allowed {
                let count = hits.len();
                writeln!(notes, "{group}: lower {what} from {allowed} to {count} in {LIST}")
                    .unwrap();
            }
        }
    }
    // Past the test harness, which shows nothing that a passing test prints.
    std::io::stderr().write_all(notes.as_bytes()).unwrap();
    assert!(failures.is_empty(), "\n{failures}");
}

/// Hits by group: a Markdown file, or all comments of a crate.
fn hits() -> BTreeMap<String, Hits> {
    let mut groups = BTreeMap::<String, Hits>::new();
    for page in files("md") {
        let text = read(&page);
        let name = page.to_str().unwrap();
        if name != GENERATED {
            let lines = lines_outside_fences(numbered(&text));
            check(&page, lines, groups.entry(name.to_owned()).or_default());
        }
    }
    for source in files("rs") {
        let text = read(&source);
        let group = source.iter().take(2).map(|part| part.to_str().unwrap()).collect::<Vec<_>>();
        let comments = numbered(&text).filter(|(_, line)| line.trim_start().starts_with("//"));
        check(&source, comments, groups.entry(group.join("/")).or_default());
    }
    groups
}

fn check<'a>(file: &Path, lines: impl Iterator<Item = (usize, &'a str)>, hits: &mut Hits) {
    for (number, line) in lines {
        let place = format!("{}:{number}", file.display());
        for (word, instead) in words_of(line) {
            hits.words.push(format!("{place}: \"{word}\": {instead}"));
        }
        let width = line.chars().count();
        let is_row = line.trim_start_matches([' ', '/', '!']).starts_with('|');
        if width > COLUMNS && !is_row && !line.contains("://") {
            hits.columns.push(format!("{place}: {width} columns"));
        }
    }
}

fn words_of(line: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let plain: String = without_code(line)
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    let plain = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
    WORDS.iter().filter(move |(word, _)| plain.contains(&format!(" {word} ")))
}

/// Group, allowed words, allowed columns.
fn allowed() -> BTreeMap<String, (usize, usize)> {
    let list = read(Path::new(LIST));
    let entries = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    entries
        .map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [group, words, columns] = fields.try_into().expect(line);
            (group.to_owned(), (words.parse().unwrap(), columns.parse().unwrap()))
        })
        .collect()
}

#[test]
fn words_are_found_whole_and_outside_of_code() {
    let found = |line| words_of(line).map(|(word, _)| *word).collect::<Vec<_>>();
    assert_eq!(found("// Nobody has it at\thand, by-turns."), ["nobody", "at hand", "by turns"]);
    assert!(found("a `poisoned` block pourable").is_empty());
}
