//! Every relative link of a Markdown file leads to a file, and to a heading if it names one.

use super::{files, lines_outside_fences, numbered, read, root, without_code};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

#[test]
fn relative_links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for page in files("md") {
        let text = read(&page);
        for (number, line) in lines_outside_fences(numbered(&text)) {
            for target in targets(line) {
                if let Err(reason) = resolve(&page, &target) {
                    broken.push(format!("{}:{number}: {target}: {reason}", page.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_once_in_the_summary() {
    let summary = read(Path::new("docs/SUMMARY.md"));
    let mut listed: Vec<_> = summary.lines().flat_map(targets).collect();
    listed.sort_unstable();
    let pages: Vec<_> = files("md")
        .iter()
        .filter_map(|page| page.strip_prefix("docs").ok()?.to_str().map(str::to_owned))
        .filter(|page| page != "SUMMARY.md")
        .collect();
    assert_eq!(listed, pages);
}

/// Comments and messages name pages as `docs/PAGE.md`.
#[test]
fn pages_that_sources_name_exist() {
    let mut missing = Vec::new();
    for source in files("rs") {
        let text = read(&source);
        for (number, line) in numbered(&text) {
            for (_, rest) in
                line.match_indices("docs/").map(|(at, name)| line.split_at(at + name.len()))
            {
                let Some(end) = rest.find(".md") else { continue };
                let name = &rest[..end];
                let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
                if is_name && !root().join("docs").join(format!("{name}.md")).exists() {
                    missing.push(format!("{}:{number}: docs/{name}.md", source.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Pages name files as `crates/wire/src/{fdt,fcast}.rs` and directories as `fec/src/lt/`.
#[test]
fn paths_that_pages_name_exist() {
    let mut missing = Vec::new();
    for page in files("md") {
        for code in code_spans(&read(&page)) {
            let is_path = ["crates/", "/src/", "/tests/"].iter().any(|part| code.contains(part));
            for path in alternatives(&code).iter().filter(|_| is_path && !code.contains(' ')) {
                if !root().join("crates").join(path.trim_start_matches("crates/")).exists() {
                    missing.push(format!("{}: {path}", page.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The errata name tests as proofs.
#[test]
fn tests_that_the_errata_name_exist() {
    let sources: Vec<_> = files("rs").iter().map(|source| read(source)).collect();
    for name in code_spans(&read(Path::new("docs/errata.md"))) {
        let is_test = name.matches('_').count() > 3 && !name.contains(['/', ' ']);
        let function = format!("fn {name}(");
        assert!(!is_test || sources.iter().any(|source| source.contains(&function)), "{name}");
    }
}

/// What stands between backticks.
fn code_spans(text: &str) -> Vec<String> {
    lines_outside_fences(numbered(text))
        .flat_map(|(_, line)| line.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// `a/{b,c}/{d,e}` as four paths.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(head, rest)| {
        let (names, tail) = rest.split_once('}')?;
        Some((head, names, tail))
    });
    let Some((head, names, tail)) = parts else { return vec![path.to_owned()] };
    let tails = alternatives(tail);
    names
        .split(',')
        .flat_map(|name| tails.iter().map(move |tail| format!("{head}{name}{tail}")))
        .collect()
}

/// The targets of all inline links and images of a line.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

fn resolve(page: &Path, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (target, None),
    };
    let file = match path {
        "" => page.to_owned(),
        path => normal(&page.with_file_name(path)).ok_or("it leaves the repository")?,
    };
    if !root().join(&file).exists() {
        return Err("there is no such file".into());
    }
    match heading {
        Some(heading) if !anchors(&read(&file)).contains(heading) => {
            Err(format!("{} has no such heading", file.display()))
        }
        _ => Ok(()),
    }
}

/// The path without `.` and `..`, or `None` if it leads above the root.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Some(normal)
}

/// The anchors of a page's headings, as GitHub and mdbook form them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, u32>::new();
    let headings = lines_outside_fences(numbered(text)).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    });
    headings
        .map(|title| {
            let plain: String = title
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let count = seen.entry(plain.clone()).or_default();
            *count += 1;
            if *count == 1 { plain } else { format!("{plain}-{}", *count - 1) }
        })
        .collect()
}

#[test]
fn a_heading_has_the_anchor_that_github_gives_it() {
    let page = "# `df.fig2`, twice\n\n## A b\n\n```\n## c\n```\n\n## A b\n";
    assert_eq!(anchors(page), ["dffig2-twice", "a-b", "a-b-1"].map(str::to_owned).into());
}
