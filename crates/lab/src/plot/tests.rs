//! Figures are drawn the same each time, with all of their texts inside.

use crate::chart::{Axis, Bar, Bars, Chart, Panel, Point, Series};
use crate::estimate::Estimate;
use crate::plot;

fn chart(points: Vec<(f64, f64)>) -> Chart {
    let series = vec![
        Series::new("one", points),
        Series::new("empty", Vec::<Point>::new()),
        Series::printed("paper", [(10.0, 1.07)]),
    ];
    Chart {
        name: "",
        title: "a < b".into(),
        x: Axis::logarithmic("receivers"),
        y: Axis::linear("inefficiency"),
        panels: Panel::only(series),
    }
}

#[test]
fn figures_are_the_same_each_time_and_escape_their_texts() {
    let chart = chart(vec![(1.0, 1.05), (100.0, 1.1), (10_000.0, 1.2)]);
    let svg = plot::chart(&chart);
    assert_eq!(svg, plot::chart(&chart));
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("a &lt; b") && svg.contains("10\u{a0}000"), "{svg}");
}

#[test]
fn a_figure_of_nothing_or_of_one_point_is_drawn() {
    for points in [Vec::new(), vec![(1.0, 1.0)], vec![(0.0, f64::NAN)]] {
        let svg = plot::chart(&chart(points));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn printed_points_and_bands_are_drawn_and_a_name_is_in_the_legend_once() {
    let band = Point::estimate(2.0, Estimate { value: 1.1, error: 0.02 });
    let mut chart = chart(vec![(1.0, 1.05), (100.0, 1.1)]);
    let panel = Panel { title: "below".into(), series: chart.panels[0].series.clone() };
    chart.panels.push(panel);
    chart.panels[0].series.push(Series::new("band", [Point::from((1.0, 1.0)), band]));
    let svg = plot::chart(&chart);
    for label in [">one<", ">paper<", ">band<", ">below<"] {
        assert_eq!(svg.matches(label).count(), 1, "{label}: {svg}");
    }
    assert!(svg.contains("fill-opacity=\"0.18\""), "{svg}");
}

#[test]
fn bars_have_whiskers_and_marks() {
    let bars = Bars {
        name: "",
        title: "time".into(),
        axis: Axis::linear("seconds"),
        printed: Some("paper"),
        bars: vec![Bar::of("a", &[1.0, 2.0, 6.0], Some(2.5)), Bar::of("b", &[4.0], None)],
    };
    let svg = plot::bars(&bars);
    // One mark, and one in the key.
    assert_eq!(svg.matches("l5 5l-5 5l-5 -5z").count(), 2, "{svg}");
    assert!(svg.contains(">a<") && svg.contains(">b<"), "{svg}");
}
