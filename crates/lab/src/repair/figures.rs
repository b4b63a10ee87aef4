//! `li.fig4` to `li.fig7`, `li.ratio`: the protocols with FEC.

use super::sweep::{
    BROADCAST, Curve, FORMS, LOSSLESS, LiRow, Number, OTERS, OTERS_PRO, PRUNED, Runs, SRM, SRM_PRO,
    SWEEP, TMTP, TMTP_PRO, curve, plain,
};
use super::table1::{PRINTED, Printed};
use crate::chart::{Axis, Chart, Exhibit, Grid, Panel, Point, Series};
use crate::claim::{Claim, Quote, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::Experiment;

const SECTION_5_2: &str = "section 5.2";
const OF_OTERS: &str = "section 5.2.1";
const OF_SRM: &str = "section 5.2.2";
const OF_TMTP: &str = "section 5.2.3";

/// The group size at which reductions are compared: from there on, SRM is flat.
const COMPARED: u32 = 14;

pub(crate) const FIGURE_4: Experiment = Experiment {
    id: "li.fig4",
    paper: "FEC with reliable multicast, figure 4",
    what: "Packet-hops of a segment against its latency, over those without losses, for transmission groups of k = \
           1 to 112 segments, in the networks of li.table1 (quick: without 56).",
    sweep: &SWEEP,
    claims: figure_4,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        vec![plane(&rows)]
    },
};

pub(crate) const FIGURE_5: Experiment = Experiment {
    id: "li.fig5",
    paper: "FEC with reliable multicast, figure 5",
    what: "The bandwidth-latency product of the runs of li.fig4 against k, over that of the same protocol \
           without FEC.",
    sweep: &SWEEP,
    claims: figure_5,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        let over_plain = |runs: Runs<'_>, of: Curve| runs.over(of, first(of), LiRow::product);
        // The text has the least of each curve, and not where.
        let least = |form: &str, product: f64| {
            let label = format!("paper: {form}, the least");
            Series::printed_curve(label, [(7.0, product), (112.0, product)]).in_color_of(form)
        };
        vec![against_k(
            &rows,
            "Bandwidth-latency product",
            Axis::linear("product / without FEC"),
            over_plain,
            || vec![least(SRM, 0.17), least(TMTP, 0.86), least(TMTP_PRO, 1.0)],
        )]
    },
};

pub(crate) const FIGURE_6: Experiment = Experiment {
    id: "li.fig6",
    paper: "FEC with reliable multicast, figure 6",
    what: "Packet-hops of requests for each segment, of the runs of li.fig4 against k.",
    sweep: &SWEEP,
    claims: figure_6,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        let mean = |runs: Runs<'_>, of: Curve| runs.mean(of, |row| row.request);
        let axis = Axis::logarithmic("packet-hops");
        vec![against_k(&rows, "Request traffic", axis, mean, || printed_plain(|p| p.request))]
    },
};

pub(crate) const FIGURE_7: Experiment = Experiment {
    id: "li.fig7",
    paper: "FEC with reliable multicast, figure 7",
    what: "Packet-hops of repairs for each segment, reactive and proactive, of the runs of li.fig4 against k.",
    sweep: &SWEEP,
    claims: figure_7,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        let mean = |runs: Runs<'_>, of: Curve| runs.mean(of, |row| row.repair);
        let axis = Axis::logarithmic("packet-hops");
        vec![against_k(&rows, "Repair traffic", axis, mean, || printed_plain(|p| p.repair))]
    },
};

pub(crate) const RATIO: Experiment = Experiment {
    id: "li.ratio",
    paper: "FEC with reliable multicast, section 7",
    what: "Packet-hops of requests and repairs of SRM and TMTP-uni with FEC, over those of OTERS without, in the \
           runs of li.fig4. With pruned trees the ratio is another: the multicasts of SRM and TMTP-uni no longer \
           flood the network, and OTERS' subcasts are along the source's tree in both.",
    sweep: &SWEEP,
    claims: ratio,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        vec![ratio_grid(&rows)]
    },
};

/// The beginning of a protocol's curves.
fn first(of: Curve) -> Curve {
    curve(of.protocol, 1)
}

/// The largest of estimates times a sign.
fn extreme(sign: f64, all: impl IntoIterator<Item = Estimate>) -> Estimate {
    Estimate::largest(all.into_iter().map(|each| each.times(sign))).times(sign)
}

fn largest(all: impl IntoIterator<Item = Estimate>) -> Estimate {
    extreme(1.0, all)
}

fn smallest(all: impl IntoIterator<Item = Estimate>) -> Estimate {
    extreme(-1.0, all)
}

/// A claim about a number of the broadcast runs.
fn shape(
    name: impl Into<String>,
    text: impl Into<String>,
    quote: Quote,
    bound: Target,
    measure: impl Fn(Runs<'_>) -> Estimate + 'static,
) -> Claim {
    Claim::shape(name, text, quote, bound, move |rows: &[LiRow]| measure(Runs::broadcast(rows)))
}

/// The part of a number that FEC saves.
fn reduction(runs: Runs<'_>, protocol: &'static str, number: Number) -> Estimate {
    let left = runs.over(curve(protocol, COMPARED), plain(protocol), number);
    Estimate::from(1.0).minus(left)
}

/// The least growth of latency from one group size to the next.
fn least_growth(runs: Runs<'_>, protocol: &'static str, from: u32) -> Estimate {
    let mut groups = vec![1];
    groups.extend(runs.groups());
    groups.retain(|k| *k >= from);
    let step =
        |pair: &[u32]| runs.over(curve(protocol, pair[1]), curve(protocol, pair[0]), |row| row.ms);
    smallest(groups.windows(2).map(step))
}

fn figure_4() -> Vec<Claim> {
    let words = || quote("a large TG size increases the delivery latency", SECTION_5_2);
    let grows = [(OTERS, 1), (OTERS_PRO, 1), (TMTP, 1), (TMTP_PRO, 1), (SRM, COMPARED)];
    let mut all: Vec<Claim> = grows
        .into_iter()
        .chain([(SRM_PRO, COMPARED)])
        .map(|(protocol, from)| {
            shape(
                format!("{protocol} latency"),
                format!("latency over that of the next smaller k, from k = {from} on, the least"),
                words(),
                Target::AtLeast(1.0),
                move |runs| least_growth(runs, protocol, from),
            )
        })
        .collect();
    let order = || quote("SRM >> TMTP-uni >> OTERS", SECTION_5_2);
    all.push(shape(
        "SRM reduction",
        "part of the packet-hops that k = 14 saves with SRM, less three times that of TMTP-uni",
        order(),
        Target::AtLeast(0.0),
        |runs| {
            let tmtp = reduction(runs, TMTP, LiRow::total);
            reduction(runs, SRM, LiRow::total).minus(tmtp.times(3.0))
        },
    ));
    all.push(shape(
        "TMTP reduction",
        "part of the packet-hops that k = 14 saves with TMTP-uni, less twice that of OTERS",
        order(),
        Target::AtLeast(0.0),
        |runs| {
            let oters = reduction(runs, OTERS, LiRow::total);
            reduction(runs, TMTP, LiRow::total).minus(oters.times(2.0))
        },
    ));
    all.push(shape(
        "fig4b",
        "latency of SRM-pro at k = 7 over that of SRM without FEC",
        quote("has a delivery latency even lower than the non-FEC case", OF_SRM),
        Target::AtMost(1.0),
        |runs| runs.over(curve(SRM_PRO, 7), plain(SRM), |row| row.ms),
    ));
    all.push(shape(
        "TMTP-pro faster",
        "latency of TMTP-pro over that of TMTP-uni with the same k, the most",
        quote("better than that of TMTP-uni with reactive FEC alone", OF_TMTP),
        Target::AtMost(1.0),
        |runs| {
            let over = |k: u32| runs.over(curve(TMTP_PRO, k), curve(TMTP, k), |row| row.ms);
            largest(runs.groups().into_iter().map(over))
        },
    ));
    all
}

/// The product over that without FEC, for all group sizes from `from` on.
fn products(runs: Runs<'_>, protocol: &'static str, from: u32) -> Vec<Estimate> {
    let over_plain = |k: u32| {
        let of = curve(protocol, k);
        runs.over(of, first(of), LiRow::product)
    };
    runs.groups().into_iter().filter(|k| *k >= from).map(over_plain).collect()
}

fn percent_saved(left: Estimate) -> Estimate {
    Estimate::from(1.0).minus(left).times(100.0)
}

fn figure_5() -> Vec<Claim> {
    vec![
        Claim::printed(
            "SRM",
            "% by which FEC improves SRM's product, the most of all k and both forms",
            quote("by up to 83% over plain SRM", OF_SRM),
            Target::Equal(83.0),
            10.0,
            |rows: &[LiRow]| {
                let runs = Runs::broadcast(rows);
                let both = [SRM, SRM_PRO].into_iter().flat_map(|form| products(runs, form, 1));
                percent_saved(smallest(both))
            },
        ),
        Claim::printed(
            "TMTP",
            "% by which FEC improves TMTP-uni's product, the most of all k",
            quote("FEC only moderately improves TMTP-uni's BLP, by less than 14%", OF_TMTP),
            Target::AtMost(14.0),
            0.0,
            |rows: &[LiRow]| percent_saved(smallest(products(Runs::broadcast(rows), TMTP, 1))),
        ),
        shape(
            "TMTP improves",
            "% by which FEC improves TMTP-uni's product, the most of all k",
            quote("FEC only moderately improves TMTP-uni's BLP", OF_TMTP),
            Target::AtLeast(0.0),
            |runs| percent_saved(smallest(products(runs, TMTP, 1))),
        ),
        shape(
            "TMTP worsens",
            "TMTP-uni's product at k = 56 and 112 over that without FEC, the least",
            quote("worsens it when the TG size is over 28", OF_TMTP),
            Target::AtLeast(1.0),
            |runs| smallest(products(runs, TMTP, 56)),
        ),
        shape(
            "OTERS",
            "OTERS' product with FEC over that without, the least of all k",
            quote("OTERS achieves the best BLP without FEC", OF_OTERS),
            Target::AtLeast(1.0),
            |runs| smallest(products(runs, OTERS, 1)),
        ),
        Claim::printed(
            "TMTP-pro",
            "TMTP-pro's product over that without FEC, the least of all k",
            quote("TMTP-pro's normalized BLP is never below 1", OF_TMTP),
            Target::AtLeast(1.0),
            0.02,
            |rows: &[LiRow]| smallest(products(Runs::broadcast(rows), TMTP_PRO, 1)),
        ),
        shape(
            "SRM flat",
            "SRM's product at k = 28 over that at k = 14: its distance from 1",
            quote("And the BLP curve is almost flat", OF_SRM),
            Target::AtMost(0.15),
            |runs| {
                let ratio = runs.over(curve(SRM, 28), curve(SRM, COMPARED), LiRow::product);
                ratio.minus(1.0.into()).size()
            },
        ),
    ]
}

fn figure_6() -> Vec<Claim> {
    let left = |runs: Runs<'_>, protocol: &'static str| {
        runs.over(curve(protocol, COMPARED), plain(protocol), |row| row.request)
    };
    let mut all = vec![shape(
        "SRM",
        "SRM's request traffic at k = 14 over that without FEC",
        quote("Figure 6 shows substantial reduction to SRM's request traffic", OF_SRM),
        Target::AtMost(0.25),
        move |runs| left(runs, SRM),
    )];
    for protocol in [TMTP, OTERS] {
        all.push(shape(
            protocol,
            format!(
                "what k = 14 leaves of {protocol}'s request traffic, over what it leaves of SRM's"
            ),
            quote("little reduction to its NAKs because, unlike SRM, TMTP-uni unicasts", OF_TMTP),
            Target::AtLeast(2.0),
            move |runs| left(runs, protocol).over(left(runs, SRM)),
        ));
    }
    all
}

fn figure_7() -> Vec<Claim> {
    let left = |runs: Runs<'_>, protocol: &'static str, k: u32| {
        runs.over(curve(protocol, k), plain(protocol), |row| row.repair)
    };
    let excess =
        |runs: Runs<'_>, k: u32| runs.over(curve(TMTP_PRO, k), curve(TMTP, k), |row| row.repair);
    vec![
        Claim::printed(
            "OTERS",
            "% by which FEC reduces OTERS' repair traffic below k = 56, the most",
            quote("less than 5% for TG sizes under 56", OF_OTERS),
            Target::AtMost(5.0),
            5.0,
            move |rows: &[LiRow]| {
                let runs = Runs::broadcast(rows);
                let below = runs.groups().into_iter().filter(|k| *k < 56);
                percent_saved(smallest(below.map(|k| left(runs, OTERS, k))))
            },
        ),
        shape(
            "OTERS grows",
            "% by which FEC reduces OTERS' repair traffic below k = 56, the least",
            quote("FEC barely reduces OTERS' repair traffic", OF_OTERS),
            Target::AtLeast(-5.0),
            move |runs| {
                let below = runs.groups().into_iter().filter(|k| *k < 56);
                percent_saved(largest(below.map(|k| left(runs, OTERS, k))))
            },
        ),
        shape(
            "TMTP-pro",
            "TMTP-pro's repair traffic over TMTP-uni's, the least of all k",
            quote("TMTP-pro's repair traffic exceeds that of TMTP-uni", OF_TMTP),
            Target::AtLeast(1.0),
            move |runs| smallest(runs.groups().into_iter().map(|k| excess(runs, k))),
        ),
        shape(
            "TMTP-pro small",
            "TMTP-pro's repair traffic over TMTP-uni's at k = 7, over the same at the largest k",
            quote("especially when the TG size is small", OF_TMTP),
            Target::AtLeast(1.0),
            move |runs| {
                let most = runs.groups().last().copied().unwrap_or(0);
                excess(runs, 7).over(excess(runs, most))
            },
        ),
        shape(
            "SRM",
            "SRM's repair traffic at k = 14 over that without FEC",
            quote("Figure 7 shows significant reduction to SRM's repair traffic", OF_SRM),
            Target::AtMost(0.5),
            move |runs| left(runs, SRM, COMPARED),
        ),
    ]
}

/// What SRM and TMTP-uni spend with FEC, over what OTERS spends without.
fn ratios(runs: Runs<'_>) -> Vec<Estimate> {
    let forms = [SRM, SRM_PRO, TMTP, TMTP_PRO];
    let of = |form| move |k: u32| runs.over(curve(form, k), plain(OTERS), LiRow::recovery);
    forms.into_iter().flat_map(|form| runs.groups().into_iter().map(of(form))).collect()
}

fn ratio() -> Vec<Claim> {
    let words =
        || quote("6 to 13 times less recovery traffic (in 600-node topologies)", "section 7");
    vec![
        Claim::printed(
            "least",
            "recovery traffic over that of OTERS without FEC, the least of all k and forms",
            words(),
            Target::AtLeast(6.0),
            2.0,
            |rows: &[LiRow]| smallest(ratios(Runs::broadcast(rows))),
        ),
        Claim::printed(
            "most",
            "recovery traffic over that of OTERS without FEC, the most of all k and forms",
            words(),
            Target::AtMost(13.0),
            7.0,
            |rows: &[LiRow]| largest(ratios(Runs::broadcast(rows))),
        ),
    ]
}

fn ratio_grid(rows: &[LiRow]) -> Exhibit {
    let line = |(name, runs): (&str, Runs<'_>)| {
        let is_run = rows.iter().any(|row| row.multicast == name);
        let cell = |ratio: Estimate| format!("{:.1}", ratio.value);
        let of = |extreme: fn(Vec<Estimate>) -> Estimate| cell(extreme(ratios(runs)));
        is_run.then(|| vec![name.to_owned(), of(smallest), of(largest)])
    };
    let both = [(BROADCAST, Runs::broadcast(rows)), (PRUNED, Runs::pruned(rows))];
    Exhibit::Grid(Grid {
        title: "Recovery traffic over that of OTERS without FEC".into(),
        columns: ["multicast", "least", "most"].map(str::to_owned).into(),
        rows: both.into_iter().filter_map(line).collect(),
    })
}

/// A panel for each kind of multicast that was run.
fn panels(rows: &[LiRow], series: impl Fn(Runs<'_>) -> Vec<Series>) -> Vec<Panel> {
    let panel = |multicast: &str, runs: Runs<'_>| {
        let is_run = rows.iter().any(|row| row.multicast == multicast);
        is_run.then(|| Panel { title: multicast.to_owned(), series: series(runs) })
    };
    let both = [panel(BROADCAST, Runs::broadcast(rows)), panel(PRUNED, Runs::pruned(rows))];
    both.into_iter().flatten().collect()
}

/// Figure 4: one curve for each form, along which k grows.
fn plane(rows: &[LiRow]) -> Exhibit {
    let series = |runs: Runs<'_>| {
        let lossless = plain(LOSSLESS);
        let point = |form: &'static str, k: u32| {
            let of = curve(form, k);
            let x = runs.over(of, lossless, |row| row.ms).value;
            Point::from((x, runs.over(of, lossless, LiRow::total).value))
        };
        let of_form = |form: &'static str| {
            let groups = [1].into_iter().chain(runs.groups());
            Series::new(form, groups.map(|k| point(form, k)).collect::<Vec<_>>())
        };
        FORMS.map(of_form).into()
    };
    Exhibit::Chart(Chart {
        name: "",
        title: "Bandwidth against latency, k = 1 to 112 along each curve".into(),
        x: Axis::linear("latency / without losses"),
        y: Axis::logarithmic("packet-hops / without losses"),
        panels: panels(rows, series),
    })
}

/// A number that table 1 prints for each protocol, at k = 1. The text has no other points.
fn printed_plain(number: fn(&Printed) -> f64) -> Vec<Series> {
    let point = |printed: &Printed| {
        let label = format!("paper: {}", printed.protocol);
        Series::printed(label, [(1.0, number(printed))]).in_color_of(printed.protocol)
    };
    PRINTED.iter().map(point).collect()
}

/// One curve for each form, against k.
fn against_k(
    rows: &[LiRow],
    title: &str,
    y: Axis,
    number: impl Fn(Runs<'_>, Curve) -> Estimate,
    printed: impl Fn() -> Vec<Series>,
) -> Exhibit {
    let series = |runs: Runs<'_>| {
        let of_form = |form: &'static str| {
            let groups = [1].into_iter().chain(runs.groups());
            let point = |k: u32| Point::estimate(k.into(), number(runs, curve(form, k)));
            Series::new(form, groups.map(point).collect::<Vec<_>>())
        };
        FORMS.into_iter().map(of_form).chain(printed()).collect()
    };
    Exhibit::Chart(Chart {
        name: "",
        title: title.into(),
        x: Axis::logarithmic("k"),
        y,
        panels: panels(rows, series),
    })
}
