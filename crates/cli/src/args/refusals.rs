//! Options that do not go together. What depends on their values, or on the ticket, is refused
//! where they become a session.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use fontana::Outcome;
use fontana_console::failure::Failure;

/// Arguments, by their ids, none of which goes with any of others.
pub(super) struct Refusal {
    one: &'static [&'static str],
    other: &'static [&'static str],
    why: &'static str,
    hint: &'static str,
}

/// Those of `fontana send`.
pub(super) const SEND: &[Refusal] = &[
    Refusal {
        one: &["flute"],
        other: &["fcast"],
        why: "a session has one format",
        hint: "send the files in two sessions",
    },
    Refusal {
        one: &["flute", "fcast"],
        other: &["sign", "content_version", "manifest"],
        why: "its sessions have neither a signature nor a manifest",
        hint: "leave one of them out; receivers of Fontana need no other format",
    },
    Refusal {
        one: &["fcast"],
        other: &["watch"],
        why: "its objects are not replaced",
        hint: "follow the directory in plain FLUTE: --flute --watch",
    },
    Refusal {
        one: &["symbol_digests", "certificate"],
        other: &["layered", "layers"],
        why: "digests announce the symbols of one channel",
        hint: "leave one of them out",
    },
    Refusal {
        one: &["certificate", "open"],
        other: &["group_key"],
        why: "without its ticket's secret or a group key a session is open",
        hint: "leave one of them out",
    },
    Refusal {
        one: &["new_ticket"],
        other: &["flute", "fcast", "open", "sign", "group_key"],
        why: "it draws a secret, and this session's ticket has none of its own",
        hint: "leave it out; another key (fontana keygen) withdraws what a key has signed or sealed",
    },
    Refusal {
        one: &["watch"],
        other: &["manifest", "content_version"],
        why: "each version has its own",
        hint: "leave one of them out; the ticket is the same for all versions",
    },
];

/// Those of `fontana recv`.
pub(super) const RECV: &[Refusal] = &[
    Refusal {
        one: &["one_way"],
        other: &["urls", "mirrors", "then_serve", "share"],
        why: "it sends nothing at all",
        hint: "leave one of them out",
    },
    Refusal {
        one: &["flute", "fcast"],
        other: &["urls", "mirrors", "then_serve", "share", "all_or_nothing", "audit", "key"],
        why: "its sessions have no manifest and no key",
        hint: "leave one of them out, or have Fontana's format sent",
    },
    Refusal {
        one: &["flute"],
        other: &["fcast"],
        why: "a session has one format",
        hint: "give that of the ticket, which fontana send prints",
    },
    Refusal {
        one: &["fcast"],
        other: &["to", "only", "list", "delete", "watch"],
        why: "an object says what it is only when it is complete, and all are received",
        hint: "receive all of it into a directory: --output",
    },
    Refusal {
        one: &["to"],
        other: &["output", "watch", "then_serve", "share", "all_or_nothing", "audit", "delete"],
        why: "what goes to a pipe, a device or one file is in no directory",
        hint: "receive into a directory: --output",
    },
    Refusal {
        one: &["watch"],
        other: &["urls", "mirrors", "then_serve", "share"],
        why: "versions follow each other on the group alone",
        hint: "leave one of them out",
    },
    Refusal {
        one: &["then_serve"],
        other: &["only"],
        why: "a server has all files of its manifest",
        hint: "receive all of them, or serve a part on its own: fontana serve",
    },
    Refusal {
        one: &["list"],
        other: &["only"],
        why: "it lists all names",
        hint: "leave --only out",
    },
    Refusal {
        one: &["group"],
        other: &["named"],
        why: "a ticket names its group",
        hint: "leave --group out",
    },
];

/// Those of `fontana serve`.
pub(super) const SERVE: &[Refusal] = &[Refusal {
    one: &["manifest"],
    other: &["block_size", "content_version"],
    why: "the manifest says it",
    hint: "leave one of them out",
}];

/// Those of `fontana doctor`.
pub(super) const DOCTOR: &[Refusal] = &[Refusal {
    one: &["send", "duration"],
    other: &["ticket"],
    why: "packets of fontana doctor have a group of their own",
    hint: "leave one of them out",
}];

/// All of them, by command.
pub(super) const ALL: [(&str, &[Refusal]); 4] =
    [("send", SEND), ("recv", RECV), ("serve", SERVE), ("doctor", DOCTOR)];

/// Refuses arguments that do not go together. `implied`: one that the ticket says.
pub(super) fn check(
    matches: &ArgMatches,
    root: &Command,
    implied: Option<&str>,
) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let of_command = ALL.iter().find(|(command, _)| *command == name);
    let Some(((_, refusals), command)) = of_command.zip(root.find_subcommand(name)) else {
        return Ok(());
    };
    let is_given = |id: &&&str| {
        implied == Some(**id) || matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    for Refusal { one, other, why, hint } in *refusals {
        if let Some((one, other)) = one.iter().find(is_given).zip(other.iter().find(is_given)) {
            let [one, other] = [one, other].map(|id| as_written(command, id));
            let message = format!("{one} with {other}: {why}");
            return Err(Failure::new(Outcome::Usage, message, *hint));
        }
    }
    Ok(())
}

/// An argument as people write it.
fn as_written(command: &Command, id: &str) -> String {
    let argument = command.get_arguments().find(|argument| argument.get_id() == id);
    match argument.and_then(clap::Arg::get_long) {
        Some(long) => format!("--{long}"),
        None if ["named", "ticket"].contains(&id) => "a ticket".to_owned(),
        None => "a mirror".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_an_argument() {
        let root = super::super::command(true);
        for (name, refusals) in ALL {
            let command = root.find_subcommand(name).unwrap();
            for id in refusals.iter().flat_map(|refusal| [refusal.one, refusal.other]).flatten() {
                assert!(command.get_arguments().any(|it| it.get_id() == *id), "{name} {id}");
            }
        }
    }
}
