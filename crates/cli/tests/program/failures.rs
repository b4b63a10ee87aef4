//! Errors that need no privilege to cause: the exit code, the message and the hint.

use crate::support::{Running, Sender, arguments, assert_says, noise, place, record, run};
use rustix::process::Signal;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn file(directory: &Path, size: usize) -> PathBuf {
    let path = directory.join("file");
    std::fs::write(&path, noise(size, 1)).unwrap();
    path
}

#[test]
fn a_command_line_that_makes_no_sense_is_2() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 10);
    for words in [
        "frobnicate",
        "send",
        "send --rate fast f",
        "send --burst 101ms f",
        "send --to 239.1.2.3:5/x f",
        "send --flute=3 f",
        "send --flute --sign k f",
        "send --fcast --flute f",
        "send --fcast --manifest m f",
        "send --fcast=1 f",
        "send --layers 65 f",
        "send --layers 1M,x f",
        "recv --fcast --flute",
        "recv --fcast --only x",
        "recv fontana://nowhere",
        "recv http://239.255.1.1:5/5",
        "recv --mirrors 101% fontana://10.0.0.1@239.1.2.3:5/5",
        "recv --existing keep -y",
        "recv --accept new -y",
        "recv --watch=0 -y",
        "send --order sequential:x f",
    ] {
        run(&arguments(words, &[])).expect(2);
    }
    let refused = run(&arguments("send -i lo --to 239.1.2.3/0", &[&path])).expect(2).stderr;
    assert!(refused.contains("1 to 4294967295, and 0 in plain FLUTE"), "{refused}");
    for (words, message, hint) in [
        ("--to 239.1.2.3:5,10.0.0.1:5", "only some of them are groups", "only hosts"),
        ("--to 239.1.2.3:5,239.1.2.4:6", "different ports", "one port"),
        ("--to 239.1.2.3:5,239.1.2.4:5,239.1.2.3:5", "appears twice", "its own"),
        ("--to 239.1.2.3:5,239.1.2.4:5 --layers 3", "not the number of groups", "leave it out"),
        ("--to 10.0.0.1:5 --layers 2", "a multicast group for each", "one channel"),
        ("--to 239.255.255.255:5 --layers 2", "leave the range", "lower group"),
        ("--layers 2 --flute", "one channel", "--layers"),
        ("--to 239.1.2.3/5,239.1.2.4/6", "two session numbers", "give it once"),
        ("--flute --fec lt", "neither Tornado nor LT", "--fec raptorq"),
        ("--fcast --fec tornado", "neither Tornado nor LT", "--fec raptorq"),
        ("--to 239.1.2.3:x", "no address", "GROUP:PORT"),
        ("--to 239.1.2.3:5 --ttl 2", "RFC 8085", "--controlled-network"),
        ("--ttl 2 --layered=fixed --layers 3", "RFC 8085", "--layered"),
        ("--layered=webrc --layers 1M,1M", "the session's rate", "--layers"),
        ("--layered=webrc --layers 2", "2 groups for", "--layers"),
        ("--layered --layers 1M,1M", "the session's rate", "--layers"),
    ] {
        let refused = run(&arguments(&format!("send {words}"), &[&path])).expect(2);
        assert_says(&refused, message, hint);
    }
    for (words, message, hint) in [
        ("--ttl 2", "RFC 8085", "--controlled-network"),
        ("--layers 2", "a stream has one channel", "--layers"),
        ("--fec tornado:4", "sent once", "leave the option out"),
        ("--order space", "sent once", "leave the option out"),
    ] {
        let refused = run(&arguments(&format!("send - {words}"), &[])).expect(2);
        assert_says(&refused, message, hint);
    }
    for words in [
        "--ttl 1",
        "--ttl 2 --controlled-network",
        "--ttl 2 --layered",
        "--ttl 2 --layered=webrc",
        "--ttl 2 --layered=rlc --layers 5",
        "--ttl 2 --layered=flid-sl --layers 1M,1M",
        "--burst 0",
        "--burst 100ms",
        "--fec tornado:2",
        "--fec tornado:10",
    ] {
        run(&arguments(&format!("send --dry-run {words}"), &[&path])).expect(0);
    }
    for (words, part) in [
        ("-i nosuch0", "lo (127.0.0.1"),
        ("--rate 100", "at least 8000"),
        ("--memory 1M", "at least 32M"),
        ("--symbol-size 30", "at least 220"),
        ("--layers 20", "--rate"),
        ("--rate lo=1M,2M", "\"2M\" names no interface"),
        ("--rate lo=1M..2M -i lo", "bits per second"),
        ("--rate lo=1M", "for lo, on which nothing is sent"),
        ("--rate lo=1M,lo=1M -i lo", "not one rate for lo"),
        ("--rate lo=1M -i lo -i 10.0.0.0/8", "not one rate for 10.0.0.0/8"),
        ("--fec tornado:1", "2 to 10 symbols for each"),
        ("--fec tornado:11", "2 to 10 symbols for each"),
        ("--fec lt:4", "there are raptorq, raptor"),
        ("--layers 1M,2M,4M --rate 6M", "raise --rate"),
        ("--layers 1M,2M,4M --to 239.1.2.3:5,239.1.2.4:5", "one for each channel"),
        ("--fcast=1000", "at least 1024"),
        ("--to 224.0.0.5:7701", "239.255.0.0/16"),
        ("--to [::]:7701", "every address of a host"),
        ("--to 0.0.0.0", "every address of a host"),
        ("--to [fe80::1%nosuch0]:7701", "no interface"),
    ] {
        let refused = run(&arguments(&format!("send {words}"), &[&path])).expect(2);
        assert!(refused.stderr.contains(part), "{words}: {}", refused.stderr);
    }
}

/// The file of tickets of a sender on two networks, as a shell puts it on a command line.
#[test]
fn several_tickets_are_refused_with_their_number() {
    let ticket = "fontana://239.255.77.1:7701/7";
    let refused = run(&["recv", &format!("{ticket}\n{ticket}8")]).expect(2);
    assert!(refused.stderr.contains("these are 2 tickets"), "{}", refused.stderr);
    assert!(refused.stderr.contains("for this network"), "{}", refused.stderr);
}

/// Of several, that of this host; and what a sender has printed may be around it.
#[test]
fn a_ticket_is_found_among_others_and_in_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ticket");
    let here = format!("fontana://127.0.0.1@{}/7", place());
    for text in [
        format!("fontana://203.0.113.9@239.255.77.1:7701/7\n{here}\n"),
        format!("fontana recv --watch '{here}'\n"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let words = format!("recv {} --timeout 50ms -o", file.display());
        let said = run(&arguments(&words, &[directory.path()])).expect(75).stderr;
        assert!(said.contains("(lo)"), "{text}: {said}");
    }
}

#[test]
fn without_a_ticket_and_a_terminal_there_is_nobody_to_ask() {
    let asked = run(&["recv"]).expect(2);
    assert_says(&asked, "no terminal", "fontana recv -y");
}

#[test]
fn too_little_time_is_3() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 30_000_000);
    let sender = Sender::start(&format!("--to {} --rate 20M", place()), &[&path]);
    let into = directory.path().join("into");
    let words = format!("recv {} --timeout 3 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(3);
    assert_says(&received, "incomplete after 3", "the same command goes on");
    assert!(!into.join("file").exists(), "nothing unverified has a final name");
    sender.finish();
}

/// Sends each symbol of content that `from` receives to a port, and one of the heads and manifests
/// after every fourth. Ends when no more symbols come.
fn forward(from: &UdpSocket, public: &[Vec<u8>], port: u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    from.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let (mut public, mut packet, mut symbols) = (public.iter().cycle(), [0; 2048], 0);
    while let Ok(length) = from.recv(&mut packet) {
        // Refused once the receiver has ended.
        if packet[12..16] == [0, 0, 0, 1] {
            let _ = socket.send_to(&packet[..length], ("127.0.0.1", port));
            symbols += 1;
        }
        if symbols % 4 == 1 {
            let _ = socket.send_to(public.next().unwrap(), ("127.0.0.1", port));
        }
    }
}

/// A session whose symbols are of another file than its manifest.
#[test]
fn content_that_is_not_the_manifests_is_4() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 60_000);
    let (ticket, public, port) = record(&path, "/9 --rate 20M");
    std::fs::write(&path, noise(60_000, 2)).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = socket.local_addr().unwrap().port();
    let words = format!("--open --to 127.0.0.1:{other}/9 --rate 20M");
    let sender = Sender::start(&words, &[&path]);
    let into = directory.path().join("into");
    let words = format!("recv {ticket} -i lo --json --timeout 30 -o");
    let received = std::thread::scope(|scope| {
        scope.spawn(|| forward(&socket, &public, port));
        let received = run(&arguments(&words, &[&into]));
        sender.finish();
        received
    });
    let received = received.expect(4);
    assert_says(&received, "is not that of the manifest", "fontana://ADDRESS@");
    assert_eq!(received.event("summary")["corrupt_blocks"], 2);
    assert_eq!(received.event("object_failed")["code"], 4);
    assert!(!into.join("file").exists(), "nothing unverified has a final name");
}

#[test]
fn a_disk_that_takes_no_more_is_5() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 3_000_000);
    let sender = Sender::start(&format!("--to {}", place()), &[&path]);
    // A limit on the size of files stands in for a full disk: it needs no privilege. In units of
    // 512 bytes.
    let script = "ulimit -f 2000; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_fontana"), "recv", &sender.ticket])
        .args(["--timeout", "20", "-o"])
        .arg(directory.path().join("into"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("error: ") && stderr.contains("receive again"), "{stderr}");
    assert!(!directory.path().join("into/file").exists());
    sender.finish();
}

#[test]
fn a_file_that_exists_is_6_unless_it_may_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 50_000);
    let sender = Sender::start(&format!("--to {}", place()), &[&path]);
    let into = directory.path().join("into");
    std::fs::create_dir(&into).unwrap();
    std::fs::write(into.join("file"), "precious").unwrap();
    let words = format!("recv {} --timeout 20 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(6);
    assert_says(&received, "exists already", "--existing replace");
    assert_eq!(std::fs::read(into.join("file")).unwrap(), b"precious");
    let words = format!("recv {} --existing replace --timeout 20 -o", sender.ticket);
    run(&arguments(&words, &[&into])).expect(0);
    assert_eq!(std::fs::read(into.join("file")).unwrap(), noise(50_000, 1));
    let words = format!("recv {} --timeout 20 -o", sender.ticket);
    let again = run(&arguments(&words, &[&into])).expect(0);
    assert!(again.stderr.contains("already there, verified: 1 file"), "{}", again.stderr);
    sender.finish();
}

#[test]
fn a_directory_that_cannot_be_is_6() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 10);
    let words = format!("recv fontana://{}/1 -i lo -o", place());
    let received = run(&arguments(&words, &[&path.join("below a file")])).expect(6);
    assert_says(&received, "below a file", "choose a directory");
}

#[test]
fn a_wrong_key_is_7() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 50_000);
    let keys = ["one", "other"].map(|name| directory.path().join(name));
    let [one, other] = keys.clone().map(|key| run(&arguments("keygen", &[&key])).expect(0).stdout);
    let words = format!("--to {} --sign {}", place(), keys[0].display());
    let sender = Sender::start(&words, &[&path]);
    let ticket = sender.ticket.replace(one.trim(), other.trim());
    assert_ne!(ticket, sender.ticket);
    let into = directory.path().join("into");
    let words = format!("recv {ticket} --timeout 1 -o");
    let received = run(&arguments(&words, &[&into])).expect(7);
    assert_says(
        &received,
        "not signed with the ticket's key",
        "packets arrived and none was believed",
    );
    sender.finish();

    let words = format!("send --sign {}", path.display());
    let sent = run(&arguments(&words, &[&path])).expect(7);
    assert_says(&sent, "key file", "fontana keygen");
}

#[test]
fn a_file_that_changes_is_8_and_the_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let changing = directory.path().join("changing");
    // More than fits the memory, so that it is read repeatedly.
    std::fs::write(&changing, noise(40_000_000, 5)).unwrap();
    let steady = file(directory.path(), 50_000);
    let words = format!("--to {} --memory 32M --rate 300M", place());
    let sender = Sender::start(&words, &[&changing, &steady]);
    let ticket = sender.ticket.clone();
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(&changing, noise(40_000_000, 6)).unwrap();
    // The steady file is still sent: its receiver completes that one and waits for the other.
    let into = directory.path().join("into");
    std::thread::sleep(Duration::from_secs(1));
    // A busy sender reads all of the other file first.
    let words = format!("recv {ticket} --json --timeout 8 -o");
    let received = run(&arguments(&words, &[&into])).expect(3);
    assert_eq!(received.event("object_done")["names"][0], "file");
    assert_eq!(std::fs::read(into.join("file")).unwrap(), noise(50_000, 1));
    let sent = sender.into_running().stop().expect(8);
    assert_says(&sent, "changing", "the other files go on");
}

#[test]
fn a_sender_whose_only_file_changes_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 40_000_000);
    let words = format!("--to {} --memory 32M --rate 300M", place());
    let sender = Sender::start(&words, &[&path]);
    std::fs::write(&path, "short").unwrap();
    let sent = sender.into_running().wait().expect(8);
    assert_says(&sent, "file", "snapshot");
}

#[test]
fn silence_is_75() {
    let directory = tempfile::tempdir().unwrap();
    let place = place();
    let words = format!("recv fontana://{place}/1 -i lo --silence 1 -o");
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    let message = format!("nothing heard on {place} (lo) for 1");
    assert_says(&received, &message, "the group was joined, 0 packets arrived");
    assert_says(&received, &message, "fontana doctor");
}

#[test]
fn another_session_on_the_group_is_75_and_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 1000);
    let place = place();
    let sender = Sender::start(&format!("--open --to {place}/5"), &[&path]);
    let words = format!("recv fontana://{place}/6 -i lo --timeout 1 -o");
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    assert_says(&received, "the session was not heard", "of other sessions");
    // An old ticket of the same sender.
    let words = format!("recv fontana://127.0.0.1@{place}/6 -i lo --timeout 1 -o");
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    assert_says(&received, "the session was not heard", "127.0.0.1, now sends session 5: take");
    sender.finish();
}

#[test]
fn a_ticket_says_the_format_of_its_session() {
    for format in ["flute", "fcast"] {
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), 1000);
        let sender = Sender::start(&format!("--to {} --{format}", place()), &[&path]);
        let (ticket, into) = (sender.ticket.clone(), directory.path().join("into"));
        assert!(ticket.ends_with(&format!("?format={format}")), "{ticket}");
        let refused = run(&arguments(&format!("recv {ticket} --share -o"), &[&into])).expect(2);
        assert_says(&refused, &format!("--{format} with --share"), "Fontana's format");
        let other = if format == "flute" { "fcast" } else { "flute" };
        let refused = run(&arguments(&format!("recv {ticket} --{other} -o"), &[&into])).expect(2);
        assert_says(&refused, "a session has one format", "that of the ticket");
        run(&arguments(&format!("recv {ticket} --timeout 60 -o"), &[&into])).expect(0);
        assert_eq!(std::fs::read(into.join("file")).unwrap(), std::fs::read(&path).unwrap());
        sender.finish();
    }
}

/// A ticket as it was written by hand.
fn without_format(ticket: &str) -> &str {
    ticket.split("?format=").next().unwrap_or(ticket)
}

#[test]
fn a_ticket_of_plain_flute_or_fcast_is_named_after_some_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 1000);
    let kinds = [("--flute", "is plain FLUTE"), ("--fcast", "if the sender is FCAST")];
    let receptions = kinds.map(|(option, said)| {
        let sender = Sender::start(&format!("--to {} {option}", place()), &[&path]);
        let words = format!("recv {} --timeout 7 -o", without_format(&sender.ticket));
        (said, Running::start(&arguments(&words, &[directory.path()])), sender)
    });
    for (said, receiving, sender) in receptions {
        let told = receiving.wait().expect(75).stderr;
        assert!(told.contains("warning: ") && told.contains(said), "{told}");
        sender.finish();
    }
}

#[test]
fn a_session_without_a_table_of_contents_is_75_and_may_be_plain_flute() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 1000);
    let sender = Sender::start(&format!("--to {} --flute", place()), &[&path]);
    let words = format!("recv {} --timeout 1 -o", without_format(&sender.ticket));
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    assert_says(&received, "no table of contents", "with --flute");
    sender.finish();
}

#[test]
fn a_signal_is_130_and_says_where_it_stood() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 20_000_000);
    let sender = Sender::start(&format!("--to {} --rate 20M", place()), &[&path]);
    for (signal, name) in [(Signal::INT, "interrupt"), (Signal::TERM, "terminate")] {
        let words = format!("recv {} --json -o", sender.ticket);
        let into = directory.path().join(name);
        let mut receiver = Running::start(&arguments(&words, &[&into]));
        while !receiver.line().contains("accepted") {}
        receiver.signal(signal);
        let received = receiver.wait().expect(130);
        assert_eq!(received.event("summary")["verdict"], "interrupted");
        assert!(received.stderr.contains(" are missing, loss "), "{}", received.stderr);
    }
    let sent = sender.into_running().stop().expect(130);
    assert!(sent.stderr.contains("\nsent 0."), "{}", sent.stderr);
}

#[test]
fn a_session_larger_than_allowed_is_6_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 50_000);
    let sender = Sender::start(&format!("--to {}", place()), &[&path]);
    let into = directory.path().join("into");
    let words = format!("recv {} -i lo --max-size 40K -o", sender.ticket);
    let refused = run(&arguments(&words, &[&into])).expect(6);
    assert_says(&refused, "has more than 41.0 kB", "--max-size");
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 0);
    sender.finish();
}

#[test]
fn a_number_that_another_sender_uses_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, noise(10_000, 1)).unwrap();
    let to = place();
    let sender = Sender::start(&format!("--to {to}/12"), &[&path]);
    let send = |options: &str| {
        let words = format!("send -i lo --for 200ms {options}");
        run(&arguments(&words, &[&path])).expect(0).stderr
    };
    let warned = "another program on this host sends a session with the number 12";
    let said = send(&format!("--to {to}/12"));
    assert!(said.contains(warned) && said.contains("--to GROUP:PORT/N"), "{said}");
    for other in [format!("--to {to}/13"), format!("--to {}/12", place())] {
        let said = send(&other);
        assert!(!said.contains("another program"), "{said}");
    }
    sender.finish();
    let said = send(&format!("--to {to}/12"));
    assert!(!said.contains(warned), "{said}");
}
