//! Line charts as SVG files, for examples that show how a number falls: `#[path = "../support/curve.rs"] mod curve;`.

use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

/// Draws each series over its positions 0, 1, 2 …, without the numbers that are not finite. Numbers of several orders
/// of magnitude that are all positive get a logarithmic axis.
///
/// # Errors
///
/// A file that cannot be written, and series without any number to draw.
pub fn curves(path: &Path, title: &str, x: &str, y: &str, series: &[(&str, &[f64])]) -> Result<(), Box<dyn Error>> {
    let finite = || series.iter().flat_map(|(_, all)| all.iter().copied()).filter(|v| v.is_finite());
    let (least, most) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if least > most {
        return Err(format!("{title}: there is no number to draw").into());
    }
    let longest = series.iter().map(|(_, all)| all.len()).max().unwrap_or(0);
    let last = longest.saturating_sub(1).max(1) as f64;
    let text = {
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, (800, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area);
        chart.caption(title, ("sans-serif", 22)).margin(16).x_label_area_size(44).y_label_area_size(70);
        // The two axes are of different types, and the code after them is the same.
        macro_rules! draw {
            ($range:expr) => {{
                let mut chart = chart.build_cartesian_2d(0.0..last, $range)?;
                let number = |v: &f64| format!("{v:.3e}");
                let plain = |v: &f64| format!("{}", (v * 1e6).round() / 1e6);
                let small = most.abs().max(least.abs()) < 1e4 && most - least > 1e-3;
                let form: &dyn Fn(&f64) -> String = if small { &plain } else { &number };
                chart
                    .configure_mesh()
                    .x_desc(x)
                    .y_desc(y)
                    .x_label_formatter(&|v| v.to_string())
                    .y_label_formatter(form)
                    .light_line_style(WHITE)
                    .draw()?;
                for (k, (name, all)) in series.iter().enumerate() {
                    let style = Palette99::pick(k).stroke_width(2);
                    let points = all.iter().enumerate().filter(|(_, v)| v.is_finite()).map(|(i, v)| (i as f64, *v));
                    let line = chart.draw_series(LineSeries::new(points, style))?;
                    line.label(*name).legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 20, y)], Palette99::pick(k).stroke_width(2))
                    });
                }
                if series.len() > 1 {
                    chart
                        .configure_series_labels()
                        .background_style(WHITE.mix(0.8))
                        .border_style(BLACK.mix(0.3))
                        .draw()?;
                }
            }};
        }
        if least > 0.0 && most / least > 100.0 {
            draw!((least / 1.2..most * 1.2).log_scale());
        } else {
            let room = if most > least { (most - least) * 0.05 } else { most.abs().max(1.0) * 0.05 };
            draw!(least - room..most + room);
        }
        area.present()?;
        drop(chart);
        drop(area);
        text
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, text)?)
}
