//! `docs/papers.md` has each item of the papers: what it names exists, and its numbers are those of
//! `docs/lab.md`.
//!
//! A code span of the page is one of these:
//!
//! - an experiment: `df.fig2`
//! - a command, or options alone: `fontana send --fec none`, `--quick`
//! - a part of the library: `fontana_proto::pull::Pull`
//! - a path: `crates/lab/src/repair.rs`
//! - in the last column of a table, a claim of an experiment that the row names

use super::{files, numbered, read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/papers.md";

/// The papers' experiments, by the part of their ids before the dot.
const PAPERS: [&str; 5] = ["df", "ms", "li", "bm", "fc"];
/// Experiments beyond the papers.
const BEYOND: &str = "fo";

#[test]
fn what_the_page_of_the_papers_names_exists() {
    let sources = Sources::read();
    let text = read(Path::new(PAGE));
    let mut missing = Vec::new();
    for (number, line) in numbered(&text) {
        for (column, span) in spans(line) {
            if column.is_value() && !is_experiment(span) {
                continue;
            }
            if let Err(reason) = sources.check(span) {
                missing.push(format!("{PAGE}:{number}: `{span}`: {reason}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_page_of_the_papers_has_the_numbers_of_the_results() {
    let results = results();
    let text = read(Path::new(PAGE));
    let mut differ = Vec::new();
    for (number, line) in numbered(&text) {
        let ids: Vec<_> = spans(line)
            .flat_map(|(_, span)| span.split(' '))
            .filter(|id| is_experiment(id))
            .collect();
        for (claim, after) in claims(line) {
            let found: Vec<_> = ids
                .iter()
                .filter_map(|id| results.get(*id)?.get(claim).map(|found| (id, found)))
                .collect();
            if found.is_empty() {
                differ.push(format!("{PAGE}:{number}: {ids:?} have no claim `{claim}`"));
            } else if !found.iter().any(|(_, found)| found.is_as_stated(after)) {
                differ.push(format!("{PAGE}:{number}: `{claim}`{after}: {found:?}"));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn each_experiment_of_a_paper_is_on_its_page() {
    let text = read(Path::new(PAGE));
    let named: BTreeSet<_> = text
        .lines()
        .flat_map(spans)
        .flat_map(|(_, span)| span.split(' '))
        .filter(|id| is_experiment(id))
        .map(str::to_owned)
        .collect();
    let all = Sources::read().experiments;
    let of_papers = |id: &&String| !id.starts_with(BEYOND);
    let missing: Vec<_> = all.difference(&named).filter(of_papers).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_first_screen_of_the_readme_leads_to_the_papers() {
    let readme = read(Path::new("README.md"));
    let first = readme.split("\n## ").next().unwrap();
    assert!(first.contains(&format!("]({PAGE})")), "{first}");
}

/// Where a code span is.
enum Column {
    /// In prose, or in another column than the last one.
    Other,
    /// In the last column of a row of a table.
    Value,
}

impl Column {
    fn is_value(&self) -> bool {
        matches!(self, Self::Value)
    }
}

fn spans(line: &str) -> impl Iterator<Item = (Column, &str)> {
    let (head, value) = cells(line);
    let inside = |text| str::split(text, '`').skip(1).step_by(2);
    let head = inside(head).map(|span| (Column::Other, span));
    head.chain(inside(value).map(|span| (Column::Value, span)))
}

/// A row of a table up to its last cell, and this cell; a line of prose, and nothing.
fn cells(line: &str) -> (&str, &str) {
    let row = line.strip_prefix('|').and_then(|row| row.trim_end().strip_suffix('|'));
    row.and_then(|row| row.rsplit_once('|')).unwrap_or((line, ""))
}

/// The claims of a row, each with what follows it up to the next one.
fn claims(line: &str) -> Vec<(&str, &str)> {
    let parts: Vec<_> = cells(line).1.split('`').collect();
    let pairs = parts.get(1..).unwrap_or_default().chunks_exact(2);
    pairs.map(|pair| (pair[0], pair[1])).filter(|(span, _)| !is_experiment(span)).collect()
}

fn is_experiment(span: &str) -> bool {
    span.split_once('.').is_some_and(|(paper, name)| {
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        is_name && !name.is_empty() && (PAPERS.contains(&paper) || paper == BEYOND)
    })
}

/// What the page of results has for a claim.
#[derive(Debug)]
struct Found {
    ours: f64,
    verdict: String,
}

impl Found {
    /// Whether a text that follows a claim has its value, rounded, if it begins with a number, and
    /// its verdict, unless it holds.
    fn is_as_stated(&self, text: &str) -> bool {
        let text = text.trim_start();
        let length = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
        let number = text[..length.unwrap_or(text.len())].trim_end_matches('.');
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // The last digit may be rounded either way if what is left is exactly half of it.
        let rounding = 0.5 * 10_f64.powi(-i32::try_from(decimals).unwrap());
        let is_value = number.is_empty()
            || number
                .parse::<f64>()
                .is_ok_and(|stated| (stated - self.ours).abs() <= rounding * (1.0 + 1e-9));
        let is_verdict = ["differs", "undecided"]
            .iter()
            .all(|word| text.contains(word) == self.verdict.starts_with(word));
        is_value && is_verdict
    }
}

/// The claims of each experiment on the page of results.
fn results() -> BTreeMap<String, BTreeMap<String, Found>> {
    let page = read(Path::new("docs/lab.md"));
    let mut results = BTreeMap::<String, BTreeMap<String, Found>>::new();
    let mut id = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut id);
        }
        let Some((claim, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) else {
            continue;
        };
        // What the claim says may have any signs; the last cells have none of them.
        let [_, verdict, _, ours, ..] = line.rsplit('|').collect::<Vec<_>>()[..] else { continue };
        let ours = ours.split_whitespace().next().and_then(|ours| ours.parse().ok());
        if let Some(ours) = ours {
            let found = Found { ours, verdict: verdict.trim().to_owned() };
            results.entry(id.clone()).or_default().insert(claim.to_owned(), found);
        }
    }
    results
}

/// What the sources define.
struct Sources {
    experiments: BTreeSet<String>,
    /// Options by command.
    options: BTreeMap<&'static str, BTreeSet<String>>,
    /// Paths and texts of all files.
    all: Vec<(PathBuf, String)>,
}

/// The files with the options of each command.
const OPTIONS: &[(&str, &[&str])] = &[
    ("send", &["crates/cli/src/args/send.rs"]),
    ("recv", &["crates/cli/src/args/receive.rs"]),
    ("serve", &["crates/cli/src/args/serve.rs"]),
    ("publish", &["crates/cli/src/args.rs"]),
    ("run", &["crates/lab/src/bin/fontana-lab/args.rs"]),
];

impl Sources {
    fn read() -> Self {
        let all: Vec<_> = files("rs").into_iter().map(|path| (path.clone(), read(&path))).collect();
        let is_lab =
            |path: &Path| path.starts_with("crates/lab/src") && !path.ends_with("registry.rs");
        let experiments = all
            .iter()
            .filter(|(path, _)| is_lab(path))
            .flat_map(|(_, text)| text.split("id: \"").skip(1))
            .filter_map(|rest| rest.split_once('"'))
            .map(|(id, _)| id.to_owned())
            .filter(|id| is_experiment(id))
            .collect();
        let options = OPTIONS
            .iter()
            .map(|(command, files)| {
                (*command, files.iter().flat_map(|file| options(&read(Path::new(file)))).collect())
            })
            .collect();
        Self { experiments, options, all }
    }

    fn check(&self, span: &str) -> Result<(), String> {
        if is_experiment(span) {
            return self.check_experiment(span);
        }
        if span.starts_with("fontana ")
            || span.starts_with("fontana-lab ")
            || span.starts_with("--")
        {
            return self.check_command(span);
        }
        if span.starts_with("fontana_") && span.contains("::") {
            return self.check_item(span);
        }
        if span.contains('/') {
            let exists = root().join(span).exists();
            return exists.then_some(()).ok_or_else(|| "there is no such path".to_owned());
        }
        // `fontana send --fec lt`, or `lt-strict`.
        let is_value = self
            .all
            .iter()
            .any(|(path, text)| path.ends_with("args/send.rs") && has_variant(text, span));
        is_value.then_some(()).ok_or_else(|| "it is none of what this page may name".to_owned())
    }

    fn check_experiment(&self, id: &str) -> Result<(), String> {
        let exists = self.experiments.contains(id);
        exists.then_some(()).ok_or_else(|| "there is no such experiment".to_owned())
    }

    /// Options follow their command; without a command, any has them.
    fn check_command(&self, span: &str) -> Result<(), String> {
        let mut words = span.split(' ').peekable();
        let options: BTreeSet<_> = if words.next_if(|word| word.starts_with("fontana")).is_some() {
            let command = words.next().unwrap_or_default();
            let options = self.options.get(command);
            options.ok_or_else(|| format!("there is no command {command}"))?.clone()
        } else {
            self.options.values().flatten().cloned().collect()
        };
        for word in words {
            if is_experiment(word) {
                self.check_experiment(word)?;
            }
            let option = word.strip_prefix("--").map(|option| option.split('=').next().unwrap());
            if option.is_some_and(|option| !options.contains(option)) {
                return Err(format!("there is no option {word}"));
            }
        }
        Ok(())
    }

    /// `crate::module::Type::Variant`: each part is defined in the crate, and what follows a type
    /// in a file that defines the type.
    fn check_item(&self, span: &str) -> Result<(), String> {
        let mut parts = span.split("::");
        let package = parts.next().and_then(|part| part.strip_prefix("fontana_")).unwrap();
        let src = Path::new("crates").join(package).join("src");
        let mut files: Vec<_> =
            self.all.iter().filter(|(path, _)| path.starts_with(&src)).collect();
        for part in parts {
            let has = |text: &str| defines(text, part) || has_variant(text, part);
            let defining: Vec<_> = files.iter().copied().filter(|(_, text)| has(text)).collect();
            if defining.is_empty() {
                return Err(format!("{} does not define {part}", src.display()));
            }
            if part.starts_with(char::is_uppercase) {
                files = defining.into_iter().filter(|(_, text)| defines(text, part)).collect();
            }
        }
        Ok(())
    }
}

fn defines(text: &str, name: &str) -> bool {
    let words = |line: &str| -> Vec<String> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        line.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let keywords = ["struct", "enum", "trait", "fn", "mod", "const", "type"];
    text.lines().filter(|line| line.contains(name)).any(|line| {
        let words = words(line);
        words.windows(2).any(|pair| keywords.contains(&pair[0].as_str()) && pair[1] == name)
    })
}

/// Whether an enum has this variant; `lt-strict` on a command line is `LtStrict`.
fn has_variant(text: &str, name: &str) -> bool {
    let name: String = name
        .split('-')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        })
        .collect();
    text.lines().filter_map(|line| line.trim_start().strip_prefix(&name)).any(|rest| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with([',', '{', '('])
    })
}

/// Options of the fields of a file that clap reads.
fn options(text: &str) -> Vec<String> {
    let mut options = Vec::new();
    for attribute in text.split("#[arg(").skip(1) {
        let Some((arguments, field)) = attribute.split_once(")]\n") else { continue };
        let mut arguments = arguments.split(',').map(str::trim);
        let Some(long) = arguments.find(|argument| argument.starts_with("long")) else { continue };
        let named = long.split_once('"').and_then(|(_, rest)| rest.split_once('"'));
        let field = field.trim_start().trim_start_matches("pub(crate) ");
        let name =
            named.map(|(name, _)| name).or_else(|| field.split_once(':').map(|(name, _)| name));
        options.extend(name.map(|name| name.replace('_', "-")));
    }
    options
}

#[test]
fn a_misspelt_name_is_found() {
    let sources = Sources::read();
    let good = [
        "df.fig2",
        "bm.modem",
        "fontana send --order anticipated:5",
        "fontana-lab run fc.tool --real",
        "--quick",
        "lt-strict",
        "fontana_proto::TransmissionSchedule::Cumulative",
        "fontana_proto::presets::rlc",
        "crates/lab/src/repair.rs",
    ];
    for span in good {
        assert_eq!(sources.check(span), Ok(()), "{span}");
    }
    let misspelt = [
        "df.fig3",
        "df.figure2",
        "fontana send --shedule random",
        "fontana recv --order random",
        "fontana receive",
        "fontana-lab run fc.tools --real",
        "--quickly",
        "lt-lax",
        "fontana_proto::TransmissionSchedule::Cumulated",
        "fontana_proto::TransmissionSchedules",
        "fontana_proto::preset::rlc",
        "crates/lab/src/repairs.rs",
        "anything",
    ];
    for span in misspelt {
        assert!(sources.check(span).is_err(), "{span}");
    }
}

#[test]
fn a_wrong_number_or_verdict_is_found() {
    let found = |ours, verdict: &str| Found { ours, verdict: verdict.to_owned() };
    assert!(found(1.36734, "differs: a rounding").is_as_stated(" 1.3673 (1.368) differs; "));
    assert!(!found(1.36734, "differs: a rounding").is_as_stated(" 1.3673 (1.368); "));
    assert!(!found(1.36734, "differs: a rounding").is_as_stated(" 1.3683 (1.368) differs; "));
    assert!(found(152.5, "holds").is_as_stated(" 153 s"));
    assert!(found(-0.0709, "holds within 1").is_as_stated(" -0.071."));
    assert!(!found(0.0709, "holds").is_as_stated(" -0.071"));
    assert!(found(10505.2, "holds").is_as_stated(" about 10 000 (7838)"));
}
