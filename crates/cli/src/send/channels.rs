//! The destination of a session, its channels and its layers.

use crate::address;
use crate::args::{LayeringArgument, LayersArgument, SendArguments};
use fontana::wire::{ChannelGroups, MAX_CHANNELS};
use fontana::{Addressing, Layering, LayeringScheme, Outcome};
use fontana_console::failure::Failure;
use std::collections::BTreeSet;

/// Interprets `--to` and `--layers`: one group and those after it, or a list of groups; a
/// broadcast address; or hosts.
pub(super) fn addressing(arguments: &SendArguments) -> Result<Addressing, Failure> {
    let usage = |message: &str, hint: &str| {
        Err(Failure::new(Outcome::Usage, message.to_owned(), hint.to_owned()))
    };
    let to = arguments.to.iter().map(|to| address::parse(&to.place));
    let to = match arguments.to.is_empty() {
        true => vec![address::group(None, &arguments.interfaces)?],
        false => to.collect::<Result<Vec<_>, _>>()?,
    };
    if arguments.to.iter().any(|to| to.tsi.is_some_and(|tsi| Some(tsi) != arguments.tsi())) {
        return usage("--to has two session numbers", "a session has one: give it once");
    }
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
    let count = arguments.layers.as_ref().map_or(1, LayersArgument::count);
    let Some((first, others)) = to.split_first().filter(|_| groups > 1) else {
        return Ok(Addressing { to, channels: ChannelGroups::Consecutive(count), ..addressing });
    };
    if groups > usize::from(MAX_CHANNELS) {
        return usage("a session has at most 64 channels", "list fewer groups");
    }
    let counted = matches!(arguments.layers, Some(LayersArgument::Count(_)));
    if counted && usize::from(count) != groups {
        return usage("--layers is not the number of groups in --to", "leave it out");
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

/// Interprets `--layered` and `--layers`.
pub(super) fn layering(arguments: &SendArguments) -> Option<Layering> {
    let rates_bytes_per_second: Vec<_> = match &arguments.layers {
        Some(LayersArgument::Rates(rates)) => rates.iter().map(|rate| rate / 8).collect(),
        _ => Vec::new(),
    };
    let scheme = match arguments.layered {
        Some(LayeringArgument::Webrc) => LayeringScheme::Webrc,
        Some(LayeringArgument::WebrcFast) => LayeringScheme::WebrcFast,
        Some(LayeringArgument::Rlc) => LayeringScheme::Rlc,
        Some(LayeringArgument::FlidSl) => LayeringScheme::FlidSl,
        Some(LayeringArgument::Fixed) => LayeringScheme::Fixed,
        None if rates_bytes_per_second.is_empty() => return None,
        None => LayeringScheme::Fixed,
    };
    Some(Layering { rates_bytes_per_second, ..Layering::new(scheme) })
}
