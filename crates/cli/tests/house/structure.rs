//! Tests of the structure inside the crates, read from `use` lines and from paths that begin with
//! `crate::`: no circle of files, no item that is imported through `lib.rs`, no item that `lib.rs`
//! defines. (`arrows.rs` checks the dependencies between crates.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its path in the crate; `[]` is `lib.rs` or `main.rs`.
type Module = Vec<String>;

pub(super) struct Crate {
    pub(super) name: String,
    pub(super) files: BTreeMap<Module, PathBuf>,
}

impl Crate {
    /// The crate of a folder, without the programs below `bin`.
    fn read(name: &str, source: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![source.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && path != source.join("bin") {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let relative = path.strip_prefix(source).unwrap().with_extension("");
                    let mut module: Module =
                        relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                    if module == ["lib"] || module == ["main"] {
                        module.clear();
                    }
                    files.insert(module, path);
                }
            }
        }
        Self { name: name.to_owned(), files }
    }

    /// The file's text without comments and without its tests.
    pub(super) fn code(&self, module: &Module) -> String {
        let text = fs::read_to_string(&self.files[module]).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Whether a module, or one above it, is compiled for tests only.
    pub(super) fn is_test(&self, module: &Module) -> bool {
        let is_declared_for_tests = |end: usize| {
            let parent = self.files.get(&module[..end - 1]);
            let text = parent.map(|path| fs::read_to_string(path).unwrap()).unwrap_or_default();
            text.contains(&format!("#[cfg(test)]\nmod {};", module[end - 1]))
        };
        (1..=module.len()).any(is_declared_for_tests)
    }

    /// Names that the library exports, of which modules are one each.
    pub(super) fn exported(&self) -> u64 {
        let code = self.code(&Module::new());
        let is_attribute = |line: &&str| line.is_empty() || line.starts_with('#');
        let statements = code.split(';').map(|statement| {
            statement.lines().skip_while(is_attribute).collect::<Vec<_>>().join("\n")
        });
        let exports = statements.filter(|statement| statement.starts_with("pub "));
        let names = exports.map(|statement| match statement.starts_with("pub use ") {
            true => uses(&format!("{statement};")).len() as u64,
            false => 1,
        });
        names.sum()
    }

    /// What `module` imports from its own crate, as paths from the root of the crate.
    fn imports(&self, module: &Module) -> Vec<Module> {
        let code = self.code(module);
        let mut imports = named_in_place(&code);
        for path in uses(&code) {
            let first = path.first().map(String::as_str);
            let supers = path.iter().take_while(|part| *part == "super").count();
            let (base, rest) = match first {
                Some("crate") => (Vec::new(), &path[1..]),
                Some("self") => (module.clone(), &path[1..]),
                Some("super") => {
                    (module[..module.len().saturating_sub(supers)].to_vec(), &path[supers..])
                }
                Some(child) if self.files.contains_key(&join(module, &[child.to_owned()])) => {
                    (module.clone(), &path[..])
                }
                _ => continue,
            };
            imports.push(join(&base, rest));
        }
        imports
    }

    /// The file that an imported path leads to.
    fn owner(&self, path: &Module) -> Module {
        let owners = (0..=path.len()).rev().map(|end| path[..end].to_vec());
        owners.into_iter().find(|module| self.files.contains_key(module)).unwrap_or_default()
    }

    /// The files that each file imports, except those above it: a child module may use what its
    /// parent keeps private to its folder.
    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let arrows = |module: &Module| {
            let owners = self.imports(module).into_iter().map(|path| self.owner(&path));
            owners.filter(|owner| !module.starts_with(owner)).collect()
        };
        self.files.keys().map(|module| (module.clone(), arrows(module))).collect()
    }
}

fn join(base: &[String], rest: &[String]) -> Module {
    base.iter().chain(rest).cloned().collect()
}

/// The paths from the root of the crate that stand in the code itself.
fn named_in_place(code: &str) -> Vec<Module> {
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts = code.match_indices("crate::").filter(|(at, _)| !code[..*at].ends_with(is_of_name));
    let path = |(at, start): (usize, &str)| {
        let parts = code[at + start.len()..].split("::");
        let mut path = Module::new();
        for part in parts {
            let name = &part[..part.find(|letter| !is_of_name(letter)).unwrap_or(part.len())];
            path.extend((!name.is_empty()).then(|| name.to_owned()));
            if name.len() < part.len() {
                break;
            }
        }
        path
    };
    starts.map(path).filter(|path| !path.is_empty()).collect()
}

/// The paths of all `use` declarations, one for each name.
fn uses(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let statements = code.split(';').filter_map(|statement| {
        let line = statement.rfind("use ")?;
        let before = statement[..line].lines().last().unwrap_or_default();
        // An indented one is of a module inside the file: `super` is the file itself.
        let is_use = before.is_empty()
            || (before.starts_with("pub") && before.trim().split(' ').count() == 1);
        is_use.then(|| &statement[line + 4..])
    });
    for statement in statements {
        let mut prefixes: Vec<Vec<String>> = vec![Vec::new()];
        let mut path: Vec<String> = Vec::new();
        let mut word = String::new();
        for letter in statement.chars().chain([',']) {
            match letter {
                '{' => prefixes.push(std::mem::take(&mut path)),
                ',' | '}' => {
                    // `name as other` imports `name`.
                    let name = word.split_whitespace().next().unwrap_or_default().to_owned();
                    word.clear();
                    if !name.is_empty() {
                        path.push(name);
                        paths.push(prefixes.concat().into_iter().chain(path.drain(..)).collect());
                    }
                    path.clear();
                    if letter == '}' {
                        prefixes.pop();
                    }
                }
                ':' if !word.trim().is_empty() => {
                    path.push(std::mem::take(&mut word).trim().into())
                }
                ':' => {}
                letter => word.push(letter),
            }
        }
    }
    paths
}

/// Groups of modules that reach each other.
fn circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in &arrows[module] {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<_, _> = arrows.keys().map(|module| (module, reach(module))).collect();
    let in_circles: BTreeSet<BTreeSet<Module>> = arrows
        .keys()
        .filter(|module| reached[module].contains(*module))
        .map(|module| {
            let others = reached[module].iter();
            others.filter(|other| reached[other].contains(module)).cloned().collect()
        })
        .collect();
    in_circles.into_iter().collect()
}

/// The folders in `directory`, which may not exist.
fn folders(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// The libraries and programs of this workspace, by the names of their folders.
pub(super) fn crates() -> Vec<Crate> {
    let read = |source: &Path, name: &Path| {
        Crate::read(name.file_name().unwrap().to_str().unwrap(), source)
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut crates = Vec::new();
    for folder in folders(directory) {
        let source = folder.join("src");
        crates.push(read(&source, &folder));
        crates.extend(folders(&source.join("bin")).iter().map(|program| read(program, program)));
    }
    assert!(crates.len() > 10, "the crates were not found");
    crates
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for krate in crates() {
        let circles = circles(&krate.arrows());
        let names = |circle: &BTreeSet<Module>| {
            circle.iter().map(|module| module.join("/")).collect::<Vec<_>>().join(", ")
        };
        let found: Vec<_> = circles.iter().map(names).collect();
        assert!(found.is_empty(), "files of {} in circles: {found:#?}", krate.name);
    }
}

#[test]
fn lib_rs_defines_nothing_and_no_file_imports_from_it() {
    for krate in crates() {
        let root = Module::new();
        let definitions =
            ["fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ", "impl"];
        if krate.files[&root].ends_with("lib.rs") && krate.name != "testing" {
            for line in krate.code(&root).lines() {
                let item = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
                let defines = definitions.iter().any(|keyword| item.starts_with(keyword));
                assert!(!defines, "{}/src/lib.rs defines: {line}", krate.name);
            }
        }
        for module in krate.files.keys().filter(|module| !module.is_empty()) {
            for import in krate.imports(module) {
                let is_of_root = krate.owner(&import).is_empty();
                assert!(
                    !is_of_root,
                    "{} imports {} through lib.rs",
                    krate.files[module].display(),
                    import.join("::")
                );
            }
        }
    }
}

/// Iterators of the form `(start..)` whose start is no literal: after the largest number, the next
/// one is an overflow. Slices and maps take such ranges without counting.
fn open_ranges(code: &str) -> Vec<String> {
    let takes_ranges = ["get", "get_mut", "range", "range_mut"];
    let mut found = Vec::new();
    for (at, _) in code.match_indices("..") {
        let (before, after) = (&code[..at], &code[at + 2..]);
        let is_start = |letter: char| letter.is_alphanumeric() || "_)]".contains(letter);
        let ends = |letter: char| ")]},;".contains(letter) || letter.is_whitespace();
        if !before.ends_with(is_start) || !after.starts_with(ends) {
            continue;
        }
        // Back to the bracket that the range is in.
        let mut depth = 0;
        let is_opening = |&(_, letter): &(usize, char)| {
            depth += match letter {
                ')' | ']' | '}' => 1,
                '(' | '[' | '{' => -1,
                ',' | ';' | ':' | '=' | '@' if depth == 0 => -1,
                _ => 0,
            };
            depth < 0
        };
        let Some((opening, letter)) = before.char_indices().rev().find(is_opening) else {
            continue;
        };
        let start = before[opening + letter.len_utf8()..].trim();
        let is_literal = start.starts_with(|letter: char| letter.is_ascii_digit());
        let callee =
            before[..opening].rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let is_taken = callee.into_iter().next().is_some_and(|name| takes_ranges.contains(&name));
        if !is_literal && letter != '[' && !is_taken {
            found.push(format!("{start}.."));
        }
    }
    found
}

#[test]
fn nothing_counts_from_a_number_of_a_packet_without_an_end() {
    for krate in crates().iter().filter(|krate| ["wire", "proto"].contains(&&*krate.name)) {
        for (module, path) in &krate.files {
            let found = open_ranges(&krate.code(module));
            assert!(found.is_empty(), "{} counts from {found:?}", path.display());
        }
    }
}

#[test]
fn open_ranges_are_found_where_they_count() {
    let code =
        "a.zip(run.first.0..); (size..).step_by(1); for i in (n..).take(2) {} let r = from..;";
    assert_eq!(open_ranges(code), ["run.first.0..", "size..", "n..", "from.."]);
    let code = "(0..).zip(a); b.get(from..); c[from + 1..]; d.range(f(x)..); T { a, ..T::new() };\
                (0_u32..).zip(e); a..b; (52_500..).contains(&x); Ok(n @ 1..) => 1; [_, ..]";
    assert!(open_ranges(code).is_empty(), "{:?}", open_ranges(code));
}

#[test]
fn the_reader_of_use_lines_finds_every_name() {
    let code = "use a::b;\nuse crate::x::{y, z::{self, w as v}};\npub(super) use super::q;\nlet reuse = 1;";
    let found: Vec<String> = uses(code).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::b", "crate::x::y", "crate::x::z::self", "crate::x::z::w", "super::q"]);
}

#[test]
fn paths_in_the_code_are_found() {
    let code = "use crate::{a, b};\nlet c = crate::d::E + f::<crate::g::H>(my_crate::I);";
    assert_eq!(named_in_place(code), [["d", "E"], ["g", "H"]]);
}

#[test]
fn a_circle_of_three_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")];
    let arrows = arrows.map(|(from, to)| (module(from), BTreeSet::from([module(to)]))).into();
    let found = circles(&arrows);
    assert_eq!(found, [BTreeSet::from(["a", "b", "c"].map(module))]);
}
