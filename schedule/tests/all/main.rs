//! Tests of schedules in one binary: every primitive, rules of `auto`, and random schedules.

mod campaign;
mod primitives;
