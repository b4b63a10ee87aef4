//! Figures and tables of rows, as data.

use crate::estimate::Estimate;
use crate::statistics::{largest, mean, smallest};

/// A figure or a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Exhibit {
    /// A figure of curves.
    Chart(Chart),
    /// A figure of bars.
    Bars(Bars),
    /// A table.
    Grid(Grid),
}

/// Curves over pairs of axes, one pair below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its name in file names, after the experiment's id; empty if there is only one.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The horizontal axis, which all panels share.
    pub x: Axis,
    /// The vertical axis of each panel.
    pub y: Axis,
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
}

/// The curves of one pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title; empty if there is only one panel.
    pub title: String,
    /// The curves.
    pub series: Vec<Series>,
}

impl Panel {
    /// The only panel of a chart.
    pub(crate) fn only(series: Vec<Series>) -> Vec<Self> {
        vec![Self { title: String::new(), series }]
    }
}

/// An axis of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its quantity and unit.
    pub label: &'static str,
    /// Whether it is logarithmic.
    pub logarithmic: bool,
}

impl Axis {
    pub(crate) const fn linear(label: &'static str) -> Self {
        Self { label, logarithmic: false }
    }

    pub(crate) const fn logarithmic(label: &'static str) -> Self {
        Self { label, logarithmic: true }
    }
}

/// One curve, or the paper's points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend. Series of one name have one entry.
    pub label: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// How they are drawn.
    pub marks: Marks,
    /// Name of the series whose color it has; `None`: one of its own.
    pub color_of: Option<String>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Connected, as what was computed.
    Curve,
    /// Hollow, as what a paper prints.
    Printed,
    /// Hollow and connected by a dashed line, as a curve or a period that a paper prints.
    PrintedCurve,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// The lower end of its band; `y` without one.
    pub low: f64,
    /// The upper end of its band; `y` without one.
    pub high: f64,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, low: y, high: y }
    }
}

impl Point {
    /// A mean of trials, with a band of two standard errors to either side.
    pub(crate) fn estimate(x: f64, y: Estimate) -> Self {
        let margin = Estimate::MARGIN * y.error;
        let margin = if margin.is_finite() { margin } else { 0.0 };
        Self { x, y: y.value, low: y.value - margin, high: y.value + margin }
    }

    /// The same of a share, in per cent.
    pub(crate) fn percent(x: f64, share: Estimate) -> Self {
        let Self { y, low, high, .. } = Self::estimate(x, share.times(100.0));
        Self { x, y, low: low.max(0.0), high: high.min(100.0) }
    }
}

impl Series {
    /// A curve.
    pub(crate) fn new<P: Into<Point>>(
        label: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        Self { label: label.into(), points, marks: Marks::Curve, color_of: None }
    }

    /// Points that the paper prints.
    pub(crate) fn printed(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self { marks: Marks::Printed, ..Self::new(label, points) }
    }

    /// A curve, a bound or a period that the paper prints.
    pub(crate) fn printed_curve(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self { marks: Marks::PrintedCurve, ..Self::new(label, points) }
    }

    /// The same in the color of another series.
    pub(crate) fn in_color_of(self, label: impl Into<String>) -> Self {
        Self { color_of: Some(label.into()), ..self }
    }
}

/// Bars of means, with the least and the greatest of what was averaged.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Its name in file names, after the experiment's id; empty if there is only one.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The quantity.
    pub axis: Axis,
    /// What the paper's marks are; `None` without marks.
    pub printed: Option<&'static str>,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// The least value.
    pub least: f64,
    /// The mean.
    pub mean: f64,
    /// The greatest value.
    pub most: f64,
    /// The paper's value; `None` if it prints none.
    pub printed: Option<f64>,
}

impl Bar {
    /// The bar of these values, of which there is at least one.
    pub(crate) fn of(label: impl Into<String>, values: &[f64], printed: Option<f64>) -> Self {
        Self {
            label: label.into(),
            least: smallest(values.iter().copied()),
            mean: mean(values),
            most: largest(values.iter().copied()),
            printed,
        }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Its title.
    pub title: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}
