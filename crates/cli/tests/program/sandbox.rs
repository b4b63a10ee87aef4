//! The sandbox of `fontana recv`, and `--one-way`.

use crate::support::{Run, Running, Sender, arguments, assert_says, fontana, noise, place, run};
use rustix::process::Signal;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Whether the kernel confines a receiver to its files. A skipped test is reported.
fn has_landlock() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("recv --sandbox require -y --group {} --timeout 0.1 -o", place());
    let tried = run(&arguments(&words, &[directory.path()]));
    if tried.stderr.contains("Landlock") {
        fontana_testing::skip(&tried.stderr);
    }
    !tried.stderr.contains("Landlock")
}

/// What the kernel says of a running program and each of its threads.
fn status(process: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let texts = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let field = format!("{field}:");
    let value = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix(&field)).map(str::trim);
        line.unwrap().to_owned()
    };
    texts.map(value).collect()
}

/// The event about the sandbox, of a running receiver.
fn sandbox(receiver: &mut Running) -> Value {
    loop {
        let event: Value = serde_json::from_str(&receiver.line()).unwrap();
        if event["event"] == "sandbox" {
            return event;
        }
    }
}

#[test]
fn every_thread_of_a_receiver_is_confined_unless_the_user_declines() {
    let is_there = has_landlock();
    let directory = tempfile::tempdir().unwrap();
    for (option, files, network, filter) in [
        ("", "full", "open", "2"),
        ("--sandbox require", "full", "open", "2"),
        ("--share", "full", "open", "2"),
        ("--one-way", "full", "receive_only", "2"),
        ("--sandbox off", "none", "open", "0"),
    ] {
        if option == "--sandbox require" && !is_there {
            continue;
        }
        let words = format!("recv -y -i lo --group {} --json {option} -o", place());
        let mut receiver = Running::start(&arguments(&words, &[directory.path()]));
        let event = sandbox(&mut receiver);
        assert!(event["files"] == files || !is_there, "{option}: {event}");
        assert_eq!(event["network"], network, "{option}");
        let no_new_rights = if option == "--sandbox off" { "0" } else { "1" };
        // The receiver reports once per second: its threads run.
        while !receiver.line().contains("\"progress\"") {}
        let (rights, filters, roots) = receiver.inspect(|process| {
            let of = |field| status(process, field);
            (of("NoNewPrivs"), of("Seccomp"), [of("CapPrm"), of("CapBnd")].concat())
        });
        assert!(rights.len() > 3, "{rights:?}");
        assert!(rights.iter().all(|it| it == no_new_rights) || !is_there, "{option}: {rights:?}");
        assert!(filters.iter().all(|it| it == filter), "{option}: {filters:?}");
        // One that is not root has none, and no program gives it any.
        let is_root = rustix::process::geteuid().is_root();
        if option != "--sandbox off" && is_root {
            let allowed = [FILES_AND_ATTRIBUTES, NO_CAPABILITY];
            assert!(roots.iter().all(|it| allowed.contains(&it.as_str())), "{option}: {roots:?}");
        }
        receiver.stop().expect(130);
    }
}

/// What the kernel says of a process without capabilities, of one that reads and writes files of
/// all users (CAP_DAC_OVERRIDE), and of one that also sets their attributes (CAP_FOWNER).
const NO_CAPABILITY: &str = "0000000000000000";
const FILES_AND_ATTRIBUTES: &str = "000000000000000a";
const CAP_DAC_OVERRIDE: &str = "0000000000000002";

#[test]
fn a_server_and_a_sender_that_listens_are_confined() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("file"), noise(5_000, 1)).unwrap();
    let key = path("key");
    run(&arguments("keygen", &[&key])).expect(0);
    let place = place();
    let send = format!("send --one-way -i lo --json --to {place}");
    let send = arguments(&format!("{send} --sign"), &[&key, &path("file")]);
    let serve = arguments("serve --json --listen 127.0.0.1:0", &[&path("file")]);
    let listening = "--receivers 1 --exec true";
    let mut listens = send.clone();
    listens.retain(|word| word != "--one-way");
    listens.extend(listening.split(' ').map(str::to_owned));
    for (listens, command) in [(false, send), (true, serve), (true, listens)] {
        let mut running = Running::start(&command);
        // Its threads run.
        let is_progress = |line: &str| line.contains("\"progress\"") || line.contains("\"served\"");
        while !is_progress(&running.line()) {}
        let [filters, roots, bounds] = running
            .inspect(|process| ["Seccomp", "CapPrm", "CapBnd"].map(|field| status(process, field)));
        assert!(filters.iter().all(|it| (it == "2") == listens), "{command:?}: {filters:?}");
        if rustix::process::geteuid().is_root() && listens {
            assert!(roots.iter().all(|it| it == CAP_DAC_OVERRIDE), "{command:?}: {roots:?}");
            assert!(bounds.iter().all(|it| it == NO_CAPABILITY), "{command:?}: {bounds:?}");
        }
        running.stop();
    }
}

/// A kernel without Landlock: its calls fail with ENOSYS.
fn without_landlock(words: &str, directory: &Path) -> Run {
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    const ENOSYS: u32 = 38;
    let mut command = fontana();
    command.args(arguments(words, &[directory]));
    let start = move || {
        let filter = SeccompFilter::new(
            [(LANDLOCK_CREATE_RULESET, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(ENOSYS),
            TargetArch::try_from(std::env::consts::ARCH).unwrap(),
        );
        let filter: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&filter).unwrap();
        Run::of(&mut command)
    };
    // The filter is of this thread, and of the program that it starts.
    std::thread::spawn(start).join().unwrap()
}

#[test]
fn a_kernel_without_landlock_is_reported_and_refused_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, noise(100_000, 1)).unwrap();
    let sender = Sender::start(&format!("--to {}", place()), &[&file]);
    let into = directory.path().join("into");
    let words = format!("recv {} --timeout 20 --json", sender.ticket);
    let received = without_landlock(&format!("{words} -o"), &into).expect(0);
    assert_eq!(received.event("sandbox")["files"], "none");
    assert!(fs::read(into.join("file")).unwrap() == noise(100_000, 1));
    let refused =
        without_landlock(&format!("{words} --sandbox require --existing replace -o"), &into)
            .expect(2);
    assert_says(&refused, "--sandbox require: this kernel has no Landlock", "leave it out");
    // It is said where there is no terminal, too, and a server says it.
    let words = format!("recv {} --timeout 20 --existing replace", sender.ticket);
    let told = without_landlock(&format!("{words} -o"), &into).expect(0);
    assert!(told.stderr.contains("warning: this kernel has no Landlock"), "{}", told.stderr);
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(told.stderr.contains("as root it reaches those of all users"), is_root);
    sender.finish();
}

/// A reception that needs to reach a directory that its rules do not have: the rules are about the
/// directory itself, and another one has its name now.
#[test]
fn a_receiver_reaches_nothing_that_its_options_do_not_name() {
    if !has_landlock() {
        return;
    }
    for (option, code) in [("", 5), ("--sandbox off", 0)] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("file"), noise(5_000, 1)).unwrap();
        fs::create_dir(path("logs")).unwrap();
        let group = place();
        let log = path("logs/log");
        // It is as long as a log may be: the first line renames it.
        fs::File::create(&log).unwrap().set_len(10_000_000).unwrap();
        let words = format!("recv -y -i lo --group {group} --json --timeout 20 {option}");
        let line = arguments(&format!("{words} --audit"), &[&log]);
        let line = [line, arguments("-o", &[&path("into")])].concat();
        let mut receiver = Running::start(&line);
        sandbox(&mut receiver);
        fs::rename(path("logs"), path("before")).unwrap();
        fs::create_dir(path("logs")).unwrap();
        fs::write(&log, "of another program").unwrap();
        let sender = Sender::start(&format!("--open --to {group}"), &[&path("file")]);
        let run = receiver.wait().expect(code);
        sender.finish();
        assert!(fs::read(path("into/file")).unwrap() == noise(5_000, 1));
        if option.is_empty() {
            assert_says(&run, "Permission denied", "complete and verified");
            assert_eq!(fs::read(&log).unwrap(), b"of another program");
        }
    }
}

#[test]
fn a_program_of_a_confined_receiver_has_the_rights_of_its_user() {
    for option in ["", "--sandbox off", "--one-way"] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("file"), noise(5_000, 1)).unwrap();
        let sender = Sender::start(&format!("--to {}", place()), &[&path("file")]);
        let words = format!("recv {} --timeout 20 {option} -o", sender.ticket);
        let script = "cat /etc/passwd > \"$0\"; grep Seccomp: /proc/self/status >&2";
        let program = ["--exec", "sh", "-c", script].map(str::to_owned).to_vec();
        let outside = path("outside").to_str().unwrap().to_owned();
        let line = [arguments(&words, &[&path("into")]), program, vec![outside]].concat();
        let run = run(&line).expect(0);
        sender.finish();
        assert_eq!(fs::read(path("outside")).unwrap(), fs::read("/etc/passwd").unwrap());
        // With --one-way it has no network.
        let filter = if option == "--one-way" { "Seccomp:\t2" } else { "Seccomp:\t0" };
        assert!(run.stderr.contains(filter), "{option}: {}", run.stderr);
    }
}

#[test]
fn the_process_that_runs_programs_ends_with_the_receiver() {
    let directory = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::KILL] {
        let words = format!("recv -y -i lo --group {} --json -o", place());
        let mut line = arguments(&words, &[directory.path()]);
        line.extend(["--exec", "true"].map(str::to_owned));
        let mut receiver = Running::start(&line);
        sandbox(&mut receiver);
        let children = receiver.inspect(|process| {
            fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap()
        });
        let helper = format!("/proc/{}", children.trim());
        assert!(Path::new(&helper).exists(), "{children:?}");
        receiver.signal(signal);
        // The end of its standard error is that of all processes that have it.
        receiver.wait();
        for _ in 0..100 {
            // An orphan waits for its new parent to take note of its end.
            let state = fs::read_to_string(format!("{helper}/stat")).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let state = fs::read_to_string(format!("{helper}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}

#[test]
fn one_way_needs_addresses_and_its_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    let named = run(&arguments("recv -y --one-way --group localhost:7000 -o", &[directory.path()]));
    assert_says(&named.expect(2), "to look it up sends packets", "--group ADDRESS:PORT");
    let both = run(&arguments("recv -y --one-way --sandbox off -o", &[directory.path()]));
    assert_says(&both.expect(2), "--one-way with --sandbox off", "leave one of them out");
}

/// A sender may read the directory that it was started with. Another one of its name is no version.
#[test]
fn a_directory_that_another_one_replaces_is_said_and_its_version_stays() {
    if !has_landlock() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [folder, away] = ["folder", "away"].map(|name| directory.path().join(name));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), b"1").unwrap();
    let words = format!("send -i lo --json --rate 1M --watch=200ms --to {}", place());
    let mut sender = Running::start(&arguments(&words, &[&folder]));
    let mut next = || loop {
        let event: Value = serde_json::from_str(&sender.line()).unwrap();
        if event["event"] == "session" || event["event"] == "error" {
            return event;
        }
    };
    assert_eq!(next()["event"], "session");
    fs::rename(&folder, &away).unwrap();
    fs::create_dir(&folder).unwrap();
    let error = next();
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("start this sender again"), "{error}");
    fs::write(away.join("more"), b"2").unwrap();
    fs::remove_dir(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    // It may have looked in between.
    while next()["event"] != "session" {}
    sender.stop();
}
