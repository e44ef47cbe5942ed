//! Facts about programs: provers, ranges, bounds, paths.

mod expressions;
mod interval;
mod path;
mod prove;
mod upper_bound;
mod value_range;
