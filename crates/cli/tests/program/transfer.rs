//! Files get from `send` to `recv`.

use crate::support::{Running, Sender, arguments, assert_says, noise, place, run};
use rustix::process::Signal;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files of these sizes in a directory of their own.
fn files(directory: &Path, sizes: &[usize]) -> Vec<PathBuf> {
    let from = directory.join("from");
    std::fs::create_dir(&from).unwrap();
    let file = |(number, &size): (usize, &usize)| {
        let path = from.join(format!("file {number}"));
        std::fs::write(&path, noise(size, number as u64)).unwrap();
        path
    };
    sizes.iter().enumerate().map(file).collect()
}

fn assert_equal(files: &[PathBuf], into: &Path) {
    for file in files {
        let received = std::fs::read(into.join(file.file_name().unwrap())).unwrap();
        assert!(received == std::fs::read(file).unwrap(), "{file:?}");
    }
    let found = std::fs::read_dir(into).unwrap().count();
    assert_eq!(found, files.len(), "nothing else is left in {into:?}");
}

fn paths(files: &[PathBuf]) -> Vec<&Path> {
    files.iter().map(PathBuf::as_path).collect()
}

#[test]
fn files_of_every_size_arrive_by_the_command_that_was_printed() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[0, 1, 1343, 1344, 1345, 700_000]);
    let sender = Sender::start(&format!("--to {}", place()), &paths(&files));
    let into = directory.path().join("into");
    let words = format!("recv {} --timeout 20 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    assert_eq!(received.stdout, "");
    assert!(!received.stderr.contains(['\x1b', '\r']), "no bars: {}", received.stderr);
    assert_equal(&files, &into);
    sender.finish();
}

#[test]
fn every_way_to_send_can_be_received() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[3_000, 300_000]);
    for (number, way) in [
        "--order sequential",
        "--order sequential:25 --block-symbols 50",
        "--fec none",
        "--fec tornado --block-symbols 100",
        "--fec tornado:10 --block-symbols 200",
        "--fec lt --block-symbols 200",
        "--fec lt-strict --block-symbols 200 --open",
        "--symbol-size 512 --memory 32M",
        "--content-version 9 --ttl 0",
        "--order space",
        "--order space --fec tornado --block-symbols 100",
        "--layers 3",
    ]
    .into_iter()
    .enumerate()
    {
        let sender = Sender::start(&format!("--to {} {way}", place()), &paths(&files));
        let into = directory.path().join(number.to_string());
        let words = format!("recv {} --timeout 20 -o", sender.ticket);
        run(&arguments(&words, &[&into])).expect(0);
        assert_equal(&files, &into);
        sender.finish();
    }
}

#[test]
fn a_plain_flute_session_is_received_and_nobody_vouches_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[1, 300_000]);
    // With losses, a receiver needs the repair symbols of the code.
    let ways = ["", "/0", " --fec raptorq", " --fec raptor"];
    for (code, loss) in ways.into_iter().zip(["0", "0", "0", "20"]) {
        let way = format!("--flute --to {}{code}", place());
        let sender = Sender::start(&way, &paths(&files));
        let into = directory.path().join(format!("into {code}").replace('/', ""));
        let options = format!("--flute FONTANA_SIMULATE_LOSS={loss} --json --timeout 20 -o");
        let words = format!("recv {} {options}", sender.ticket);
        let received = run(&arguments(&words, &[&into])).expect(0);
        assert_eq!(received.event("summary")["verified"], "none");
        assert_equal(&files, &into);
        sender.finish();
    }
}

#[test]
fn an_fcast_session_is_received_in_slices_and_nobody_vouches_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[1, 300_000]);
    let way = format!("--to {} --fcast=64K", place());
    let sender = Sender::start(&way, &paths(&files));
    let into = directory.path().join("into");
    let words = format!("recv {} --fcast --json --timeout 20 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    assert_eq!(received.event("summary")["verified"], "none");
    assert_eq!(received.event("carousel_found")["source"], "127.0.0.1");
    let events = received.events();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    // Five slices and a file, of two files.
    assert_eq!((count("file_found"), count("object_done")), (2, 6));
    assert_equal(&files, &into);
    // A ticket that does not say it.
    let (ticket, _) = sender.ticket.split_once("?format=fcast").unwrap();
    let words = format!("recv {ticket} -y --timeout 1 -o");
    let said = run(&arguments(&words, &[&into])).expect(75).stderr;
    assert!(said.contains("with --flute or --fcast if the sender is"), "{said}");
    sender.finish();
}

#[test]
fn what_a_list_names_is_sent_and_what_is_wrong_with_it_is_said_with_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[0, 3_000, 300_000]);
    let lines = |end: &str| {
        let names = files[1..].iter().map(|path| format!("{}{end}", path.display()));
        names.collect::<String>()
    };
    let list = directory.path().join("list");
    for (number, end) in ["\n", "\n\n", "\0"].into_iter().enumerate() {
        std::fs::write(&list, lines(end)).unwrap();
        let way = format!("--to {} --from-list {}", place(), list.display());
        let sender = Sender::start(&way, &[&files[0]]);
        let into = directory.path().join(number.to_string());
        let words = format!("recv {} --timeout 20 -o", sender.ticket);
        run(&arguments(&words, &[&into])).expect(0);
        assert_equal(&files, &into);
        sender.finish();
    }
    let other = directory.path().join("file 2");
    std::fs::write(&other, "x").unwrap();
    let [one, other] = [&files[2], &other].map(|path| path.display().to_string());
    for (text, code, message, hint) in [
        (String::new(), 2, "the list has no names", "write one on each line"),
        (format!("{one}\n{one}.gone\n"), 5, "line 2 of ", "correct the list"),
        (format!("{one}\n{other}"), 2, "\"file 2\" is the name of line 1, too", "rename"),
        (format!("{one}\n-\n"), 2, "- is no name of a file", "./-"),
    ] {
        std::fs::write(&list, text).unwrap();
        let words = format!("send -i lo --dry-run --from-list {}", list.display());
        assert_says(&run(&arguments(&words, &[])).expect(code), message, hint);
    }
    let both = run(&arguments("send -i lo --from-list - -", &[])).expect(2);
    assert_says(&both, "beside other files", "in two sessions");
}

/// KEEP_DATA and PUSH_DATA of Roca and Mordelet 2002, section 4.2.3.
#[test]
fn files_of_a_list_join_a_running_fcast_session_at_an_empty_line() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[100_000, 1_000, 200_000]);
    let (list, mut producer) = std::io::pipe().unwrap();
    let mut write = |text: String| producer.write_all(text.as_bytes()).unwrap();
    let [first, second, third] = [0, 1, 2].map(|number: usize| files[number].display().to_string());
    write(format!("{first}\n\n"));
    let way = format!("--to {} --fcast --from-list -", place());
    let sender = Sender::start_with(list.into(), &way, &[]);
    let into = directory.path().join("into");
    let words = format!("recv {} --json --timeout 30 -o", sender.ticket);
    let mut receiver = Running::start(&arguments(&words, &[&into]));
    // The first file is shown, and its receiver waits for more.
    while !receiver.line().contains("\"object_done\"") {}
    let socket = directory.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    write(format!("{first}.gone\n{second}\n{}\n{third}\n{first}\n", socket.display()));
    drop(producer);
    let received = receiver.wait().expect(0);
    let done = received.events().iter().filter(|event| event["event"] == "object_done").count();
    assert_eq!(done, 2);
    assert_equal(&files, &into);
    let sent = sender.into_running().stop().expect(5);
    let gone = format!("line 3 of standard input: cannot open \"{first}.gone\"");
    let twice = "line 7 of standard input: \"file 0\" is the name of line 1, too";
    for said in [&gone, "line 5 of standard input: ", twice] {
        assert!(sent.stderr.contains(said), "{}", sent.stderr);
    }
    assert!(sent.stderr.contains("added from the list: 2 paths"), "{}", sent.stderr);
}

#[test]
fn a_lossy_receiver_is_told_how_lossy_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[2_000_000]);
    let sender = Sender::start(&format!("--to {}", place()), &paths(&files));
    let into = directory.path().join("into");
    let words = format!("recv {} FONTANA_SIMULATE_LOSS=30 --json --timeout 20 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    let summary = received.event("summary");
    let loss = summary["loss"].as_f64().unwrap();
    // 2 000 packets of probability 0.3: five standard deviations are 0.05. A busy host drops more.
    assert!((0.25..1.0).contains(&loss), "{loss}");
    assert!(summary["reception_inefficiency"].as_f64().unwrap() >= 1.0, "{summary}");
    assert_equal(&files, &into);
    sender.finish();
}

#[test]
fn a_signed_session_is_received_as_signed() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[10_000]);
    let key = directory.path().join("key");
    let public = run(&arguments("keygen", &[&key])).expect(0).stdout;
    let words = format!("--to {} --sign {}", place(), key.display());
    let sender = Sender::start(&words, &paths(&files));
    assert!(sender.ticket.contains(public.trim()), "{}", sender.ticket);
    let into = directory.path().join("into");
    let words = format!("recv {} --json --timeout 20 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    assert_eq!(received.event("object_done")["verified"], "signed");
    assert_equal(&files, &into);
    sender.finish();
}

#[test]
fn several_hosts_get_a_copy_each() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[100_000]);
    let sockets = [0, 1].map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let hosts = sockets.map(|socket| socket.local_addr().unwrap().to_string());
    let words = format!("send --to {} --json", hosts.join(","));
    let mut sender = Running::start(&arguments(&words, &paths(&files)));
    let session: serde_json::Value = serde_json::from_str(&sender.line()).unwrap();
    for (number, ticket) in session["tickets"].as_array().unwrap().iter().enumerate() {
        let into = directory.path().join(number.to_string());
        let words = format!("recv {} --timeout 20 -o", ticket.as_str().unwrap());
        run(&arguments(&words, &[&into])).expect(0);
        assert_equal(&files, &into);
    }
    sender.stop().expect(130);
}

#[test]
fn a_finite_sender_ends_by_itself_and_a_receiver_that_was_there_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[500_000]);
    let (place, into) = (place(), directory.path().join("into"));
    let words = format!("recv -y -i lo --group {place} --json --timeout 20 -o");
    let mut receiver = Running::start(&arguments(&words, &[&into]));
    assert!(receiver.line().contains("\"session\""), "it has joined");
    let words = format!("send --open -i lo --to {place} --push 10 --rate 50M --json");
    let sent = run(&arguments(&words, &paths(&files))).expect(0);
    receiver.wait().expect(0);
    assert_equal(&files, &into);
    let (session, summary) = (sent.event("session"), sent.event("summary"));
    let k = session["source_symbols"].as_u64().unwrap();
    assert_eq!(summary["source_symbols"].as_u64(), Some(k));
    assert_eq!(summary["repair_symbols"].as_u64(), Some(k.div_ceil(10)));
}

#[test]
fn a_receiver_that_was_stopped_goes_on_with_what_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[8_000_000]);
    let sender = Sender::start(&format!("--to {} --rate 50M", place()), &paths(&files));
    let into = directory.path().join("into");
    let words = format!("recv {} --json -o", sender.ticket);
    let mut receiver = Running::start(&arguments(&words, &[&into]));
    while !receiver.line().contains("accepted") {}
    // After a quarter of the file; some of it must have been saved.
    std::thread::sleep(std::time::Duration::from_millis(300));
    receiver.signal(Signal::INT);
    let stopped = receiver.wait().expect(130);
    assert!(stopped.event("summary")["fresh"].as_u64().unwrap() > 0);
    let words = format!("recv {} --json --timeout 20 -o", sender.ticket);
    let resumed = run(&arguments(&words, &[&into])).expect(0);
    assert!(resumed.event("resumed")["symbols"].as_u64().unwrap() > 0);
    let summary = resumed.event("summary");
    assert!(summary["fresh"].as_u64() < summary["source_symbols"].as_u64(), "{summary}");
    assert_equal(&files, &into);
    sender.finish();
}

#[test]
fn a_sender_ends_when_its_time_is_up() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[1000]);
    let words = format!("send -i lo --to {} --for 500ms --json", place());
    let sent = run(&arguments(&words, &paths(&files))).expect(0);
    let seconds = sent.event("summary")["seconds"].as_f64().unwrap();
    assert!(seconds >= 0.5, "{seconds}");
}

#[test]
fn a_receiver_reports_over_ipv6() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), &[100_000]);
    let Ok(socket) = std::net::UdpSocket::bind("[::1]:0") else { return };
    let host = socket.local_addr().unwrap();
    drop(socket);
    let sender = Sender::start(&format!("--to {host} --receivers 1 --for 60"), &paths(&files));
    let into = directory.path().join("into");
    run(&arguments(&format!("recv {} --timeout 50 -o", sender.ticket), &[&into])).expect(0);
    assert_equal(&files, &into);
    // Its report has arrived.
    sender.into_running().wait().expect(0);
}
