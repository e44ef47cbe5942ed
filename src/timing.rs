//! Wall-clock time of each compilation step.

use std::time::{Duration, Instant};

/// Steps in execution order, with their durations.
#[derive(Clone, Debug, Default)]
pub struct Timings {
    steps: Vec<(&'static str, Duration)>,
}

impl Timings {
    /// Runs `f` and adds its duration to the step.
    pub fn measure<T>(&mut self, step: &'static str, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = f();
        self.add(step, start.elapsed());
        result
    }

    /// Adds a duration to a step, which is appended at its first duration.
    pub fn add(&mut self, step: &'static str, time: Duration) {
        tracing::debug!(step, ms = time.as_secs_f64() * 1e3, "done");
        match self.steps.iter_mut().find(|(s, _)| *s == step) {
            Some((_, total)) => *total += time,
            None => self.steps.push((step, time)),
        }
    }

    /// Adds the steps of another list to this one.
    pub fn extend(&mut self, other: &Timings) {
        for (step, time) in &other.steps {
            self.add(step, *time);
        }
    }

    /// Returns the steps with their durations.
    pub fn steps(&self) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        self.steps.iter().copied()
    }

    /// Returns the duration of a step; zero if it did not run.
    pub fn get(&self, step: &str) -> Duration {
        self.steps.iter().find(|(s, _)| *s == step).map_or(Duration::ZERO, |s| s.1)
    }
}
