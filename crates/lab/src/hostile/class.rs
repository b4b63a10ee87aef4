//! The list of classes.

use super::manifests;
use super::packets;
use super::reporting;
use super::site;
use super::web::WebAttack;
use super::world::Guard;

/// A kind of hostile packets.
#[derive(Clone, Copy)]
pub struct Class {
    /// Short name, for options and scripts.
    pub id: &'static str,
    /// What it sends.
    pub what: &'static str,
    /// It forges symbols of the session, which the honest sender must replace.
    pub forges: bool,
    pub(super) attack: Attack,
}

/// What a class sends, and to which receiver.
#[derive(Clone, Copy)]
pub(super) enum Attack {
    /// Datagrams, beside an honest session.
    Packets(packets::Make),
    /// Datagrams to a receiver whose ticket names the sender's address.
    AddressedPackets(packets::Make),
    /// Datagrams, beside an honest session with a group key.
    SealedPackets(packets::Make),
    /// Manifests that the receiver trusts.
    Manifests(manifests::Make),
    /// Compressed file delivery tables of plain FLUTE.
    Tables,
    /// Messages to receivers that share.
    Site(site::Make),
    /// Reports and requests to a sender that repairs on demand.
    Reports(reporting::Make),
    /// Requests and answers of HTTP.
    Web(WebAttack),
}

impl Class {
    const fn packets(id: &'static str, what: &'static str, make: packets::Make) -> Self {
        Self { id, what, forges: false, attack: Attack::Packets(make) }
    }

    const fn forged(id: &'static str, what: &'static str, make: packets::Make) -> Self {
        Self { id, what, forges: true, attack: Attack::Packets(make) }
    }

    const fn sealed(id: &'static str, what: &'static str, make: packets::Make) -> Self {
        Self { id, what, forges: false, attack: Attack::SealedPackets(make) }
    }

    const fn manifests(id: &'static str, what: &'static str, make: manifests::Make) -> Self {
        Self { id, what, forges: false, attack: Attack::Manifests(make) }
    }

    const fn site(id: &'static str, what: &'static str, make: site::Make) -> Self {
        Self { id, what, forges: true, attack: Attack::Site(make) }
    }

    const fn reports(id: &'static str, what: &'static str, make: reporting::Make) -> Self {
        Self { id, what, forges: true, attack: Attack::Reports(make) }
    }

    const fn web(id: &'static str, what: &'static str, attack: WebAttack) -> Self {
        Self { id, what, forges: true, attack: Attack::Web(attack) }
    }

    /// Its packets meet a session with a group key.
    pub fn has_group_key(&self) -> bool {
        self.guard() == Guard::GroupKey
    }

    /// It sends packets of a session, which a real network can carry.
    pub fn has_packets(&self) -> bool {
        matches!(
            self.attack,
            Attack::Packets(_) | Attack::AddressedPackets(_) | Attack::SealedPackets(_)
        )
    }

    /// Whom it attacks over HTTP, and not in virtual time; `None` for all other classes.
    pub fn over_http(&self) -> Option<WebAttack> {
        match self.attack {
            Attack::Web(attack) => Some(attack),
            _ => None,
        }
    }

    /// It meets several receivers.
    pub(super) fn has_several_receivers(&self) -> bool {
        matches!(self.attack, Attack::Site(_))
    }

    pub(super) fn guard(&self) -> Guard {
        match self.attack {
            Attack::SealedPackets(_) => Guard::GroupKey,
            Attack::AddressedPackets(_) => Guard::Address,
            _ => Guard::Open,
        }
    }
}

/// All classes of packets, manifests and tables.
pub fn classes() -> &'static [Class] {
    CLASSES
}

const CLASSES: &[Class] = &[
    Class::packets("H1", "empty datagrams", packets::empty),
    Class::packets("H2", "datagrams shorter than a header", packets::shorter_than_a_header),
    Class::packets(
        "H3",
        "headers longer than their datagrams",
        packets::header_beyond_the_datagram,
    ),
    Class::packets("H4", "extensions of length zero", packets::extension_of_length_zero),
    Class::packets("H5", "chains of up to 251 extensions", packets::chains_of_extensions),
    Class::packets("H6", "unknown versions, codes, sessions and objects", packets::unknown_kinds),
    Class::packets("H7", "impossible lengths and symbol sizes", packets::impossible_sizes),
    Class::packets("H8", "exact duplicates", packets::exact_duplicates),
    Class::packets("H9", "symbols of a wrong length", packets::wrong_symbol_lengths),
    Class::packets("H10", "symbols of blocks past the end", packets::blocks_past_the_end),
    Class::forged(
        "H11",
        "forged symbols with the first and last numbers",
        packets::extreme_symbol_numbers,
    ),
    Class::forged("H12", "forged symbols that are hard to solve", packets::symbols_hard_to_solve),
    Class::forged("H13", "forged symbols that depend on each other", packets::dependent_symbols),
    Class::manifests("H14", "names that lead out of the directory", manifests::hostile_names),
    Class::packets("H15", "packets of an old session of the publisher", packets::old_sessions),
    Class::packets("H16", "forged ends and announcements", packets::forged_ends),
    Class::forged("H17", "1 to 64 flipped bits in honest packets", packets::flipped_bits),
    Class::packets("H18", "truncated honest packets", packets::truncated_packets),
    Class::packets("H19", "datagrams of up to 65 507 bytes", packets::oversized_packets),
    Class::sealed("H20", "seals with wrong tags", packets::wrong_tags),
    Class::sealed(
        "H21",
        "sealed packets again, and with other numbers",
        packets::sealed_packets_out_of_order,
    ),
    Class::sealed("H22", "seals of another key", packets::seals_of_another_key),
    Class::packets("H23", "another sender under the session's number", packets::another_sender),
    Class::forged(
        "H24",
        "heads and manifests that conflict with the session's",
        packets::conflicting_manifests,
    ),
    Class::manifests(
        "H25",
        "manifests that claim millions of entries",
        manifests::endless_manifests,
    ),
    Class::manifests("H26", "manifests with repeated and nested paths", manifests::repeated_paths),
    Class::manifests(
        "H27",
        "names that differ in case alone",
        manifests::names_that_differ_in_case,
    ),
    Class::manifests("H28", "entries below symbolic links", manifests::links_and_what_is_below),
    Class::manifests("H29", "hard links to files outside", manifests::hard_links),
    Class::manifests("H30", "devices, pipes and sockets", manifests::devices),
    Class::manifests("H31", "special modes", manifests::special_modes),
    Class::manifests(
        "H32",
        "segments that overlap or exceed their object",
        manifests::contradictory_segments,
    ),
    Class {
        id: "H33",
        what: "compressed tables that unpack to megabytes",
        forges: false,
        attack: Attack::Tables,
    },
    Class::packets("H34", "times and expiries far away", packets::times_far_away),
    Class::packets(
        "H35",
        "long datagrams, as reassembled from fragments",
        packets::reassembled_fragments,
    ),
    Class::packets("H36", "buffers of coalesced datagrams of any size", packets::coalesced_packets),
    Class {
        id: "H37",
        what: "changing source addresses and ports",
        forges: false,
        attack: Attack::AddressedPackets(packets::changing_addresses),
    },
    Class::packets("H38", "feedback to the sender", packets::feedback),
    Class::forged(
        "H39",
        "more symbols before the manifest than memory holds",
        packets::early_symbols,
    ),
    Class::manifests(
        "H40",
        "names that control terminals",
        manifests::names_that_control_terminals,
    ),
    Class::reports("H41", "reports of any receiver", reporting::reports),
    Class::reports("H42", "requests for repair of any block", reporting::requests),
    Class::reports("H43", "changed reports and requests", reporting::changed_feedback),
    // Last, because the process keeps the memory of three receivers.
    Class::site("H44", "receivers that share: forged symbols", site::symbols),
    Class::site("H45", "receivers that share: requests for anything", site::requests),
    Class::site("H46", "receivers that share: changed messages", site::changed_messages),
    Class::web("H47", "requests to a server: impossible, damaged", WebAttack::Requests),
    Class::web("H48", "requests to a server: abandoned", WebAttack::Abandoned),
    Class::web("H49", "false, damaged and endless answers of mirrors", WebAttack::Answers),
];

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.id, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bench, run};
    use super::*;

    /// The gate runs more variants of each in a release build.
    #[test]
    fn every_class_leaves_the_receiver_standing() {
        let bench = Bench { variants: 300, ..Bench::default() };
        for class in classes().iter().filter(|class| class.over_http().is_none()) {
            let report = run(class, &bench).unwrap();
            let broken = report.broken();
            // The memory of this process is that of all tests.
            let broken: Vec<_> = broken.iter().filter(|what| !what.contains("memory")).collect();
            assert!(broken.is_empty(), "{class:?}: {broken:?} {report:?}");
            assert!(report.packets >= 300, "{class:?}: {report:?}");
        }
    }

    #[test]
    fn a_run_is_a_function_of_its_seed() {
        let bench = Bench { variants: 200, ..Bench::default() };
        for class in classes().iter().filter(|class| matches!(class.id, "H7" | "H13" | "H17")) {
            let [first, second] = [(); 2].map(|()| run(class, &bench).unwrap());
            let counts = |report: &super::super::ClassReport| {
                (report.packets, report.log_bytes, report.extra_packets)
            };
            assert_eq!(counts(&first), counts(&second), "{class:?}");
        }
    }
}
