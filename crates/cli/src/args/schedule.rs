//! The value of `--schedule`.

use fontana::{Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule};

/// The order of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScheduleArgument {
    /// Even progress: the sender's default.
    Even,
    /// A schedule that the session announces.
    Announced(TransmissionSchedule),
}

/// n/k of FCAST's paper.
const STRETCH_FACTOR: u32 = 4;
/// What `--schedule` takes.
const FORMS: &str = "even, cumulative, random, fcast:ORDER/ORG with an ORDER of seq, rand or p_randL \
                     and an ORG of org_1 or org_2, or anticipated:N";

/// Parses the value of `--schedule`.
pub(super) fn parse_schedule(text: &str) -> Result<ScheduleArgument, String> {
    let schedule = match text {
        "even" => return Ok(ScheduleArgument::Even),
        "cumulative" => TransmissionSchedule::Cumulative,
        "random" => TransmissionSchedule::Random,
        _ => TransmissionSchedule::Fcast(match text.split_once(':') {
            Some(("fcast", order)) => fcast(order)?,
            Some(("anticipated", layers)) => anticipated(layers)?,
            _ => return Err(format!("there is no such schedule; there are {FORMS}")),
        }),
    };
    Ok(ScheduleArgument::Announced(schedule))
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
    fn a_schedule_is_read_as_it_is_announced() {
        for text in
            ["cumulative", "random", "fcast:seq/org_1", "fcast:rand/org_2", "fcast:p_rand8/org_2"]
        {
            let ScheduleArgument::Announced(schedule) = parse_schedule(text).unwrap() else {
                panic!("{text}");
            };
            assert_eq!(schedule.announced().unwrap().to_string(), text);
        }
        assert_eq!(parse_schedule("even"), Ok(ScheduleArgument::Even));
        let anticipated = parse_schedule("anticipated:2").unwrap();
        let ScheduleArgument::Announced(schedule) = anticipated else { panic!() };
        let announced = schedule.announced().unwrap().to_string();
        assert_eq!(announced, "fcast:rand/org_2,anticipated:2");
    }

    #[test]
    fn a_wrong_schedule_is_refused_with_what_there_is() {
        for (text, expected) in [
            ("", "anticipated:N"),
            ("odd", "even, cumulative, random"),
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
            let error = parse_schedule(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
