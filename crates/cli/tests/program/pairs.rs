//! Which options go together: all pairs, and triples that each run draws. What is
//! refused is in `refusals.txt`, with a reason.

use crate::support::{arguments, fontana, noise, run};
use fontana_testing::{Run, Script};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

/// Most kinds of refusals.
const MOST: usize = 30;
/// Triples of a run, of both commands.
const TRIPLES: usize = 500;

/// An option with a valid value, and what it needs. `DIR` is a directory with keys and files.
struct Sample {
    name: &'static str,
    /// Options with their values. What is last takes the rest of the line.
    words: &'static [&'static str],
    content: Content,
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Any,
    List,
    StandardInput,
}

const fn any(name: &'static str, words: &'static [&'static str]) -> Sample {
    Sample { name, words, content: Content::Any }
}

const fn stdin(name: &'static str, words: &'static [&'static str]) -> Sample {
    Sample { name, words, content: Content::StandardInput }
}

const SEND: &[Sample] = &[
    Sample { name: "--from-list", words: &["--from-list DIR/list"], content: Content::List },
    stdin("-", &[]),
    stdin("--spool", &["--spool"]),
    stdin("--wait", &["--wait 1s"]),
    any("--name", &["--name other"]),
    any("--include", &["--include *.txt"]),
    any("--exclude", &["--exclude x"]),
    any("--to", &["--to 239.255.77.2:7702/5"]),
    any("--rate", &["--rate 5M"]),
    any("--rate MIN..MAX", &["--rate 1M..5M"]),
    any("--rate NAME=RATE", &["--rate lo=5M"]),
    any("--burst", &["--burst 5ms"]),
    any("--layered", &["--layered=rlc"]),
    any("--layers", &["--layers 3"]),
    any("--ttl", &["--ttl 2", "--controlled-network"]),
    any("--controlled-network", &["--controlled-network"]),
    any("--push", &["--push 10"]),
    any("--for", &["--for 1s"]),
    any("--order", &["--order sequential"]),
    any("--flute", &["--flute"]),
    any("--fcast", &["--fcast"]),
    any("--fec", &["--fec rs"]),
    any("--block-symbols", &["--block-symbols 100"]),
    any("--symbol-size", &["--symbol-size 512"]),
    any("--sign", &["--sign DIR/key"]),
    any("--symbol-digests", &["--sign DIR/key", "--symbol-digests"]),
    any(
        "--certificate",
        &["--sign DIR/mirror", "--manifest DIR/manifest", "--certificate DIR/certificate"],
    ),
    any("--group-key", &["--group-key DIR/group"]),
    any("--open", &["--open"]),
    any("--new-ticket", &["--new-ticket"]),
    any("--one-way", &["--one-way"]),
    any("--expires", &["--sign DIR/key", "--expires 1h"]),
    any("--watch", &["--watch"]),
    any("--at-least", &["--watch", "--at-least 1.5"]),
    any("--content-version", &["--content-version 7"]),
    any("--memory", &["--memory 64M"]),
    any("--scratch", &["--scratch 0"]),
    any("--manifest", &["--manifest DIR/new"]),
    any("--ask", &["--ask"]),
    any("--wait-for-all", &["--rate 1M..5M", "--receivers DIR/names", "--wait-for-all"]),
    any("--max-age", &["--max-age 10s"]),
    any("--receivers", &["--receivers 2"]),
    any("--trust-reports", &["--trust-reports"]),
    any("--status-file", &["--status-file DIR/status"]),
    any("--exec", &["--receivers 2", "--exec true"]),
    any("--ticket-file", &["--ticket-file DIR/ticket"]),
    any("--json", &["--json"]),
    any("--quiet", &["--quiet"]),
];

const RECV: &[Sample] = &[
    any("TICKET", &["TICKET"]),
    any("sealed TICKET", &["SEALED"]),
    any("sealed TICKET with mirrors", &["MIRRORED"]),
    any("URL", &["TICKET", "http://127.0.0.1:9/"]),
    any("--mirrors", &["TICKET", "http://127.0.0.1:9/", "--mirrors 1s"]),
    any("--header", &["TICKET", "http://127.0.0.1:9/", "--header A:b"]),
    any("--netrc", &["TICKET", "http://127.0.0.1:9/", "--netrc DIR/netrc"]),
    any("--then-serve", &["--then-serve 127.0.0.1:0"]),
    any("--share", &["--share"]),
    any("--group", &["--group 239.255.77.2:7702", "--yes"]),
    any("--output", &["--output into"]),
    any("--to", &["--to -"]),
    any("--staging", &["--to -", "--staging ."]),
    any("--stay", &["--stay"]),
    any("--existing", &["--existing replace"]),
    any("--all-or-nothing", &["--all-or-nothing"]),
    any("--audit", &["--audit DIR/audit"]),
    any("--delete", &["--delete"]),
    any("--only", &["--only *.jpg"]),
    any("--list", &["--list"]),
    any("--yes", &["--yes"]),
    any("--key", &["--key KEY"]),
    any("--group-key", &["--group-key DIR/group"]),
    any("--watch", &["--watch"]),
    any("--exec", &["--exec true"]),
    any("--sandbox", &["--sandbox off"]),
    any("--one-way", &["--one-way"]),
    any("--label", &["--label here"]),
    any("--identity", &["--identity DIR/key"]),
    any("--accept", &["--accept old"]),
    any("--silence", &["--silence 1"]),
    any("--memory", &["--memory 64M"]),
    any("--max-rate", &["--max-rate 1M"]),
    any("--max-size", &["--max-size 1G"]),
    any("--flute", &["--flute"]),
    any("--fcast", &["--fcast"]),
    any("--json", &["--json"]),
    any("--quiet", &["--quiet"]),
];

/// What both commands read.
struct World {
    directory: tempfile::TempDir,
    /// A signed ticket without a secret, and its key.
    ticket: String,
    key: String,
    /// The ticket of a sender without options, which asks its receivers.
    sealed: String,
    /// Refusals without a hint.
    faults: Mutex<Vec<String>>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), noise(2_000, 1)).unwrap();
        std::fs::write(at("names"), "here\n").unwrap();
        std::fs::write(at("list"), at("file").as_os_str().as_encoded_bytes()).unwrap();
        std::fs::write(at("netrc"), "machine 127.0.0.1 login a password b\n").unwrap();
        let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(at("netrc"), owner).unwrap();
        run(&arguments("keygen --group", &[&at("group")])).expect(0);
        let keygen = |name: &str| {
            let said = run(&arguments("keygen", &[&at(name)])).expect(0).stdout;
            said.split_whitespace().last().unwrap().to_owned()
        };
        let (key, mirror) = (keygen("key"), keygen("mirror"));
        let [manifest, certificate, signer] =
            ["manifest", "certificate", "key"].map(|name| at(name).display().to_string());
        let words = format!("send -i lo --open --push 0 --manifest {manifest} --sign {signer}");
        run(&arguments(&words, &[&at("file")])).expect(0);
        let words =
            format!("certify {manifest} --mirror {mirror} --sign {signer} -o {certificate}");
        run(&arguments(&words, &[])).expect(0);
        // No other test sends to this group.
        let to = "--to 239.255.93.1:7793";
        let ticket = |options: String| {
            let words = format!("send -i lo --dry-run --json {to} {options}");
            let session = run(&arguments(&words, &[&at("file")])).expect(0).event("session");
            session["ticket"].as_str().unwrap().to_owned()
        };
        let (sealed, ticket) = (ticket(String::new()), ticket(format!("--open --sign {signer}")));
        assert!(sealed.contains("secret=") && sealed.contains("ask="), "{sealed}");
        Self { directory, ticket, key, sealed, faults: Mutex::default() }
    }

    /// The words of some samples, each option once. `None` if an option has two values.
    fn words(&self, command: &str, samples: &[&Sample]) -> Option<Vec<String>> {
        let mut given = BTreeMap::new();
        let mut last = Vec::new();
        for unit in samples.iter().flat_map(|sample| sample.words) {
            let option = unit.split_whitespace().next().unwrap_or_default();
            if *given.entry(option).or_insert(unit) != unit {
                return None;
            }
        }
        let sealed = given.remove("SEALED").map(|_| self.sealed.clone());
        let mirrored =
            given.remove("MIRRORED").map(|_| format!("{}&web=http://127.0.0.1:9/", self.sealed));
        let ticket = given.remove("TICKET").map(|_| self.ticket.clone());
        let mut tickets = [ticket, sealed, mirrored].into_iter().flatten();
        let (ticket, another) = (tickets.next(), tickets.next());
        if another.is_some() {
            return None;
        }
        let needs_one = command == "recv" && !given.contains_key("--group");
        let mut words = vec![command.to_owned()];
        words.extend(ticket.or_else(|| needs_one.then(|| self.ticket.clone())));
        let root = self.directory.path().display().to_string();
        for unit in given.into_values() {
            let unit = unit.replace("DIR", &root).replace("KEY", &self.key);
            let list = if unit.starts_with("--exec") { &mut last } else { &mut words };
            list.extend(unit.split_whitespace().map(str::to_owned));
        }
        words.extend(["-i", "lo"].map(str::to_owned));
        if command == "send" {
            let content = samples.iter().map(|sample| sample.content).max();
            words.push("--dry-run".to_owned());
            words.extend(match content.unwrap_or(Content::Any) {
                Content::Any => Some(format!("{root}/file")),
                Content::List => None,
                Content::StandardInput => Some("-".to_owned()),
            });
        } else {
            words.extend(["--timeout", "20ms"].map(str::to_owned));
        }
        words.append(&mut last);
        Some(words)
    }

    /// Whether the options are refused, with a message and a hint. `here`: the directory in which
    /// it runs, which is no other's.
    fn is_refused(&self, words: &[String], here: &Path) -> bool {
        let mut program = fontana();
        program.args(words).current_dir(here).stdin(Stdio::from(File::open("/dev/null").unwrap()));
        let Run { code, stdout, stderr } = Run::of(&mut program);
        let said = format!("{}\n{stdout}{stderr}", words.join(" "));
        assert!(matches!(code, Some(0..=9 | 75)), "{code:?} of {said}");
        assert!(!stderr.contains("panic"), "{said}");
        if code != Some(2) {
            // Nothing is sent, and nothing is there to receive. 8: not what a manifest says.
            assert!(matches!(code, Some(0 | 3 | 8 | 75)), "{code:?} of {said}");
            return false;
        }
        let error = stderr.lines().position(|line| line.starts_with("error: "));
        let hint = error.and_then(|line| stderr.lines().nth(line + 1));
        if !hint.is_some_and(|hint| hint.starts_with("  ")) {
            self.faults.lock().unwrap().push(said);
        }
        true
    }
}

/// A refusal of a kind: none of `one` goes with any of `other`.
struct Row {
    one: Vec<&'static str>,
    other: Vec<&'static str>,
}

/// The rows of a command: `send | OPTION, .. | OPTION, .. | reason`.
fn rows(command: &str) -> Vec<Row> {
    let lines = include_str!("refusals.txt").lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<_> = lines.map(|line| line.split(" | ").collect::<Vec<_>>()).collect();
    assert!(rows.len() <= MOST, "{} rows", rows.len());
    let mut found = Vec::new();
    for row in rows {
        let [of, one, other, reason] = row[..] else { panic!("{row:?}") };
        assert!(reason.len() > 10, "{row:?}");
        if of == command {
            let list = |text: &'static str| text.split(", ").collect();
            found.push(Row { one: list(one), other: list(other) });
        }
    }
    found
}

/// Runs work in several threads, each in a directory of its own.
fn in_parallel<T: Sync, R: Send>(
    world: &World,
    items: &[T],
    work: impl Fn(&T, &Path) -> R + Sync,
) -> Vec<R> {
    let next = Mutex::new(items.iter().enumerate());
    let results = Mutex::new(Vec::new());
    // Receivers mostly wait.
    let threads = 4 * std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let here: PathBuf = world.directory.path().join(format!("thread {thread}"));
            std::fs::create_dir_all(&here).unwrap();
            let (next, results, work) = (&next, &results, &work);
            scope.spawn(move || {
                loop {
                    let item = next.lock().unwrap().next();
                    let Some((number, item)) = item else { return };
                    let result = work(item, &here);
                    results.lock().unwrap().push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Both names, in order.
fn pair<'a>(one: &'a str, other: &'a str) -> [&'a str; 2] {
    if one <= other { [one, other] } else { [other, one] }
}

fn check(command: &str, samples: &'static [Sample]) {
    let world = World::new();
    let mut cases = Vec::new();
    for (number, one) in samples.iter().enumerate() {
        cases.extend(samples[number + 1..].iter().map(|other| [one, other]));
    }
    let results = in_parallel(&world, &cases, |case, here| {
        world.words(command, case).map(|words| world.is_refused(&words, here))
    });
    let mut refused = BTreeSet::new();
    let mut tried = BTreeSet::new();
    for ([one, other], result) in cases.iter().zip(results) {
        let names = pair(one.name, other.name);
        tried.extend(result.map(|_| names));
        refused.extend((result == Some(true)).then_some(names));
    }
    let rows = rows(command);
    let mut listed = BTreeSet::new();
    for Row { one, other } in &rows {
        for one in one {
            listed.extend(other.iter().map(|other| pair(one, other)));
        }
    }
    let known: BTreeSet<_> = samples.iter().map(|sample| sample.name).collect();
    let unknown: Vec<_> = listed.iter().flatten().filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "no such option: {unknown:?}");
    let of_list: BTreeSet<_> = listed.intersection(&tried).copied().collect();
    let new: Vec<_> = refused.difference(&of_list).collect();
    let gone: Vec<_> = of_list.difference(&refused).collect();
    assert!(new.is_empty() && gone.is_empty(), "refused: {new:?}\naccepted: {gone:?}");
    println!("{command}: {} of {} pairs are refused", refused.len(), tried.len());
    triples(command, samples, &world, &listed);
}

/// Triples that are refused, though each of their pairs is not: `--for` is how long a stream waits
/// for receivers, and none of these says anything.
const REFUSED: [[&str; 3]; 2] = [["-", "--for", "--one-way"], ["-", "--for", "--open"]];

/// A triple is refused only if two of it are, or if it is one of [`REFUSED`].
fn triples(
    command: &str,
    samples: &'static [Sample],
    world: &World,
    listed: &BTreeSet<[&'static str; 2]>,
) {
    let seed = match std::env::var("FONTANA_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => u64::from(std::process::id()),
    };
    println!("FONTANA_SEED={seed}");
    let bytes = noise(1 << 14, seed);
    let mut script = Script::new(&bytes);
    let is_listed = |names: &BTreeSet<&str>| REFUSED.iter().any(|it| names.iter().eq(it));
    if command == "send" {
        for names in REFUSED {
            let sample = |name| samples.iter().find(|sample| sample.name == name).unwrap();
            let words = world.words(command, &names.map(sample)).unwrap();
            assert!(world.is_refused(&words, world.directory.path()), "{names:?}");
        }
    }
    let mut drawn = Vec::new();
    while drawn.len() < TRIPLES / 2 {
        let mut draw = || script.pick(samples);
        let triple = [draw(), draw(), draw()];
        let names: BTreeSet<_> = triple.iter().map(|sample| sample.name).collect();
        let has_refused =
            names.iter().any(|one| names.iter().any(|other| listed.contains(&[*one, *other])));
        let is_new = names.len() == 3 && !has_refused && !is_listed(&names);
        drawn.extend(is_new.then(|| world.words(command, &triple)).flatten());
    }
    let refused = in_parallel(world, &drawn, |words, here| world.is_refused(words, here));
    let refused = drawn.iter().zip(refused).filter(|(_, is_refused)| *is_refused);
    let refused: Vec<_> = refused.map(|(words, _)| words.join(" ")).collect();
    assert!(refused.is_empty(), "refused, though each pair is not: {refused:#?}");
    let faults = world.faults.lock().unwrap();
    assert!(faults.is_empty(), "no hint: {faults:#?}");
}

#[test]
fn options_of_send_go_together_but_for_those_that_are_listed() {
    check("send", SEND);
}

#[test]
fn options_of_recv_go_together_but_for_those_that_are_listed() {
    check("recv", RECV);
}
