//! `fontana-lab`.

use fontana_testing::events::{documented, fields};
use fontana_testing::{Run, arguments};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

fn lab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fontana-lab"));
    command.stdin(Stdio::null());
    command
}

/// Runs the program to its end.
fn run<A: AsRef<OsStr>>(arguments: &[A]) -> Run {
    Run::of(lab().args(arguments))
}

#[test]
fn experiments_are_listed_run_and_judged() {
    let listed = run(&["list", "--json"]).expect(0);
    let ids: Vec<_> = listed.events().iter().map(|event| event["id"].clone()).collect();
    assert!(ids.contains(&"ms.series".into()) && ids.contains(&"ms.eq2".into()), "{ids:?}");

    let ran = run(&["run", "--quick", "ms.slow", "ms.series", "--json"]).expect(0);
    let documented = documented("fontana-lab");
    for event in ran.events() {
        assert_eq!(fields(&event), documented[event["event"].as_str().unwrap()]);
    }
    let verdicts = ran.events().iter().filter(|event| event["event"] == "verdict").count();
    let summary = ran.event("summary");
    assert_eq!((verdicts, summary["experiments"].as_u64()), (4, Some(2)));
    assert_eq!((summary["claims"].as_u64(), summary["unexpected"].as_u64()), (Some(4), Some(0)));

    let shown = run(&["run", "--quick", "ms.series"]).expect(0).stdout;
    assert!(shown.contains("ms.series order") && shown.contains("holds within 0.1"), "{shown}");
}

#[test]
fn a_swarm_repeats_itself_and_says_what_it_follows_from() {
    let swarm = |seed: &str| {
        let ran = run(&["swarm", "--seeds", "3", "--seed", seed, "--json"]).expect(0);
        ran.event("swarm")
    };
    let (first, again, other) = (swarm("5"), swarm("5"), swarm("6"));
    assert_eq!(fields(&first), documented("fontana-lab")["swarm"]);
    assert_eq!((first["runs"].as_u64(), first["breaches"].as_u64()), (Some(3), Some(0)));
    assert_eq!(first["seed"], 5);
    assert!(first["receivers"].as_u64() >= Some(3) && first["deliveries"].as_u64() > Some(0));
    assert_eq!(first["digest"], again["digest"]);
    assert_ne!(first["digest"], other["digest"]);
    let commit = first["commit"].as_str().unwrap();
    let shown = run(&["run", "--quick", "ms.series", "--seed", "7"]).expect(0).stdout;
    assert!(shown.contains(&format!("seed 7, quick, commit {commit}; digest ")), "{shown}");
}

#[test]
fn slices_of_a_run_are_joined_to_the_same_page() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let command = "run ms.slow ms.series --quick --json --out";
    let whole = run(&arguments(command, &[&place("whole")])).expect(0);
    for case in 0..2 {
        let words = format!("run ms.slow ms.series --quick --case {case} --of 2 --out");
        let part = run(&arguments(&words, &[&place(&format!("part{case}"))])).expect(0);
        assert!(part.stdout.contains("fontana-lab merge"), "{}", part.stdout);
        assert!(!place(&format!("part{case}/lab.md")).exists());
    }
    let part = run(&arguments("merge", &[&place("part1")])).expect(2);
    assert!(part.stderr.contains("are missing") && part.stderr.contains("--missing --out DIR"));
    let joined =
        arguments("merge --json --out", &[&place("joined"), &place("part1"), &place("part0")]);
    let joined = run(&joined).expect(0);
    assert_eq!(joined.event("summary")["digest"], whole.event("summary")["digest"]);
    let page = |name: &str| std::fs::read_to_string(place(name).join("lab.md")).unwrap();
    assert_eq!(page("joined"), page("whole"));
    assert!(place("whole/lab/ms.series.svg").exists());
}

#[test]
fn tasks_of_a_job_number_their_slices() {
    let directory = tempfile::tempdir().unwrap();
    let words = "run ms.slow ms.series --quick --json --of 2 --missing --out";
    let task = |variables: &[(&str, &str)]| {
        let mut command = lab();
        command.args(arguments(words, &[directory.path()]));
        command.env_remove("SLURM_ARRAY_TASK_ID").env_remove("JOB_COMPLETION_INDEX");
        command.envs(variables.iter().copied());
        Run::of(&mut command)
    };
    let slurm = task(&[("SLURM_ARRAY_TASK_ID", "0"), ("JOB_COMPLETION_INDEX", "7")]).expect(0);
    let kubernetes = task(&[("JOB_COMPLETION_INDEX", "1")]).expect(0);
    let cases = |ran: &Run| ran.events().iter().filter(|event| event["event"] == "case").count();
    let planned = run(&["plan", "ms.slow", "ms.series", "--quick", "--of", "2", "--json"]);
    let planned = planned.expect(0);
    let documented = documented("fontana-lab");
    for event in planned.events() {
        assert_eq!(fields(&event), documented[event["event"].as_str().unwrap()]);
    }
    let of_slice = |slice: u64| planned.events().iter().filter(|e| e["slice"] == slice).count();
    assert_eq!([cases(&slurm), cases(&kubernetes)], [of_slice(0), of_slice(1)]);
    assert_eq!(planned.event("plan")["cases"].as_u64(), Some((of_slice(0) + of_slice(1)) as u64));
    // A task that is started again finds the rows of its slice.
    assert_eq!(cases(&task(&[("JOB_COMPLETION_INDEX", "1")]).expect(0)), 0);
    run(&arguments("merge", &[directory.path()])).expect(0);

    for (variables, expected) in [
        (&[][..], "SLURM_ARRAY_TASK_ID and JOB_COMPLETION_INDEX are not set"),
        (&[("SLURM_ARRAY_TASK_ID", "x")], "not a number"),
        (&[("SLURM_ARRAY_TASK_ID", "2")], "SLURM_ARRAY_TASK_ID is from 0 to 1"),
    ] {
        let refused = task(variables).expect(2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    // Another seed is another run.
    let words = "run ms.slow ms.series --quick --seed 2 --missing --out";
    let refused = run(&arguments(words, &[directory.path()])).expect(2);
    assert!(refused.stderr.contains("seed 1998") && refused.stderr.contains("seed 2"));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let unknown = run(&["run", "df.fig99"]).expect(2);
    assert!(unknown.stderr.contains("df.fig99") && unknown.stderr.contains("fontana-lab list"));
    let words = "run ms.series --case 2 --of 2 --out";
    let no_slice = run(&arguments(words, &[directory.path()])).expect(2);
    assert!(no_slice.stderr.contains("from 0 to 1"), "{}", no_slice.stderr);
    run(&["run", "ms.series", "--case", "0", "--of", "2"]).expect(2);
    let not_real = run(&["run", "ms.series", "--real"]).expect(2);
    assert!(not_real.stderr.contains("without --real") && not_real.stderr.contains("fc.fig10"));
    let only_real = run(&["run", "fc.tool"]).expect(2);
    assert!(only_real.stderr.contains("fontana-lab run fc.tool --real"), "{}", only_real.stderr);
    let listed = run(&["list"]).expect(0).stdout;
    let marked = |id: &str| {
        listed.lines().any(|line| line.starts_with(&format!("{id} ")) && line.contains("--real"))
    };
    assert!(marked("fc.fig10") && !marked("ms.series"), "{listed}");
    let nothing = run(&arguments("merge", &[directory.path()])).expect(5);
    assert!(nothing.stderr.contains("--out"), "{}", nothing.stderr);
}

#[test]
fn an_emulator_that_cannot_be_is_refused_with_the_way_out() {
    // There is one interface everywhere, with packets of 65 536 bytes: arguments that get this
    // message have passed the other checks.
    let cases = [
        ("", "lo twice"),
        ("--loss 60 --burst 1.49", "--burst is at least 1.500"),
        ("--loss 60 --burst 1.5", "lo twice"),
        ("--loss 100 --burst 2", "lo twice"),
        ("--rate 8M --queue 65ms", "longer --queue"),
        ("--rate 8M --queue 66ms", "lo twice"),
        ("--rate 8G --queue 67ms", "lo twice"),
        ("--rate 8G --queue 68ms", "shorter --queue"),
        ("--burst 0.99", "1 packet or more"),
        ("--rate 7", "8 bits per second"),
        ("--queue 1s", "--rate"),
    ];
    for (options, expected) in cases {
        let words = format!("emulate --between lo lo {options}");
        let refused = run(&arguments(&words, &[])).expect(2);
        assert!(refused.stderr.contains(expected), "{options}: {}", refused.stderr);
    }
    let unknown = run(&arguments("emulate --between lo there-is-no", &[])).expect(2);
    assert!(unknown.stderr.contains("there-is-no"), "{}", unknown.stderr);
}

#[test]
#[ignore = "five seconds of real time: docs/experiments.md"]
fn the_tool_does_what_fcasts_does_over_real_sockets() {
    let ran = run(&["run", "fc.tool", "--real", "--json"]).expect(0);
    assert_eq!(ran.event("summary")["claims"].as_u64(), Some(8));
}
