//! Weft's schedules
