//! The help of `fontana send` and `fontana recv`: options by intent. `--help` shows those that most
//! people need, `--help-all` all of them.

use clap::{Arg, ArgAction, Command};

/// Options of one intent, by their ids.
struct Intent {
    heading: &'static str,
    /// In every help.
    shown: &'static [&'static str],
    /// In the help of all options.
    further: &'static [&'static str],
}

const SEND: &[Intent] = &[
    Intent {
        heading: "What is sent",
        shown: &["name", "exclude", "manifest"],
        further: &["include", "from_list", "spool", "content_version"],
    },
    Intent {
        heading: "Where to",
        shown: &["to", "interfaces", "one_way"],
        further: &["ttl", "controlled_network", "ask"],
    },
    Intent { heading: "How fast", shown: &["rate"], further: &["burst", "layered", "layers"] },
    Intent {
        heading: "To whom",
        shown: &["receivers"],
        further: &["wait_for_all", "exec", "status_file"],
    },
    Intent { heading: "When", shown: &["duration", "push"], further: &["wait", "max_age"] },
    Intent {
        heading: "Trust",
        shown: &["sign", "group_key", "open"],
        further: &["new_ticket", "expires", "trust_reports", "symbol_digests", "certificate"],
    },
    Intent { heading: "Versions", shown: &["watch"], further: &["at_least"] },
    Intent {
        heading: "Codes",
        shown: &[],
        further: &["fec", "order", "block_symbols", "symbol_size"],
    },
    Intent { heading: "For other programs", shown: &[], further: &["flute", "fcast"] },
    Intent { heading: "Resources", shown: &[], further: &["memory", "scratch"] },
    Intent {
        heading: "What it tells",
        shown: &["dry_run", "ticket_file", "json", "quiet"],
        further: &[],
    },
];

const RECV: &[Intent] = &[
    Intent {
        heading: "What is received",
        shown: &["only", "list", "output", "to", "existing"],
        further: &["staging", "all_or_nothing"],
    },
    Intent {
        heading: "Where from",
        shown: &["interfaces", "one_way"],
        further: &["group", "share"],
    },
    Intent { heading: "How fast", shown: &[], further: &["max_rate"] },
    Intent { heading: "Who this is", shown: &["label"], further: &["identity"] },
    Intent { heading: "When", shown: &["timeout"], further: &["silence", "stay"] },
    Intent { heading: "Trust", shown: &["key", "group_key"], further: &["accept", "sandbox"] },
    Intent { heading: "Versions", shown: &["watch", "exec"], further: &["delete", "audit"] },
    Intent {
        heading: "Mirrors",
        shown: &[],
        further: &["mirrors", "headers", "netrc", "then_serve"],
    },
    Intent { heading: "From other programs", shown: &[], further: &["flute", "fcast"] },
    Intent { heading: "Resources", shown: &[], further: &["memory", "max_size"] },
    Intent { heading: "What it tells", shown: &["yes", "json", "quiet"], further: &[] },
];

/// The option that shows all options.
pub(super) const ALL: &str = "help-all";

/// Groups the options. `all`: help has all of them.
pub(super) fn arrange(root: Command, all: bool) -> Command {
    let option = Arg::new(ALL).long(ALL).global(true).action(ArgAction::HelpLong);
    root.arg(option.help("Print help with all options").display_order(998))
        .mut_arg("log", |log| log.hide_short_help(!all).hide_long_help(!all))
        .mut_subcommand("send", |command| arrange_command(command, SEND, all))
        .mut_subcommand("recv", |command| arrange_command(command, RECV, all))
}

fn arrange_command(mut command: Command, intents: &[Intent], all: bool) -> Command {
    let mut order = 0;
    for Intent { heading, shown, further } in intents {
        for (ids, is_hidden) in [(shown, false), (further, !all)] {
            for id in *ids {
                order += 1;
                command = command.mut_arg(id, |argument| {
                    let argument = argument.help_heading(*heading).display_order(order);
                    argument.hide_short_help(is_hidden).hide_long_help(is_hidden)
                });
            }
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Options of the command that a help shows, but for those of every command.
    fn shown(name: &str, long: bool, all: bool) -> usize {
        let mut root = super::super::command(all);
        let command = root.find_subcommand_mut(name).unwrap();
        let help = if long { command.render_long_help() } else { command.render_help() };
        let text = help.to_string();
        let is_option = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
        let of_all = ["--help", "--version", "--log", "--help-all"];
        let lines = text.lines().filter(is_option);
        lines.filter(|line| !of_all.iter().any(|it| line.contains(it))).count()
    }

    #[test]
    fn every_option_has_one_intent() {
        for (name, intents) in [("send", SEND), ("recv", RECV)] {
            let mut counts = BTreeMap::<&str, usize>::new();
            let ids = intents.iter().flat_map(|intent| [intent.shown, intent.further]).flatten();
            ids.for_each(|id| *counts.entry(id).or_default() += 1);
            let root = super::super::command(true);
            let command = root.find_subcommand(name).unwrap();
            for option in command.get_arguments().filter(|it| it.get_long().is_some()) {
                let id = option.get_id().as_str();
                assert_eq!(counts.remove(id), Some(1), "{name} {id}");
            }
            assert!(counts.is_empty(), "{name}: {counts:?}");
        }
    }

    #[test]
    fn help_has_what_most_people_need_and_help_all_has_all() {
        for (name, few) in [("send", 18), ("recv", 16)] {
            assert_eq!(shown(name, false, false), few, "{name} -h");
            assert_eq!(shown(name, true, false), few, "{name} --help");
            let options = super::super::command(true);
            let options = options.find_subcommand(name).unwrap().get_arguments();
            let options = options.filter(|it| it.get_long().is_some()).count();
            assert_eq!(shown(name, true, true), options, "{name} --help-all");
        }
    }
}
