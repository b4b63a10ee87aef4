//! Figures as SVG.

use crate::chart::{Bars, Chart, Marks, Panel, Point, Series};
use scale::Scale;
use std::fmt::Write;

mod scale;

const WIDTH: f64 = 780.0;
/// Height of the plot of a chart with one panel, and with several.
const ONLY_PANEL: f64 = 320.0;
const PANEL: f64 = 160.0;
/// Height of a bar with the space between two.
const BAR: f64 = 30.0;
/// Space for the title, for the title of a panel, and for the horizontal axis.
const TITLE: f64 = 40.0;
const PANEL_TITLE: f64 = 30.0;
const BELOW: f64 = 52.0;
const MARGIN: f64 = 12.0;

/// Pixels of a letter of 12 pixels, on average, so that texts have room.
const LETTER: f64 = 6.6;
/// Pixels of a line of the legend, and of its sample.
const LINE: f64 = 20.0;
const SAMPLE: f64 = 26.0;
/// Curves of more points than this have no marks.
const MOST_MARKS: usize = 40;

/// Okabe and Ito's colors, which are distinguishable with any kind of color vision, without yellow,
/// which is hard to see on white.
const COLORS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];
/// The color of what the paper prints, unless it is that of a curve.
const PRINTED: &str = "#000000";

/// Draws curves.
pub(crate) fn chart(chart: &Chart) -> String {
    let all = || chart.panels.iter().flat_map(|panel| &panel.series);
    let points = || all().flat_map(|series| &series.points);
    let x = Scale::covering(chart.x, points().map(|point| point.x));
    let ys: Vec<Scale> = chart.panels.iter().map(|panel| vertical(chart, panel)).collect();
    let legend = Legend::of(all());
    let widest = ys.iter().flat_map(Scale::ticks).map(|tick| width(&tick.label));
    let left = MARGIN + LINE + widest.fold(0.0, f64::max) + 8.0;
    let right = WIDTH - MARGIN - legend.width();
    let is_only = chart.panels.len() == 1;
    let height = if is_only { ONLY_PANEL } else { PANEL };
    let above = if is_only { 0.0 } else { PANEL_TITLE };
    let bottom = TITLE + (height + above) * chart.panels.len() as f64;
    let mut svg = Svg::new(&chart.title, (bottom + BELOW).max(TITLE + legend.height() + MARGIN));
    for (index, (panel, y)) in chart.panels.iter().zip(&ys).enumerate() {
        let top = TITLE + (height + above) * index as f64 + above;
        let frame = Frame { left, right, top, bottom: top + height };
        if !is_only {
            svg.text(left, frame.top - 9.0, "start", "bold", &panel.title);
        }
        let is_last = index + 1 == chart.panels.len();
        svg.axes(frame, (&x, is_last), y);
        let middle = f64::midpoint(frame.top, frame.bottom);
        svg.upright(MARGIN + 6.0, middle, chart.y.label);
        for series in &panel.series {
            svg.series(series, legend.color(series), &|point| {
                let place = |y_value| frame.place(&x, y, point.x, y_value);
                [place(point.y), place(point.low), place(point.high)]
            });
        }
    }
    svg.text(f64::midpoint(left, right), bottom + 40.0, "middle", "normal", chart.x.label);
    legend.draw(&mut svg, right + 2.0 * MARGIN, TITLE + above);
    svg.end()
}

fn vertical(chart: &Chart, panel: &Panel) -> Scale {
    let points = panel.series.iter().flat_map(|series| &series.points);
    Scale::covering(chart.y, points.flat_map(|point| [point.low, point.y, point.high]))
}

/// Draws bars.
pub(crate) fn bars(bars: &Bars) -> String {
    let values = bars
        .bars
        .iter()
        .flat_map(|bar| [Some(0.0), Some(bar.most), bar.printed].into_iter().flatten());
    let x = Scale::covering(bars.axis, values);
    let widest = bars.bars.iter().map(|bar| width(&bar.label)).fold(0.0, f64::max);
    let bottom = TITLE + BAR * bars.bars.len() as f64 + MARGIN;
    let key = LINE;
    let frame =
        Frame { left: MARGIN + widest + 10.0, right: WIDTH - 3.0 * MARGIN, top: TITLE, bottom };
    let mut svg = Svg::new(&bars.title, bottom + BELOW + key);
    svg.vertical_grid(frame, &x, true);
    for (index, bar) in bars.bars.iter().enumerate() {
        let middle = TITLE + BAR * (index as f64 + 0.5) + MARGIN / 2.0;
        let at = |value: f64| frame.left + x.share(value) * (frame.right - frame.left);
        svg.text(frame.left - 8.0, middle + 4.0, "end", "normal", &bar.label);
        let (zero, mean) = (at(0.0), at(bar.mean));
        svg.rectangle(zero, middle - 9.0, mean - zero, 18.0, COLORS[0], 0.45);
        let (least, most) = (at(bar.least), at(bar.most));
        svg.line((least, middle), (most, middle), "#000000", 1.5, "");
        for end in [least, most] {
            svg.line((end, middle - 5.0), (end, middle + 5.0), "#000000", 1.5, "");
        }
        if let Some(printed) = bar.printed {
            svg.diamond((at(printed), middle), COLORS[1]);
        }
    }
    svg.line((frame.left, frame.top), (frame.left, bottom), "#000000", 1.0, "");
    let center = f64::midpoint(frame.left, frame.right);
    svg.text(center, bottom + 40.0, "middle", "normal", bars.axis.label);
    let y = bottom + BELOW + 8.0;
    svg.text(frame.right, y, "end", "normal", "bars: means; lines: least to most");
    if let Some(printed) = bars.printed {
        svg.diamond((frame.left + 8.0, y - 4.0), COLORS[1]);
        svg.text(frame.left + 22.0, y, "start", "normal", printed);
    }
    svg.end()
}

/// Pixels of a text.
fn width(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// The place of a plot in the figure.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn place(self, x: &Scale, y: &Scale, x_value: f64, y_value: f64) -> (f64, f64) {
        let across = self.left + x.share(x_value) * (self.right - self.left);
        (across, self.bottom - y.share(y_value) * (self.bottom - self.top))
    }
}

/// The names of the series, each once, with its color and marks.
struct Legend {
    entries: Vec<(String, &'static str, Marks)>,
}

impl Legend {
    fn of<'a>(all: impl Iterator<Item = &'a Series> + Clone) -> Self {
        let mut entries: Vec<(String, &'static str, Marks)> = Vec::new();
        let mut colors = COLORS.iter().cycle();
        // Series with a color of their own come first, so that the others find it.
        let (own, others): (Vec<_>, Vec<_>) = all.partition(|series| series.color_of.is_none());
        for series in own.into_iter().chain(others) {
            if entries.iter().any(|entry| entry.0 == series.label) {
                continue;
            }
            let color = match series.marks {
                Marks::Curve => colors.next().copied().unwrap_or(PRINTED),
                Marks::Printed | Marks::PrintedCurve => PRINTED,
            };
            entries.push((series.label.clone(), color, series.marks));
        }
        Self { entries }
    }

    fn color(&self, series: &Series) -> &'static str {
        let name = series.color_of.as_ref().unwrap_or(&series.label);
        self.entries.iter().find(|entry| entry.0 == *name).map_or(PRINTED, |entry| entry.1)
    }

    fn is_needed(&self) -> bool {
        self.entries.len() > 1
    }

    fn width(&self) -> f64 {
        if !self.is_needed() {
            return MARGIN;
        }
        let widest = self.entries.iter().map(|entry| width(&entry.0)).fold(0.0, f64::max);
        widest + SAMPLE + 3.0 * MARGIN
    }

    fn height(&self) -> f64 {
        LINE * self.entries.len() as f64 + MARGIN
    }

    fn draw(&self, svg: &mut Svg, left: f64, top: f64) {
        if !self.is_needed() {
            return;
        }
        for (index, (label, color, marks)) in self.entries.iter().enumerate() {
            let y = top + LINE * (index as f64 + 0.5);
            let (start, end) = ((left, y), (left + SAMPLE - 6.0, y));
            let middle = (f64::midpoint(start.0, end.0), y);
            match marks {
                Marks::Curve => svg.line(start, end, color, 2.0, ""),
                Marks::PrintedCurve => svg.line(start, end, color, 1.2, "5 3"),
                Marks::Printed => {}
            }
            match marks {
                Marks::Curve => svg.dot(middle, color),
                Marks::Printed | Marks::PrintedCurve => svg.diamond(middle, color),
            }
            svg.text(left + SAMPLE, y + 4.0, "start", "normal", label);
        }
    }
}

/// A figure that is being drawn. Writing to a string does not fail.
struct Svg(String);

impl Svg {
    fn new(title: &str, height: f64) -> Self {
        let mut svg = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        ));
        let middle = WIDTH / 2.0;
        let _ = writeln!(
            svg.0,
            "<text x=\"{middle}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{}</text>",
            escaped(title)
        );
        svg
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, weight: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-weight=\"{weight}\">{}</text>",
            escaped(text)
        );
    }

    /// A text from bottom to top, centered.
    fn upright(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.0,
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(text)
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, width: f64, dashes: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{color}\" \
             stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"/>"
        );
    }

    fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, color: &str, opacity: f64) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
             fill=\"{color}\" fill-opacity=\"{opacity}\"/>",
            width.max(0.0)
        );
    }

    fn dot(&mut self, (x, y): (f64, f64), color: &str) {
        let _ = writeln!(self.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
    }

    /// A mark of the paper.
    fn diamond(&mut self, (x, y): (f64, f64), color: &str) {
        let _ = writeln!(
            self.0,
            "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" fill=\"#ffffff\" fill-opacity=\"0.8\" \
             stroke=\"{color}\" stroke-width=\"1.6\"/>",
            y - 5.0
        );
    }

    fn path(&mut self, points: &[(f64, f64)], attributes: &str) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
        }
        let _ = writeln!(self.0, "<path d=\"{path}\" {attributes}/>");
    }

    /// Lines at the ticks of the horizontal axis, and their labels.
    fn vertical_grid(&mut self, frame: Frame, x: &Scale, labels: bool) {
        for tick in x.ticks() {
            let at = frame.left + x.share(tick.value) * (frame.right - frame.left);
            self.line((at, frame.top), (at, frame.bottom), "#e0e0e0", 1.0, "");
            if labels {
                self.text(at, frame.bottom + 18.0, "middle", "normal", &tick.label);
            }
        }
    }

    /// The frame of a plot, with its grid. The ticks of `x` have labels if it is the lowest.
    fn axes(&mut self, frame: Frame, (x, is_lowest): (&Scale, bool), y: &Scale) {
        self.vertical_grid(frame, x, is_lowest);
        for tick in y.ticks() {
            let at = frame.bottom - y.share(tick.value) * (frame.bottom - frame.top);
            self.line((frame.left, at), (frame.right, at), "#e0e0e0", 1.0, "");
            self.text(frame.left - 7.0, at + 4.0, "end", "normal", &tick.label);
        }
        let corners =
            [(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)];
        self.path(&corners, "fill=\"none\" stroke=\"#000000\"");
    }

    /// A series; `place` gives the places of a point and of the ends of its band.
    fn series(&mut self, series: &Series, color: &str, place: &dyn Fn(&Point) -> [(f64, f64); 3]) {
        let is_drawn =
            |places: &[(f64, f64); 3]| places.iter().all(|(x, y)| x.is_finite() && y.is_finite());
        let places: Vec<_> = series.points.iter().map(place).filter(is_drawn).collect();
        let points: Vec<_> = places.iter().map(|[point, ..]| *point).collect();
        if places.iter().any(|[_, low, high]| (low.1 - high.1).abs() > 0.5) {
            let upper = places.iter().map(|[.., high]| *high);
            let lower = places.iter().rev().map(|[_, low, _]| *low);
            let band: Vec<_> = upper.chain(lower).collect();
            self.path(&band, &format!("fill=\"{color}\" fill-opacity=\"0.18\" stroke=\"none\""));
        }
        match series.marks {
            Marks::Curve => {
                self.path(&points, &format!("fill=\"none\" stroke=\"{color}\" stroke-width=\"2\""));
                if points.len() <= MOST_MARKS {
                    points.iter().for_each(|&point| self.dot(point, color));
                }
            }
            Marks::Printed => points.iter().for_each(|&point| self.diamond(point, color)),
            Marks::PrintedCurve => {
                let dashed = "stroke-width=\"1.2\" stroke-dasharray=\"5 3\"";
                self.path(&points, &format!("fill=\"none\" stroke=\"{color}\" {dashed}"));
                points.iter().for_each(|&point| self.diamond(point, color));
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
