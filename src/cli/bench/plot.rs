//! A sweep as curves.

use plotters::prelude::*;

use super::saved::{Cost, Measured, Row};

/// Width and height of the picture.
const SIZE: (u32, u32) = (900, 540);
/// Parts of the whole range that stay free above the highest point.
const HEADROOM: f64 = 1.08;
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 90, 20),
    RGBColor(44, 140, 44),
    RGBColor(150, 60, 170),
    RGBColor(140, 86, 75),
    RGBColor(90, 90, 90),
];

/// What is drawn upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Bytes,
    Flops,
    Time,
    Instructions,
}

impl Axis {
    /// What tells most: work in a second where it is known, of matrices the arithmetic.
    fn of(measured: &Measured) -> Axis {
        let all = |known: fn(&Row) -> bool| measured.rows.iter().all(known);
        let is_time = all(|row| matches!(row.cost, Cost::Time { .. }));
        match () {
            () if !is_time => Axis::Instructions,
            () if measured.computes.contains("matrices") && all(|row| row.flops.is_some()) => {
                Axis::Flops
            }
            () if all(|row| row.bytes.is_some()) => Axis::Bytes,
            () => Axis::Time,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Axis::Bytes => "GB/s",
            Axis::Flops => "TFLOP/s",
            Axis::Time => "\u{b5}s",
            Axis::Instructions => "instructions of warps (no time is measured on the emulator)",
        }
    }

    fn value(self, row: &Row) -> Option<f64> {
        match self {
            Axis::Bytes => row.rate(row.bytes).map(|rate| rate / 1e9),
            Axis::Flops => row.rate(row.flops).map(|rate| rate / 1e12),
            Axis::Time => match row.cost {
                Cost::Time { median, .. } => Some(1e3 * median),
                Cost::Counts(_) => None,
            },
            Axis::Instructions => match row.cost {
                Cost::Counts(stats) => Some(stats.warp_instructions as f64),
                Cost::Time { .. } => None,
            },
        }
    }

    /// The device's limit.
    fn limit(self, measured: &Measured) -> Option<f64> {
        match self {
            Axis::Bytes => measured.limits[0].map(|limit| limit / 1e9),
            Axis::Flops => measured.limits[1].map(|limit| limit / 1e12),
            Axis::Time | Axis::Instructions => None,
        }
    }
}

/// Points of one colour.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The curve of each combination of values beside those of `x`.
fn curves(measured: &Measured, axis: Axis, x: &Horizontal, label: &str) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in &measured.rows {
        let others = row.values.iter().filter(|(name, _)| *name != x.name);
        let others: Vec<String> = others
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let parts = [label.to_owned(), others.join(" ")];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let name = parts.join(", ");
        let at = row.values.iter().find(|(name, _)| *name == x.name);
        let at = at.and_then(|(_, value)| x.place(value));
        let (Some(at), Some(value)) = (at, axis.value(row)) else {
            continue;
        };
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push((at, value)),
            None => curves.push(Curve {
                name,
                points: vec![(at, value)],
            }),
        }
    }
    curves
}

/// The swept values along the picture: by size, by their logarithms where they span much, or one after the other.
struct Horizontal {
    name: String,
    values: Vec<String>,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Logarithmic,
    Order,
}

impl Horizontal {
    fn new(measured: &Measured, name: &str) -> Horizontal {
        let mut values: Vec<String> = Vec::new();
        for row in &measured.rows {
            let own = row.values.iter().filter(|(n, _)| n == name);
            for (_, value) in own {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
        }
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
        let scale = match numbers {
            None => Scale::Order,
            Some(numbers) => {
                let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
                let high = numbers.iter().copied().fold(0.0, f64::max);
                match low > 0.0 && high / low >= 8.0 {
                    true => Scale::Logarithmic,
                    false => Scale::Linear,
                }
            }
        };
        Horizontal {
            name: name.to_owned(),
            values,
            scale,
        }
    }

    /// Where a value stands; none of one that is not among the others where these have no size.
    fn place(&self, value: &str) -> Option<f64> {
        match self.scale {
            Scale::Linear => value.parse().ok(),
            Scale::Logarithmic => value.parse::<f64>().ok().map(f64::log2),
            Scale::Order => {
                let at = self.values.iter().position(|known| known == value);
                at.map(|at| at as f64)
            }
        }
    }

    /// What stands at a place.
    fn label(&self, at: f64) -> String {
        match self.scale {
            Scale::Linear => format!("{at:.0}"),
            Scale::Logarithmic => format!("{:.0}", at.exp2()),
            Scale::Order => {
                let near = at.round();
                let value = self.values.get(near as usize);
                let value = value.filter(|_| (at - near).abs() < 0.01);
                value.cloned().unwrap_or_default()
            }
        }
    }
}

/// The picture of a run, beside one before it; `name` is the value that is drawn from left to right.
pub(super) fn svg(
    measured: &Measured,
    before: Option<&Measured>,
    name: &str,
) -> Result<String, String> {
    let axis = Axis::of(measured);
    let x = Horizontal::new(measured, name);
    let label = if before.is_some() { "now" } else { "" };
    let now = curves(measured, axis, &x, label);
    let old = before.map_or(Vec::new(), |before| curves(before, axis, &x, "saved"));
    let all = || now.iter().chain(&old).flat_map(|curve| &curve.points);
    let left = all().map(|&(at, _)| at).fold(f64::INFINITY, f64::min);
    let right = all().map(|&(at, _)| at).fold(f64::NEG_INFINITY, f64::max);
    let top = all().map(|&(_, value)| value).fold(0.0, f64::max);
    if !(left.is_finite() && right.is_finite()) {
        return Err(format!("there is nothing to draw along {name}"));
    }
    let edge = ((right - left) * 0.03).max(0.05);
    // A limit far above all points would press them to the ground.
    let limit = axis.limit(measured).filter(|&limit| limit < 4.0 * top);
    let top = (top.max(limit.unwrap_or(0.0)) * HEADROOM).max(f64::MIN_POSITIVE);
    let mut out = String::new();
    let drawn = draw(
        &mut out,
        &Frame {
            title: format!(
                "{} on {} ({})",
                measured.kernel, measured.device, measured.target
            ),
            axis,
            x: &x,
            across: left - edge..right + edge,
            top,
            limit,
        },
        [&now, &old],
    );
    drawn.map_err(|error| error.to_string())?;
    Ok(out)
}

struct Frame<'a> {
    title: String,
    axis: Axis,
    x: &'a Horizontal,
    across: std::ops::Range<f64>,
    top: f64,
    limit: Option<f64>,
}

fn draw(
    out: &mut String,
    frame: &Frame<'_>,
    [now, old]: [&[Curve]; 2],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(out, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(&frame.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(frame.across.clone(), 0.0..frame.top)?;
    let steps = match frame.x.scale {
        Scale::Order => 2 * frame.x.values.len().max(1) - 1,
        _ => frame.x.values.len().clamp(2, 12),
    };
    chart
        .configure_mesh()
        .x_desc(frame.x.name.as_str())
        .y_desc(frame.axis.name())
        .x_labels(steps)
        .x_label_formatter(&|at| frame.x.label(*at))
        .y_label_formatter(&|value| number(*value))
        .light_line_style(WHITE)
        .draw()?;
    let colours = COLOURS.iter().cycle();
    for (curve, &colour) in now.iter().zip(colours.clone()) {
        let points = curve.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)).point_size(4))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    for (curve, &colour) in old.iter().zip(colours) {
        let points = curve.points.iter().copied();
        let style = colour.mix(0.45).stroke_width(2);
        chart
            .draw_series(DashedLineSeries::new(points, 6, 4, style))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.mix(0.45)));
    }
    if let Some(limit) = frame.limit {
        let ends = [(frame.across.start, limit), (frame.across.end, limit)];
        chart
            .draw_series(DashedLineSeries::new(ends, 3, 3, BLACK.stroke_width(1)))?
            .label("the device's limit")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(180, 180, 180))
        .draw()?;
    root.present()?;
    Ok(())
}

/// A number on the axis, short.
fn number(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.1}G", value / 1e9),
        value if value >= 1e6 => format!("{:.1}M", value / 1e6),
        value if value >= 1e4 => format!("{:.0}k", value / 1e3),
        value if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emu::Stats;

    fn measured(costs: &[(&str, f64)], computes: &str) -> Measured {
        let row = |&(n, median): &(&str, f64)| Row {
            values: vec![("N".to_owned(), n.to_owned())],
            programs: 1,
            cost: Cost::Time {
                median,
                low: median,
                high: median,
                launches: 9,
            },
            bytes: Some(1 << 30),
            flops: Some(1 << 40),
        };
        Measured {
            kernel: "a<b>&c".to_owned(),
            device: "GPU".to_owned(),
            target: "sm_90".to_owned(),
            limits: [Some(3.0e12), Some(9.0e14)],
            computes: computes.to_owned(),
            rows: costs.iter().map(row).collect(),
        }
    }

    #[test]
    fn a_sweep_is_drawn_beside_a_saved_run() {
        let now = measured(&[("128", 0.5), ("1024", 0.4), ("4096", 0.39)], "f32");
        let before = measured(&[("128", 0.6), ("1024", 0.8)], "f32");
        let picture = svg(&now, Some(&before), "N").expect("it is drawn");
        let read = roxmltree::Document::parse(&picture).expect("well-formed");
        let texts = read.descendants().filter_map(|node| node.text());
        let texts: Vec<&str> = texts
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .collect();
        for wanted in [
            "a<b>&c on GPU (sm_90)",
            "GB/s",
            "N",
            "now",
            "saved",
            "the device's limit",
        ] {
            assert!(texts.contains(&wanted), "{wanted}: {texts:?}");
        }
    }

    #[test]
    fn what_tells_most_is_drawn_upwards() {
        let rows = [("a", 0.5), ("b", 0.4)];
        assert_eq!(Axis::of(&measured(&rows, "f32")), Axis::Bytes);
        assert_eq!(Axis::of(&measured(&rows, "matrices of f16")), Axis::Flops);
        let mut other = measured(&rows, "f32");
        other.rows[1].bytes = None;
        assert_eq!(Axis::of(&other), Axis::Time);
        other.rows[1].cost = Cost::Counts(Stats::default());
        assert_eq!(Axis::of(&other), Axis::Instructions);
        // Words stand in their order.
        assert!(svg(&measured(&rows, "f32"), None, "N").is_ok());
        assert!(svg(&measured(&rows, "f32"), None, "M").is_err());
    }
}
