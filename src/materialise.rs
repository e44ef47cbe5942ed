//! Choice of the tapes of gradients under automatic schedules: candidate plans are scheduled and compared.

mod candidate;
mod choose;

pub(crate) use candidate::Derived;
pub(crate) use choose::choose;
