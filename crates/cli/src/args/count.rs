//! A test that the number of options, hidden ones included, and of conflicts between them grows
//! only on purpose (`.ci/ratchet`), and that `send` and `recv` have few.

use super::{Arguments, refusals};
use clap::{Command, CommandFactory};
use fontana_testing::ratchet;

/// Options of a command and of its subcommands, and pairs of arguments of which clap
/// knows that they exclude each other.
fn count(command: &Command) -> (u64, u64) {
    let mut options = 0;
    let mut conflicts = 0;
    for argument in command.get_arguments() {
        options += u64::from(argument.get_long().is_some());
        conflicts += command.get_arg_conflicts_with(argument).len() as u64;
    }
    for (more_options, more_conflicts) in command.get_subcommands().map(count) {
        options += more_options;
        conflicts += more_conflicts;
    }
    (options, conflicts)
}

#[test]
fn options_and_conflicts_grow_only_with_a_reason() {
    let (options, declared) = count(&Arguments::command());
    let refused: usize = refusals::ALL.iter().map(|(_, refusals)| refusals.len()).sum();
    let conflicts = declared + refused as u64;
    let wrong = [("options of fontana", options), ("conflicts of options", conflicts)]
        .map(|(subject, measured)| ratchet(subject, measured));
    let wrong: Vec<_> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sending_and_receiving_have_few_options() {
    let root = Arguments::command();
    // Beside --json, --quiet and --log, which other commands have, too.
    for (name, most) in [("send", 47), ("recv", 38)] {
        let command = root.find_subcommand(name).unwrap();
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        let own = options.filter(|name| !["json", "quiet"].contains(name)).count();
        assert!(own <= most, "{name} has {own} options");
    }
}
