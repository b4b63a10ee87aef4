//! `recv --exec`.

use crate::support::{Run, Sender, arguments, noise, place, run};
use std::fs;
use std::path::Path;

/// Receives one file and runs `words` then.
fn receive(directory: &Path, words: &[&str]) -> Run {
    let file = directory.join("a name\n");
    fs::write(&file, noise(5_000, 1)).unwrap();
    let sender = Sender::start(&format!("--to {} --content-version 3", place()), &[&file]);
    let into = directory.join("into");
    let mut line = arguments(&format!("recv {} --timeout 20 --json -o", sender.ticket), &[&into]);
    line.push("--exec".into());
    line.extend(words.iter().map(|&word| word.to_owned()));
    let received = run(&line);
    assert!(fs::read(into.join("a name\n")).unwrap() == noise(5_000, 1), "whatever the hook does");
    sender.finish();
    received
}

#[test]
fn the_program_gets_its_arguments_as_typed_and_the_rest_in_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    // The only argument with syntax is that of a shell that the test names as the program.
    let script = "printf '<%s>' \"$@\"; env | grep ^FONTANA_; cat; echo told >&2";
    let words = ["sh", "-c", script, "name", "two words", "--json", "$HOME", "*"];
    let run = receive(directory.path(), &words).expect(0);
    assert!(run.stderr.contains("<two words><--json><$HOME><*>"), "{}", run.stderr);
    let into = directory.path().join("into");
    for variable in [
        format!("FONTANA_DIRECTORY={}\n", into.display()),
        "FONTANA_VERSION=3\n".into(),
        "FONTANA_VERIFIED=signed\n".into(),
        "FONTANA_FILES=1\n".into(),
        "FONTANA_BYTES=5000\n".into(),
        "FONTANA_SESSION=127.0.0.1/".into(),
        "FONTANA_LABEL=a name\n".into(),
        format!("FONTANA_MANIFEST={}\n", run.event("accepted")["manifest"].as_str().unwrap()),
        "told\n".into(),
    ] {
        assert!(run.stderr.contains(&variable), "{variable} in {}", run.stderr);
    }
    // Standard output carries events only.
    assert_eq!(run.event("summary")["code"], 0);
}

#[test]
fn a_program_that_fails_or_cannot_be_started_is_told_with_exit_code_5() {
    for (words, message) in [
        (&["sh", "-c", "exit 3"][..], "--exec \"sh\" failed: exit code 3"),
        (&["sh", "-c", "kill -9 $$"], "failed: ended by signal 9"),
        (&["/no/such program"], "--exec \"/no/such program\" cannot be started"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let run = receive(directory.path(), words).expect(5);
        assert!(run.stderr.contains(message), "{message} in {}", run.stderr);
        assert!(run.stderr.contains("is there and verified"), "{}", run.stderr);
        assert_eq!(run.event("summary")["verdict"], "io");
    }
}
