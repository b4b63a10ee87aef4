//! The smaller commands, and behavior that all commands share.

use crate::support::{Running, Sender, arguments, fontana, noise, place, run};
use std::net::{Ipv4Addr, Shutdown, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[test]
fn a_log_goes_to_standard_error_and_names_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("recv fontana://{}/1 -i lo --silence 1 --json --log debug -o", place());
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    for told in ["started", "ended"] {
        let line = format!("INFO session{{kind=\"receiver\"}}: fontana::session: {told}\n");
        assert!(received.stderr.contains(&line), "{}", received.stderr);
    }
    assert_eq!(received.event("summary")["code"], 75);
    let refused = run(&["doctor", "--log", "fontana_net=loud"]).expect(2);
    assert!(refused.stderr.contains("try info, debug"), "{}", refused.stderr);
}

#[test]
fn completions_and_manual_pages_come_from_the_definitions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("symbol-size") && script.contains("keygen"), "{shell}");
    }
    let page = run(&["man"]).expect(0).stdout;
    assert!(page.contains(".TH") && page.contains("fontana"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    run(&arguments("man", &[&directory.path().join("new")])).expect(0);
    let send = std::fs::read_to_string(directory.path().join("new/fontana-send.1")).unwrap();
    assert!(send.contains("push"), "{send}");
    assert!(send.contains(".SH SYNOPSIS\nfontana send [OPTIONS] [PATH]...\n.SH"), "{send}");
    assert!(page.contains(".SH SYNOPSIS\nfontana [OPTIONS] <COMMAND>\n.SH"), "{page}");
    assert!(directory.path().join("new/fontana-recv.1").exists());
}

#[test]
fn help_has_examples() {
    for command in ["send", "recv"] {
        for help in ["-h", "--help"] {
            let text = run(&[command, help]).expect(0).stdout;
            assert!(text.contains("Examples:"), "{command} {help}");
        }
    }
    assert!(run(&["--help"]).expect(0).stdout.contains("Exit codes"));
    assert!(!run(&["recv", "--help"]).expect(0).stdout.contains("simulate"), "for tests only");
}

#[test]
fn help_is_a_command_too() {
    for words in ["help send", "help recv", "help keygen"] {
        let asked = run(&arguments(words, &[])).expect(0).stdout;
        assert!(asked.contains("Usage: fontana "), "{words}: {asked}");
    }
    for help in [&["help", "send"][..], &["send", "--help"], &["send", "-h"]] {
        let shown = run(help).expect(0).stdout;
        assert!(shown.contains("--rate") && !shown.contains("--symbol-size"), "{shown}");
    }
    assert!(run(&["send", "--help-all"]).expect(0).stdout.contains("--symbol-size"));
}

#[test]
fn limits_that_nothing_meets_are_refused_with_a_hint() {
    for limit in ["--timeout 0", "--timeout 0ms", "--max-size 0"] {
        let refused = run(&arguments(&format!("recv -y -i lo {limit}"), &[])).expect(2);
        assert!(refused.stderr.contains("leave it out"), "{limit}: {}", refused.stderr);
    }
}

#[test]
fn options_are_checked_before_the_ticket_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(100_000, 1)).unwrap();
    let place = place();
    for to in [&*place, "127.0.0.1:9"] {
        // 48 bytes of headers, and the MTU of the loopback interface is 65 536.
        let words = format!("send -i lo --to {to} --push 0 --symbol-size 65532");
        let refused = run(&arguments(&words, &[&file])).expect(2);
        assert_eq!(refused.stdout, "");
        assert!(refused.stderr.contains("does not fit the MTU of lo"), "{}", refused.stderr);
    }
}

#[test]
fn a_ticket_goes_to_a_file_too() {
    let directory = tempfile::tempdir().unwrap();
    let [file, to] = ["file", "ticket"].map(|name| directory.path().join(name));
    std::fs::write(&file, noise(1000, 1)).unwrap();
    std::fs::write(&to, "an older and longer ticket ".repeat(100)).unwrap();
    let options = format!("--to {} --ticket-file {}", place(), to.display());
    let sender = Sender::start(&options, &[&file]);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), format!("{}\n", sender.ticket));
    sender.finish();

    let hosts = format!("--to 127.0.0.1:9,127.0.0.1:10 --ticket-file {}", to.display());
    let sent = run(&arguments(&format!("send {hosts} --for 100ms"), &[&file])).expect(0);
    let lines: Vec<String> = std::fs::read_to_string(&to)
        .unwrap()
        .lines()
        .map(|ticket| format!("fontana recv '{ticket}'"))
        .collect();
    assert_eq!(sent.stdout.lines().collect::<Vec<_>>(), lines);
    assert_eq!(lines.len(), 2);

    // Also of what would be sent.
    let words = format!("send -i lo --dry-run --ticket-file {}", to.display());
    let dry = run(&arguments(&words, &[&file])).expect(0);
    let ticket = std::fs::read_to_string(&to).unwrap();
    assert!(dry.stdout.contains(&format!("fontana recv '{}'", ticket.trim_end())), "{ticket}");

    let nowhere = directory.path().join("none/ticket");
    let words = format!("send -i lo --ticket-file {}", nowhere.display());
    let refused = run(&arguments(&words, &[&file])).expect(6);
    assert_eq!(refused.stdout, "");
    assert!(refused.stderr.contains("cannot write the ticket"), "{}", refused.stderr);
}

#[test]
fn a_rate_is_said_as_it_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for (rate, said) in [("1.25M", "at 1.25 Mbit/s"), ("100M", "at 100 Mbit/s")] {
        let words = format!("send -i lo --dry-run --rate {rate}");
        let dry = run(&arguments(&words, &[&file])).expect(0);
        assert!(dry.stdout.contains(said), "{rate}: {}", dry.stdout);
    }
    // All layers together, not the limit, which is --rate.
    for (words, said) in [
        ("--layers 1M,1M,3.25M", "at 5.25 Mbit/s"),
        ("--layers 1M,1M,3M --rate 20M", "at 5 Mbit/s"),
        ("--layers 3 --rate 20M", "at 20 Mbit/s"),
    ] {
        let dry = run(&arguments(&format!("send -i lo --dry-run {words}"), &[&file])).expect(0);
        assert!(dry.stdout.contains(said), "{words}: {}", dry.stdout);
    }
    let refused = run(&arguments("send -i lo --dry-run --rate 7999", &[&file])).expect(2);
    assert!(refused.stderr.contains("is 7999; it must be at least 8000"), "{}", refused.stderr);
}

#[test]
fn a_key_file_is_private_and_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    let public = run(&arguments("keygen", &[&key])).expect(0).stdout;
    assert_eq!(public.trim().len(), 64);
    let before = std::fs::read(&key).unwrap();
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let again = run(&arguments("keygen", &[&key])).expect(6);
    assert!(again.stderr.contains("choose another name"), "{}", again.stderr);
    assert_eq!(std::fs::read(&key).unwrap(), before);
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (key, file) = (directory.path().join("key"), directory.path().join("file"));
    run(&arguments("keygen", &[&key])).expect(0);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(&file, "x").unwrap();
    let words = format!("send -i lo --dry-run --sign {}", key.display());
    let refused = run(&arguments(&words, &[&file])).expect(7);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    run(&arguments(&words, &[&file])).expect(0);
}

#[test]
fn a_dry_run_says_what_it_would_do_and_sends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("some file");
    std::fs::write(&file, noise(100_000, 1)).unwrap();
    let place = place();
    let (group, port) = place.split_once(':').unwrap();
    let listener = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port.parse().unwrap())).unwrap();
    let group: Ipv4Addr = group.parse().unwrap();
    listener.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    listener.set_read_timeout(Some(Duration::from_millis(200))).unwrap();

    let dry = run(&arguments(&format!("send -i lo --to {place} --dry-run"), &[&file])).expect(0);
    for part in ["would send 1 file, 100.0 kB", "some file", "fontana recv 'fontana://"] {
        assert!(dry.stdout.contains(part), "{part} in {}", dry.stdout);
    }
    assert!(listener.recv(&mut [0; 2000]).is_err(), "nothing arrives");
    // The listener does receive what is sent.
    let words = format!("send -i lo --to {place} --for 300ms");
    run(&arguments(&words, &[&file])).expect(0);
    assert!(listener.recv(&mut [0; 2000]).is_ok());
}

/// Layered sessions have the numbers of channels that docs/congestion.md states: WEBRC's waves,
/// quiet ones and the base channel.
#[test]
fn layers_follow_from_what_decides_about_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for (words, channels) in [
        ("", None),
        ("--layered --rate 10M", Some("50")),
        ("--layered=webrc --rate 10M", Some("50")),
        ("--layered=webrc-fast --rate 100M", Some("35")),
        ("--layers 4", Some("4")),
        ("--layered=rlc --layers 5", Some("5")),
        ("--layers 1M,1M,2M", Some("3")),
    ] {
        let dry = run(&arguments(&format!("send -i lo --dry-run --json {words}"), &[&file]));
        let ticket = dry.expect(0).event("session")["ticket"].as_str().unwrap().to_owned();
        let said = ticket.split_once("channels=").map(|(_, channels)| channels);
        assert_eq!(said, channels, "{words}: {ticket}");
    }
}

#[test]
fn a_name_with_escape_sequences_is_shown_and_not_obeyed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("\x1b[2Jgone\u{202e}gpj.exe");
    std::fs::write(&file, "x").unwrap();
    let dry = run(&arguments("send -i lo --dry-run", &[&file])).expect(0);
    assert!(dry.stdout.contains(r"\u{1b}[2Jgone\u{202e}gpj.exe"), "{}", dry.stdout);
    std::fs::remove_file(&file).unwrap();
    let missing = run(&arguments("send -i lo --json --dry-run", &[&file])).expect(6);
    for text in [missing.stdout, missing.stderr] {
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
    }
}

#[test]
fn a_receive_buffer_that_cannot_be_had_is_a_warning_with_the_command_that_helps() {
    let directory = tempfile::tempdir().unwrap();
    // No kernel gives that much to a socket.
    let words = format!("recv fontana://{}/1 -i lo --memory 96G --timeout 100ms", place());
    let quiet = run(&arguments(&format!("{words} -q -o"), &[directory.path()])).expect(75);
    assert!(!quiet.stderr.contains("warning"), "{}", quiet.stderr);
    let warned = run(&arguments(&format!("{words} -o"), &[directory.path()])).expect(75);
    assert_eq!(warned.stderr.matches("warning: ").count(), 1, "{}", warned.stderr);
    assert!(warned.stderr.contains("sysctl -w "), "{}", warned.stderr);
}

#[test]
fn without_a_terminal_the_start_and_the_end_are_printed_and_with_q_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(20_000, 1)).unwrap();
    let send = format!("send -i lo --to {} --for 300ms", place());
    let sent = run(&arguments(&send, &[&file])).expect(0);
    let [start, end] = sent.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", sent.stderr);
    };
    assert!(start.starts_with("sending 1 file, 20.0 kB"), "{start}");
    assert!(end.starts_with("sent ") && end.contains(" on the wire in "), "{end}");
    assert_eq!(run(&arguments(&format!("{send} -q"), &[&file])).expect(0).stderr, "");

    let sender = Sender::start(&format!("--to {} --rate 10M", place()), &[&file]);
    let receive = format!("recv -i lo {} -o", sender.ticket);
    let into = directory.path().join("into");
    let received = run(&arguments(&receive, &[&into])).expect(0);
    let starts = ["listening on ", "receiving file (1 file, 20.0 kB)", "received 1 file"];
    assert_eq!(received.stderr.lines().count(), starts.len(), "{}", received.stderr);
    for (line, start) in received.stderr.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let again = directory.path().join("again");
    let quiet = format!("recv -q -i lo {} -o", sender.ticket);
    assert_eq!(run(&arguments(&quiet, &[&again])).expect(0).stderr, "");
    sender.finish();
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(1000, 1)).unwrap();
    let words = format!("send -i lo --to {} --json", place());
    let mut sender = Running::start(&arguments(&words, &[&file]));
    assert!(sender.line().contains("session"));
    let sent = sender.hang_up().expect(130);
    assert_eq!(sent.stderr, "");

    // A command that prints once, too. It has not done what was asked for. What it prints fits
    // into a pipe, so its reader has to be gone before it starts; and a descriptor that is closed
    // here may be open for a moment in the child of another test, but a socket is shut for all.
    let (writer, reader) = UnixStream::pair().unwrap();
    reader.shutdown(Shutdown::Both).unwrap();
    let mut command = fontana();
    command.args(["completions", "bash"]).stdout(OwnedFd::from(writer));
    assert_eq!(command.status().unwrap().code(), Some(130));
}

#[test]
fn the_first_line_says_what_ends_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let [file, key] = ["file", "key"].map(|name| directory.path().join(name));
    std::fs::write(&file, noise(1000, 1)).unwrap();
    run(&arguments("keygen", &[&key])).expect(0);
    let expected = format!(
        "--sign {} --receivers 1 --for 1 \
         --trust-reports",
        key.display()
    );
    for (options, code, end) in [
        ("--push 0", 0, "once; receive"),
        ("--for 100ms", 0, "for a while; receive"),
        (&*expected, 9, "until the expected receivers are complete; receive"),
    ] {
        let words = format!("send -i lo --to {} {options}", place());
        let sent = run(&arguments(&words, &[&file])).expect(code).stderr;
        assert!(sent.contains(end), "{options}: {sent}");
    }
}
