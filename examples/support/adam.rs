//! Parameters of a network with Adam's moments: `#[path = "../support/adam.rs"] mod adam;`. A program takes them as
//! `w`, `w_mean` and `w_square`.

use ndarray::ArrayD;
use taffeta::Call;

/// Parameter with its moments.
pub struct Parameter {
    name: &'static str,
    names: [String; 2],
    value: ArrayD<f32>,
    mean: ArrayD<f32>,
    square: ArrayD<f32>,
}

impl Parameter {
    /// Makes a parameter as it is before the first step.
    pub fn new(name: &'static str, value: ArrayD<f32>) -> Parameter {
        let zeros = ArrayD::zeros(value.raw_dim());
        let names = ["mean", "square"].map(|kind| format!("{name}_{kind}"));
        Parameter { name, names, value, mean: zeros.clone(), square: zeros }
    }

    /// Returns the current value.
    #[allow(dead_code)] // a network is asked for its answers (`read`), not for its weights
    pub fn value(&self) -> &ArrayD<f32> {
        &self.value
    }
}

/// Passes all parameters to a call that changes them.
pub fn change<'f, 'a>(mut call: Call<'f, 'a>, network: &'a mut [Parameter]) -> Call<'f, 'a> {
    for p in network {
        call = call.inout(p.name, p.value.view_mut()).inout(&p.names[0], p.mean.view_mut());
        call = call.inout(&p.names[1], p.square.view_mut());
    }
    call
}

/// Passes all values to a call that only reads them.
#[allow(dead_code)] // where the parameters themselves are the answer, `value` gives them
pub fn read<'f, 'a>(mut call: Call<'f, 'a>, network: &'a [Parameter]) -> Call<'f, 'a> {
    for p in network {
        call = call.input(p.name, p.value.view());
    }
    call
}
