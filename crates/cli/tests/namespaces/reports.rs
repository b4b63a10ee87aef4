//! Receivers that report: each expected one is named with its state, and no packet leaves one that
//! was not asked or not allowed.

use crate::bench::Mounted;
use crate::program::Program;
use crate::scene::{GROUP, Scene, same_file};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for what takes seconds on an idle host.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes a key on host 0. `words`: `keygen`, or `keygen --group`.
pub(crate) fn keygen(scene: &Scene, words: &str, name: &str) -> PathBuf {
    let key = scene.path(name);
    let words = words.split_whitespace().map(OsString::from);
    let arguments: Vec<_> = words.chain([key.clone().into()]).collect();
    let (code, errors) = scene.bench.start(0, &arguments).finish(PATIENCE);
    assert_eq!(code, Some(0), "{errors}");
    key
}

/// A receiver that reports, its host and its directory.
struct Reporting {
    label: String,
    host: usize,
    into: PathBuf,
    program: Option<Program>,
}

/// A session with reports, and its receivers.
struct Session {
    scene: Scene,
    file: PathBuf,
    /// Options of the sender.
    options: String,
    /// Options of all receivers.
    receiving: String,
    receivers: Vec<Reporting>,
}

impl Session {
    /// `count` receivers on hosts of their own, with a group key.
    fn new(count: usize, bytes: u64) -> Option<Self> {
        let scene = Scene::new(count + 1)?;
        let file = scene.noise("image.raw", bytes);
        let sign = keygen(&scene, "keygen", "publisher.key");
        let group = keygen(&scene, "keygen --group", "group.key");
        let receivers: Vec<_> = (0..count)
            .map(|number| Reporting {
                label: format!("rack-{number}"),
                host: 1 + number,
                into: scene.path(&format!("into {number}")),
                program: None,
            })
            .collect();
        let expected: String = receivers.iter().map(|it| format!("{}\n", it.label)).collect();
        let list = scene.path("expected");
        std::fs::write(&list, expected).unwrap();
        let options = format!(
            "--rate 5M --sign {} --group-key {} --receivers {}",
            sign.display(),
            group.display(),
            list.display()
        );
        let receiving = format!("--group-key {} --timeout 100", group.display());
        Some(Self { scene, file, options, receiving, receivers })
    }

    fn start(&mut self, number: usize, ticket: &str) {
        let receiver = &mut self.receivers[number];
        let words =
            format!("recv --json {ticket} {} --label {} -o", self.receiving, receiver.label);
        let words = words.split_whitespace().map(OsString::from);
        let arguments: Vec<_> = words.chain([receiver.into.clone().into()]).collect();
        receiver.program = Some(self.scene.bench.start(receiver.host, &arguments));
    }

    /// Waits for the end of a receiver, which must have this exit code.
    fn finish(&mut self, number: usize, code: i32) {
        let receiver = &mut self.receivers[number];
        let mut program = receiver.program.take().unwrap();
        let (actual, errors) = program.finish(PATIENCE);
        assert_eq!(actual, Some(code), "{}: {errors}", receiver.label);
        if code == 0 {
            assert!(same_file(&self.file, &receiver.into.join("image.raw")), "{}", receiver.label);
        }
        let sandbox = program.last("sandbox").unwrap();
        assert_eq!(sandbox["network"], "reports_only", "{sandbox}");
    }

    fn kill(&mut self, number: usize) {
        let mut program = self.receivers[number].program.take().unwrap();
        program.kill();
        program.finish(PATIENCE);
    }
}

/// Waits until a receiver has reported this state.
fn wait_for(sender: &mut Program, label: &str, state: &str) -> Value {
    let is_it = |event: &Value| event["label"] == label && event["state"] == state;
    if let Some(seen) = sender.all("report").find(|event| is_it(event)) {
        return seen.clone();
    }
    loop {
        let event = sender.wait_for("report", PATIENCE);
        if is_it(&event) {
            return event;
        }
    }
}

fn label(number: usize) -> String {
    format!("rack-{number}")
}

/// Receivers 0, 1 and 2 do not finish: the disk of the first is full, the second is killed before
/// its first report, the third after it. After a restart all are complete.
fn each_is_named(count: usize) {
    let Some(mut session) = Session::new(count, 3 << 20) else { return };
    std::fs::create_dir(&session.receivers[0].into).unwrap();
    let disk = Mounted::tmpfs(&session.receivers[0].into, "1m");
    let status = session.scene.path("status.json");
    let options = format!("{} --status-file {}", session.options, status.display());
    let sent = session.scene.send(0, &options, &session.file);
    let (ticket, mut sender) = (sent.ticket, sent.sender);

    // Its packets are stopped before anything arrives.
    let mute = session.receivers[1].host;
    let rule = "nft add table inet mute
         nft 'add chain inet mute output { type filter hook output priority 0; }'
         nft add rule inet mute output meta l4proto udp counter drop";
    let run = |session: &Session, command: &str| {
        let status = session.scene.bench.command(mute, "sh").args(["-ec", command]).status();
        assert!(status.unwrap().success());
    };
    run(&session, rule);
    session.start(1, &ticket);
    session.receivers[1].program.as_mut().unwrap().wait_for("accepted", PATIENCE);
    session.kill(1);
    run(&session, "nft delete table inet mute");
    session.start(2, &ticket);
    wait_for(&mut sender, &label(2), "receiving");
    session.kill(2);
    for number in (0..count).filter(|&number| number != 1 && number != 2) {
        session.start(number, &ticket);
    }
    let failed = wait_for(&mut sender, &label(0), "failed");
    assert_eq!(failed["code"], 5, "{failed}");
    for number in 3..count {
        wait_for(&mut sender, &label(number), "complete");
    }
    session.finish(0, 5);
    (3..count).for_each(|number| session.finish(number, 0));
    sender.interrupt();
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(9), "{said}");
    let missing: Vec<_> = sender.all("missing").collect();
    let states: Vec<_> = missing.iter().map(|it| (&it["label"], &it["state"])).collect();
    let names: Vec<Value> = (0..3).map(|number| label(number).into()).collect();
    let expected = ["failed", "never_heard", "receiving"].map(Value::from);
    assert_eq!(states, names.iter().zip(&expected).collect::<Vec<_>>());
    let last = sender.last("roll_call").unwrap();
    assert_eq!((&last["complete"], &last["failed"]), (&(count as u64 - 3).into(), &1.into()));
    assert_eq!((&last["authenticated"], &last["ignored"]), (&true.into(), &0.into()), "{last}");
    let status: Value = serde_json::from_slice(&std::fs::read(&status).unwrap()).unwrap();
    assert_eq!(status["missing"], Value::from(names), "{status}");
    assert_eq!(status["receivers"].as_array().unwrap().len(), count - 1);

    // All are started again, the disk has room, and the sender ends by itself.
    disk.resize("16m");
    let done = session.scene.path("done");
    let mut sender = send_with_program(&session, &done);
    let ticket = sender.wait_for("session", PATIENCE)["ticket"].as_str().unwrap().to_owned();
    (0..count).for_each(|number| session.start(number, &ticket));
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(sender.last("roll_call").unwrap()["complete"], count as u64);
    assert!(done.exists(), "--exec was not run");
    (0..count).for_each(|number| session.finish(number, 0));
}

/// The sender with a deadline and a program at the end.
fn send_with_program(session: &Session, done: &Path) -> Program {
    let words = format!("send --json --to {GROUP} {} --for 110", session.options);
    let words = words.split_whitespace().map(OsString::from);
    let program = ["--exec".into(), "touch".into(), OsString::from(done)];
    let file = [OsString::from(&session.file)];
    let arguments: Vec<_> = words.chain(file).chain(program).collect();
    session.scene.bench.start(0, &arguments)
}

#[test]
fn each_expected_receiver_is_named_and_after_a_restart_all_are_complete() {
    each_is_named(5);
}

/// Run by `.ci/long reports`.
#[test]
#[ignore = "fifty receivers"]
fn fifty_receivers_are_named() {
    each_is_named(50);
}

#[test]
fn receivers_that_are_not_asked_or_not_allowed_send_nothing() {
    let Some(scene) = Scene::new(4) else { return };
    let file = scene.noise("image.raw", 300_000);
    let sign = keygen(&scene, "keygen", "publisher.key");
    let asks = format!("--rate 10M --sign {}", sign.display());
    for host in 1..4 {
        scene.bench.count_sent(host);
    }
    let silent = scene.send_to("239.255.77.2:7701", 0, &format!("{asks} --one-way"), &file);
    let asking = scene.send(0, &format!("{asks} --ask"), &file);
    // Not asked; not allowed; asked and allowed.
    scene.receive(1, &silent.ticket, "").complete();
    scene.receive(2, &asking.ticket, "--one-way").complete();
    let mut allowed = scene.receive(3, &asking.ticket, "--label third");
    allowed.complete();
    let call = allowed.receiver.last("roll_call").unwrap();
    assert!(call["collector"].as_str().unwrap().starts_with("10.77.0.1:"), "{call}");
    for host in 1..3 {
        assert_eq!(scene.bench.sent(host).1, 0, "packets of host {host}");
    }
    let sent = scene.bench.sent(3).1;
    assert!((1..=10).contains(&sent), "{sent} reports");
    let mut sender = asking.sender;
    wait_for(&mut sender, "third", "complete");
    sender.interrupt();
    let (code, said) = sender.finish(PATIENCE);
    // Without --receivers the exit code is that of any interrupted sender.
    assert_eq!(code, Some(130), "{said}");
    assert!(sender.last("missing").is_none());
    silent.end();
}
