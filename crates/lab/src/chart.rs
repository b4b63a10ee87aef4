//! Figures and tables of rows, as data.

/// A figure or a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Exhibit {
    /// A figure.
    Chart(Chart),
    /// A table.
    Grid(Grid),
}

/// Curves over one pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its name in file names, after the experiment's id; empty if there is only one.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
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

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    pub(crate) fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points }
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
