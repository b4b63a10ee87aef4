//! The destination of a session, its channels and its layers.

use crate::address;
use crate::args::{CongestionScheme, SendArguments};
use fontana::wire::{ChannelGroups, MAX_CHANNELS};
use fontana::{Addressing, Layering, LayeringScheme, Outcome};
use fontana_console::failure::Failure;
use std::collections::BTreeSet;

/// Interprets `--to` and `--channels`: one group and those after it, or a list of groups; a
/// broadcast address; or hosts.
pub(super) fn addressing(arguments: &SendArguments) -> Result<Addressing, Failure> {
    let usage = |message: &str, hint: &str| {
        Err(Failure::new(Outcome::Usage, message.to_owned(), hint.to_owned()))
    };
    let to = arguments.to.iter().map(|to| address::parse(to)).collect::<Result<Vec<_>, _>>()?;
    if let Some(to) = to.iter().find(|to| to.ip().is_unspecified()) {
        let message = format!("--to {}: that is every address of a host, and no host", to.ip());
        return usage(&message, "name a group, or the addresses of hosts");
    }
    let groups = to.iter().filter(|to| to.ip().is_multicast()).count();
    if groups > 0 && groups < to.len() {
        return usage(
            "several destinations, and only some of them are groups",
            "name groups only, for the channels of one session, or only hosts: each host gets its own copy",
        );
    }
    let addressing = Addressing {
        interfaces: arguments.interfaces.clone(),
        hop_limit: arguments.ttl,
        ..Addressing::default()
    };
    let listed = arguments.layers.len().max(1);
    let count = match (arguments.channels, u8::try_from(listed)) {
        (Some(count), _) => count,
        (None, Ok(count)) if count <= MAX_CHANNELS => count,
        _ => return usage("a session has at most 64 channels", "list fewer layers"),
    };
    let Some((first, others)) = to.split_first().filter(|_| groups > 1) else {
        return Ok(Addressing { to, channels: ChannelGroups::Consecutive(count), ..addressing });
    };
    if groups > usize::from(MAX_CHANNELS) {
        return usage("a session has at most 64 channels", "list fewer groups");
    }
    if arguments.channels.is_some_and(|channels| usize::from(channels) != groups) {
        return usage("--channels is not the number of groups in --to", "leave it out");
    }
    if others.iter().any(|to| to.port() != first.port()) {
        return usage("the groups of one session have different ports", "give all one port");
    }
    let mut seen = BTreeSet::new();
    if !to.iter().all(|group| seen.insert(group)) {
        return usage("a group of --to appears twice", "each channel needs its own");
    }
    let channels = ChannelGroups::Listed(others.iter().map(|to| to.ip()).collect());
    Ok(Addressing { to: vec![*first], channels, ..addressing })
}

/// Interprets `--layered`, `--layers` and `--congestion-control`.
pub(super) fn layering(arguments: &SendArguments) -> Result<Option<Layering>, Failure> {
    let scheme = match arguments.congestion_control {
        Some(CongestionScheme::None) => {
            let several = arguments.channels.is_some_and(|count| count > 1);
            if arguments.layered || arguments.layers.len() > 1 || several {
                let message = "layers without anything that decides how many a receiver takes";
                let hint =
                    "leave out --layered, --channels and --layers, or --congestion-control none";
                return Err(Failure::new(Outcome::Usage, message, hint));
            }
            return Ok(None);
        }
        Some(CongestionScheme::Fixed) => LayeringScheme::Fixed,
        Some(CongestionScheme::Rlc) => LayeringScheme::Rlc,
        Some(CongestionScheme::FlidSl) => LayeringScheme::FlidSl,
        Some(CongestionScheme::Webrc) => LayeringScheme::Webrc,
        Some(CongestionScheme::WebrcFast) => LayeringScheme::WebrcFast,
        None if arguments.layered => LayeringScheme::Webrc,
        None if arguments.layers.is_empty() => return Ok(None),
        None => LayeringScheme::Fixed,
    };
    let rates_bytes_per_second = arguments.layers.iter().map(|rate| rate / 8).collect();
    Ok(Some(Layering { rates_bytes_per_second, ..Layering::new(scheme) }))
}
