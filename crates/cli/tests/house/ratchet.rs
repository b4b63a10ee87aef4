//! Sizes of the repository, compared with `.ci/ratchet`: what has become smaller stays smaller, and
//! what grows says why. The options of the program are counted in `crates/cli/src/args/count.rs`.

use crate::documents::{files, read, root};
use crate::structure::crates;
use fontana_testing::{ratchet, ratchets};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Tokens: words, and every other character that is no space.
fn tokens(code: &str) -> u64 {
    let mut count = 0;
    let mut in_word = false;
    for letter in code.chars() {
        let is_of_word = letter.is_alphanumeric() || letter == '_';
        count += u64::from(is_of_word && !in_word || !is_of_word && !letter.is_whitespace());
        in_word = is_of_word;
    }
    count
}

/// Occurrences in the Rust files below `crates`.
fn occurrences(text: &str) -> u64 {
    // In this file, the text is an argument.
    let sources = files("rs").into_iter().filter(|path| !path.ends_with("house/ratchet.rs"));
    sources.map(|path| read(&path).matches(text).count() as u64).sum()
}

/// Words of the pages that people write. `docs/lab.md` is generated.
fn words() -> u64 {
    let pages = files("md").into_iter().filter(|path| !path.ends_with("docs/lab.md"));
    pages.map(|path| read(&path).split_whitespace().count() as u64).sum()
}

/// Test programs of all crates, beside those of their libraries and programs.
fn test_programs() -> u64 {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
    targets.filter(|target| target["kind"][0] == "test").count() as u64
}

#[test]
fn nothing_grows_without_a_reason() {
    let mut measured: BTreeMap<String, u64> = BTreeMap::new();
    let mut exported = 0;
    for krate in crates() {
        let code = krate.files.keys().filter(|module| !krate.is_test(module));
        let count: u64 = code.map(|module| tokens(&krate.code(module))).sum();
        *measured.entry(format!("tokens of {}", krate.name)).or_default() += count;
        if krate.name == "fontana" {
            exported = krate.exported();
        }
    }
    measured.insert("names that the library exports".into(), exported);
    measured.insert("words of documents".into(), words());
    measured.insert("ignored tests".into(), occurrences("#[ignore"));
    measured.insert("macro_rules!".into(), occurrences("macro_rules!"));
    measured.insert("test programs".into(), test_programs());
    let wrong = measured.iter().filter_map(|(subject, number)| ratchet(subject, *number));
    let wrong: Vec<_> = wrong.collect();
    let counted_elsewhere = ["options of fontana", "conflicts of options"];
    for (subject, _) in ratchets() {
        let is_measured = measured.contains_key(subject) || counted_elsewhere.contains(&subject);
        assert!(is_measured, "nothing measures {subject:?} of .ci/ratchet");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
