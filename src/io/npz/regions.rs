//! Layouts that store whole regions, diagonals or blocks: elements that equal the parameter's fill are dropped, and 0
//! fills the rest of a written region.

use super::archive::{Writer, check_room};
use crate::io::elements::{Elements, Numbers};
use crate::io::want::Want;
use taffeta_ast::format::Format;
use taffeta_ast::{Buffer, Literal, Value, coordinates};

/// Returns whether two formats have levels of the same kinds for the same coordinates.
pub(super) fn alike(a: &Format, b: &Format) -> bool {
    let kinds = |f: &Format| f.levels.iter().map(|l| l.kind).collect::<Vec<_>>();
    kinds(a) == kinds(b) && a.coords == b.coords && a.keys == b.keys
}

/// Elements of regions that differ from the fill.
pub(super) struct NonFill<'a> {
    data: &'a Buffer,
    fill: Literal,
    sources: Vec<usize>,
    indices: Vec<i64>,
}

impl<'a> NonFill<'a> {
    pub(super) fn new(data: &'a Buffer, want: &Want) -> NonFill<'a> {
        NonFill { data, fill: want.fill.unwrap_or(Literal::zero(want.dtype)), sources: Vec::new(), indices: Vec::new() }
    }

    pub(super) fn add(&mut self, source: usize, at: [i64; 2]) {
        let number = match (self.data.get(source), self.fill) {
            // The file's kind of numbers may differ from the parameter's.
            (Literal::Int(a), Literal::Float(b)) => a as f64 == b,
            (Literal::Float(a), Literal::Float(b)) => a == b,
            (a, b) => a == b,
        };
        if !number {
            self.sources.push(source);
            self.indices.extend(at);
        }
    }

    pub(super) fn elements(self) -> Elements {
        let positions: Vec<i64> = (0..self.sources.len() as i64).collect();
        let mut values = Buffer::zeros(self.data.dtype(), self.sources.len());
        coordinates::place(self.data, &self.sources, &positions, &mut values);
        Elements { indices: self.indices, values: Numbers::Typed(values) }
    }
}

/// Writes `data` of a shape, with the elements at their positions and 0 elsewhere.
pub(super) fn write(
    archive: &mut Writer<'_>,
    value: &Value,
    positions: &[i64],
    shape: Vec<usize>,
) -> std::io::Result<()> {
    let bytes = shape.iter().fold(value.dtype().size() as u128, |n, d| n.saturating_mul(*d as u128));
    check_room(bytes)?;
    let mut data = Buffer::zeros(value.dtype(), shape.iter().product());
    coordinates::scatter(value.data(), positions, &mut data);
    archive.add_data("data", shape, data)
}
