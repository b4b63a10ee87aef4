//! Figures as SVG.

use crate::chart::{Axis, Chart};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (680, 400);

/// Font of axes and legend. The library renders size 15 as 12 pixels.
const LABELS: (&str, u32) = ("sans-serif", 15);

/// Okabe and Ito's colors, which are distinguishable with any kind of color vision, without yellow,
/// which is hard to see on white.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// Draws the figure.
///
/// # Errors
/// A description of the error.
pub(crate) fn svg(chart: &Chart) -> Result<String, String> {
    let mut text = String::new();
    draw(chart, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(chart: &Chart, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let x = Scaled::covering(chart.x, points().map(|point| point.0));
    let y = Scaled::covering(chart.y, points().map(|point| point.1));
    let mut context = ChartBuilder::on(&root)
        .caption(&chart.title, ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x.clone(), y.clone())?;
    context
        .configure_mesh()
        .x_desc(chart.x.label)
        .y_desc(chart.y.label)
        .light_line_style(TRANSPARENT)
        .label_style(LABELS)
        .axis_desc_style(LABELS)
        .x_label_formatter(&|&value| x.label(value))
        .y_label_formatter(&|&value| y.label(value))
        .draw()?;
    for (series, color) in chart.series.iter().zip(COLORS.iter().cycle()) {
        let placed: Vec<_> = series.points.iter().map(|&(h, v)| (x.place(h), y.place(v))).collect();
        let line = LineSeries::new(placed.iter().copied(), color.stroke_width(2));
        context
            .draw_series(line)?
            .label(&series.label)
            .legend(move |(h, v)| PathElement::new([(h, v), (h + 18, v)], color.stroke_width(2)));
        // A curve of very many points is dense enough without marks.
        if placed.len() <= 40 {
            context
                .draw_series(placed.iter().map(|&point| Circle::new(point, 3, color.filled())))?;
        }
    }
    if chart.series.len() > 1 {
        context
            .configure_series_labels()
            .label_font(LABELS)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    drop(context);
    root.present()?;
    Ok(())
}

/// An axis whose coordinates are logarithms if it is logarithmic, so that all charts have the same
/// type.
#[derive(Clone)]
struct Scaled {
    places: Range<f64>,
    logarithmic: bool,
}

impl Scaled {
    fn covering(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        let mut scaled = Self { places: 0.0..1.0, logarithmic: axis.logarithmic };
        let places: Vec<f64> =
            values.map(|value| scaled.place(value)).filter(|place| place.is_finite()).collect();
        let least = places.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = places.iter().copied().reduce(f64::max).unwrap_or(1.0);
        // A margin, which is also the width if all values are equal.
        let air = ((most - least) * 0.04).max(1e-3 * most.abs()).max(1e-9);
        scaled.places = least - air..most + air;
        scaled
    }

    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.log10() } else { value }
    }

    fn label(&self, place: f64) -> String {
        if self.logarithmic {
            let value = 10_f64.powf(place);
            if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
        } else {
            // Twelve digits hide the rounding errors of binary fractions.
            let rounded: f64 = format!("{place:.11e}").parse().unwrap_or(place);
            format!("{rounded}")
        }
    }
}

impl Ranged for Scaled {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        let share = (place - self.places.start) / (self.places.end - self.places.start);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let linear = plotters::coord::types::RangedCoordf64::from(self.places.clone());
        if !self.logarithmic {
            return linear.key_points(hint);
        }
        let decades = self.places.start.ceil() as i32..=self.places.end.floor() as i32;
        let steps: &[f64] = if decades.clone().count() > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let from = self.places.start.floor() as i32;
        (from..=*decades.end())
            .flat_map(|decade| steps.iter().map(move |step| f64::from(decade) + step.log10()))
            .filter(|place| self.places.contains(place))
            .collect()
    }

    fn range(&self) -> Range<f64> {
        self.places.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Series;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            name: "",
            title: "a < b".into(),
            x: Axis::logarithmic("receivers"),
            y: Axis::linear("inefficiency"),
            series: vec![Series::new("one", points), Series::new("empty", Vec::new())],
        }
    }

    #[test]
    fn figures_are_the_same_each_time_and_escape_their_texts() {
        let chart = chart(vec![(1.0, 1.05), (100.0, 1.1), (10_000.0, 1.2)]);
        let svg = super::svg(&chart).unwrap();
        assert_eq!(svg, super::svg(&chart).unwrap());
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("10000"), "{svg}");
    }

    #[test]
    fn a_figure_of_nothing_or_of_one_point_is_drawn() {
        for points in [Vec::new(), vec![(1.0, 1.0)], vec![(0.0, f64::NAN)]] {
            assert!(super::svg(&chart(points)).is_ok());
        }
    }
}
