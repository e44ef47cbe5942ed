//! Operation counts by cost class.

use crate::auto::target::Prices;
use taffeta_ast::op::Op;

/// Cost of a scalar eight-byte exponential relative to a four-byte one. (Vectors have half as many elements instead.)
const DOUBLE: f64 = 2.0;

/// Operation counts of a statement.
#[derive(Default)]
pub(in crate::auto) struct Work {
    pub simple: f64,
    pub divide: f64,
    /// Vectorised transcendental functions, in exponentials.
    pub transcendental: f64,
    /// Scalar transcendental functions, in four-byte exponentials.
    pub one_by_one: f64,
}

impl Work {
    /// Counts one operation on values of this many bytes.
    pub fn of(op: Op, bytes: f64) -> Work {
        let mut work = Work::default();
        match op {
            Op::Div | Op::Sqrt | Op::Rsqrt | Op::FloorDiv | Op::Mod => work.divide = 1.0,
            op if op.info().function.is_some() && op.info().cost > 4 => {
                work.transcendental = of_exponentials(op);
                work.one_by_one = work.transcendental * if bytes > 4.0 { DOUBLE } else { 1.0 };
            }
            _ => work.simple = 1.0,
        }
        work
    }

    /// Returns the latency of these operations in a dependence chain.
    pub fn latency(&self, prices: &Prices) -> f64 {
        let [divide, transcendental] =
            [prices.divide[0], prices.transcendental[0]].map(|each| each.max(prices.latency));
        self.simple * prices.latency + self.divide * (divide + prices.latency) + self.one_by_one * transcendental
    }

    pub fn add(&mut self, other: &Work) {
        self.simple += other.simple;
        self.divide += other.divide;
        self.transcendental += other.transcendental;
        self.one_by_one += other.one_by_one;
    }
}

/// Returns the cost of a function relative to `exp`: libraries build these of `exp`, divisions and branches.
fn of_exponentials(op: Op) -> f64 {
    match op {
        Op::Tanh => 5.0,
        Op::Sinh | Op::Cosh | Op::Erf | Op::Pow | Op::Atan2 => 3.0,
        _ => 1.0,
    }
}
