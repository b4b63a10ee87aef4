//! The value of `--order`.

use fontana::{Fcast, ObjectOrder, Ordering, Profile, SymbolOrganization, TransmissionSchedule};
use fontana_console::units::parse_permille;

/// The order of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderArgument {
    /// Even progress: the sender's default.
    Even,
    /// Few incomplete blocks at receivers.
    Space,
    /// One block after the other, with repair symbols per thousand source symbols.
    Sequential { repair_permille: u32 },
    /// A schedule that the session announces.
    Announced(TransmissionSchedule),
}

impl OrderArgument {
    pub(crate) fn ordering(self) -> Ordering {
        match self {
            Self::Even | Self::Space => Ordering::Even,
            Self::Sequential { repair_permille } => Ordering::Sequential { repair_permille },
            Self::Announced(schedule) => Ordering::Schedule(schedule),
        }
    }

    pub(crate) fn profile(self) -> Profile {
        if self == Self::Space { Profile::Space } else { Profile::Speed }
    }
}

/// n/k of FCAST's paper.
const STRETCH_FACTOR: u32 = 4;
/// Repair symbols of blocks that are sent one after the other, per thousand source symbols.
const SEQUENTIAL_PERMILLE: u32 = 100;
/// What `--order` takes.
const FORMS: &str = "even, space, sequential, sequential:PERCENT, cumulative, random, \
                     fcast:ORDER/ORG with an ORDER of seq, rand or p_randL and an ORG of org_1 or \
                     org_2, or anticipated:N";

/// Parses the value of `--order`.
pub(super) fn parse_order(text: &str) -> Result<OrderArgument, String> {
    let schedule = match text {
        "even" => return Ok(OrderArgument::Even),
        "space" => return Ok(OrderArgument::Space),
        "sequential" => {
            return Ok(OrderArgument::Sequential { repair_permille: SEQUENTIAL_PERMILLE });
        }
        "cumulative" => TransmissionSchedule::Cumulative,
        "random" => TransmissionSchedule::Random,
        _ => TransmissionSchedule::Fcast(match text.split_once(':') {
            Some(("sequential", percent)) => {
                let repair_permille = parse_permille(percent)?;
                return Ok(OrderArgument::Sequential { repair_permille });
            }
            Some(("fcast", order)) => fcast(order)?,
            Some(("anticipated", layers)) => anticipated(layers)?,
            _ => return Err(format!("there is no such order; there are {FORMS}")),
        }),
    };
    Ok(OrderArgument::Announced(schedule))
}

/// `ORDER/ORG`, as the paper names its orders of several objects: `rand/org_2`.
fn fcast(text: &str) -> Result<Fcast, String> {
    let Some((order, organization)) = text.split_once('/') else {
        return Err("give the symbols of each layer too: fcast:rand/org_2, or org_1".to_owned());
    };
    let object_order = match (order, order.strip_prefix("p_rand")) {
        ("seq", _) => ObjectOrder::Sequential,
        ("rand", _) => ObjectOrder::Random,
        (_, Some(l)) => match l.parse() {
            Ok(one_in) if one_in >= 2 => ObjectOrder::PartlyRandom { one_in },
            _ => return Err("one symbol in L is exchanged, 2 or more: p_rand8".to_owned()),
        },
        _ => return Err(format!("{order:?} is no order of objects: seq, rand or p_randL")),
    };
    let organization = match organization {
        "org_1" => SymbolOrganization::AllOnEach,
        "org_2" => SymbolOrganization::Segments,
        _ => {
            return Err(format!("{organization:?} is not org_1 (all symbols) or org_2 (segments)"));
        }
    };
    let stretch_factor = STRETCH_FACTOR;
    Ok(Fcast { organization, object_order, stretch_factor, anticipated_layers: 0 })
}

fn anticipated(text: &str) -> Result<Fcast, String> {
    let layers = text.parse::<u8>().ok().filter(|layers| (1..=64).contains(layers));
    let Some(anticipated_layers) = layers else {
        return Err("a session has 1 to 64 layers: anticipated:2".to_owned());
    };
    Ok(Fcast {
        organization: SymbolOrganization::Segments,
        object_order: ObjectOrder::Random,
        stretch_factor: STRETCH_FACTOR,
        anticipated_layers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_announced() {
        for text in
            ["cumulative", "random", "fcast:seq/org_1", "fcast:rand/org_2", "fcast:p_rand8/org_2"]
        {
            let OrderArgument::Announced(schedule) = parse_order(text).unwrap() else {
                panic!("{text}");
            };
            assert_eq!(schedule.announced().unwrap().to_string(), text);
        }
        assert_eq!(parse_order("even"), Ok(OrderArgument::Even));
        assert_eq!(parse_order("space").map(OrderArgument::profile), Ok(Profile::Space));
        let sequential = |repair_permille| Ok(OrderArgument::Sequential { repair_permille });
        assert_eq!(parse_order("sequential"), sequential(100));
        assert_eq!(parse_order("sequential:2.5"), sequential(25));
        let anticipated = parse_order("anticipated:2").unwrap();
        let OrderArgument::Announced(schedule) = anticipated else { panic!() };
        let announced = schedule.announced().unwrap().to_string();
        assert_eq!(announced, "fcast:rand/org_2,anticipated:2");
    }

    #[test]
    fn a_wrong_order_is_refused_with_what_there_is() {
        for (text, expected) in [
            ("", "anticipated:N"),
            ("odd", "even, space, sequential"),
            ("sequential:x", "number"),
            ("fcast", "fcast:ORDER/ORG"),
            ("fcast:rand", "fcast:rand/org_2"),
            ("fcast:sequ/org_1", "seq, rand or p_randL"),
            ("fcast:p_rand1/org_1", "p_rand8"),
            ("fcast:p_rand/org_1", "p_rand8"),
            ("fcast:rand/org_3", "org_1 (all symbols)"),
            ("anticipated:0", "1 to 64"),
            ("anticipated:65", "1 to 64"),
            ("anticipated:", "anticipated:2"),
        ] {
            let error = parse_order(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
