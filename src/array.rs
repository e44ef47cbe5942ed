//! Arrays at the boundary between Rust and Taffeta: `ndarray` views, values and index lists of any element type, as
//! arguments of a call. Only arrays that are not row-major and contiguous are copied. [`crate::call`] takes
//! [`Argument`]s, and [`crate::sparse`] keeps its arrays as [`List`]s.

use half::{bf16, f16};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, ArrayViewMutD, CowArray, Dimension, IxDyn};
use std::borrow::Cow;
use taffeta_ast::{Buffer, DType, Value};
use taffeta_codegen::call::{Arg, ArgMut, ArgRef};

/// Rust type with a corresponding Taffeta element type.
pub trait Element: taffeta_codegen::call::Element + Default + 'static {
    /// Returns the elements of a buffer of this type; `None` for other types.
    fn from_buffer(buffer: Buffer) -> Option<Vec<Self>>;
    /// Borrows the elements of a buffer of this type; `None` for other types.
    fn slice(buffer: &Buffer) -> Option<&[Self]>;
    /// Wraps an array as a read-only argument.
    fn argument(array: CowArray<'_, Self, IxDyn>) -> Argument<'_>;
    /// Wraps a mutable view as a writable argument.
    fn argument_mut(array: ArrayViewMutD<'_, Self>) -> ArgumentMut<'_>;
    /// Wraps a borrowed or owned list.
    fn list(list: Cow<'_, [Self]>) -> List<'_>;
}

macro_rules! elements {
    ($($variant:ident $t:ty),*) => {
        $(
            impl Element for $t {
                fn from_buffer(buffer: Buffer) -> Option<Vec<Self>> {
                    match buffer {
                        Buffer::$variant(v) => Some(v),
                        _ => None,
                    }
                }
                fn slice(buffer: &Buffer) -> Option<&[Self]> {
                    match buffer {
                        Buffer::$variant(v) => Some(v),
                        _ => None,
                    }
                }
                fn argument(array: CowArray<'_, Self, IxDyn>) -> Argument<'_> {
                    Argument::$variant(array)
                }
                fn argument_mut(array: ArrayViewMutD<'_, Self>) -> ArgumentMut<'_> {
                    ArgumentMut::$variant(array)
                }
                fn list(list: Cow<'_, [Self]>) -> List<'_> {
                    List::$variant(list)
                }
            }
        )*

        /// Read-only array of any element type, row-major and contiguous.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // one variant for each DType
        pub enum Argument<'a> { $($variant(CowArray<'a, $t, IxDyn>)),* }

        impl Argument<'_> {
            /// Returns the element type.
            pub fn dtype(&self) -> DType {
                match self { $(Argument::$variant(_) => DType::$variant),* }
            }

            /// Returns the sizes of the dimensions.
            pub fn shape(&self) -> &[usize] {
                match self { $(Argument::$variant(a) => a.shape()),* }
            }

            /// Copies the array into a value.
            pub fn to_value(&self) -> Option<Value> {
                let data = match self { $(Argument::$variant(a) => Buffer::$variant(a.iter().copied().collect())),* };
                Value::new(self.shape().to_vec(), data)
            }

            /// Reborrows the array for a shorter lifetime.
            pub(crate) fn view(&self) -> Argument<'_> {
                match self { $(Argument::$variant(a) => Argument::$variant(CowArray::from(a.view()))),* }
            }

            /// Converts the array into one that owns its elements.
            pub(crate) fn into_owned(self) -> Argument<'static> {
                match self { $(Argument::$variant(a) => Argument::$variant(CowArray::from(a.into_owned()))),* }
            }

            /// Returns the bytes of owned elements; 0 for a borrowed array.
            pub(crate) fn own_bytes(&self) -> usize {
                match self { $(Argument::$variant(a) if a.is_owned() => a.len() * std::mem::size_of::<$t>(),)* _ => 0 }
            }

            /// Borrows the array as a C argument, without a copy.
            pub(crate) fn as_arg(&self) -> Option<Arg<'_>> {
                match self { $(Argument::$variant(a) => ArgRef::new(a.as_slice()?, a.shape()).map(Arg::In)),* }
            }
        }

        /// List of any element type, such as an index array of a structured tensor.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // one variant for each DType
        pub enum List<'a> { $($variant(Cow<'a, [$t]>)),* }

        impl<'a> List<'a> {
            /// Borrows the elements of a value.
            pub(crate) fn of(value: &'a Value) -> List<'a> {
                match value.data() { $(Buffer::$variant(v) => List::$variant(Cow::Borrowed(v))),* }
            }
        }

        impl List<'_> {
            /// Returns the element type.
            pub fn dtype(&self) -> DType {
                match self { $(List::$variant(_) => DType::$variant),* }
            }

            /// Returns the number of elements.
            #[allow(clippy::len_without_is_empty)] // unused
            pub fn len(&self) -> usize {
                match self { $(List::$variant(a) => a.len()),* }
            }

            /// Copies the list into a value.
            pub(crate) fn to_value(&self) -> Option<Value> {
                let data = match self { $(List::$variant(a) => Buffer::$variant(a.to_vec())),* };
                Value::new(vec![self.len()], data)
            }

            /// Converts the list into one that owns its elements.
            pub(crate) fn into_owned(self) -> List<'static> {
                match self { $(List::$variant(a) => List::$variant(Cow::Owned(a.into_owned()))),* }
            }

            /// Returns the bytes of owned elements; 0 for a borrowed list.
            pub(crate) fn own_bytes(&self) -> usize {
                match self { $(List::$variant(Cow::Owned(a)) => a.len() * std::mem::size_of::<$t>(),)* _ => 0 }
            }

            /// Borrows the list as a C argument, without a copy.
            pub(crate) fn as_arg(&self) -> Option<Arg<'_>> {
                match self { $(List::$variant(a) => ArgRef::new(a, &[a.len()]).map(Arg::In)),* }
            }
        }

        impl<'a> From<Value> for Argument<'a> {
            fn from(value: Value) -> Argument<'a> {
                let (shape, data) = value.into_parts();
                match data {
                    $(Buffer::$variant(v) => {
                        let array = ArrayD::from_shape_vec(IxDyn(&shape), v).expect("the shape matches the data");
                        Argument::$variant(CowArray::from(array))
                    })*
                }
            }
        }

        impl<'a> From<&'a Value> for Argument<'a> {
            fn from(value: &'a Value) -> Argument<'a> {
                let shape = IxDyn(value.shape());
                match value.data() {
                    $(Buffer::$variant(v) => {
                        let view = ArrayView::from_shape(shape, v).expect("the shape matches the data");
                        Argument::$variant(CowArray::from(view))
                    })*
                }
            }
        }

        impl<'a> From<&'a mut Value> for ArgumentMut<'a> {
            fn from(value: &'a mut Value) -> ArgumentMut<'a> {
                let shape = IxDyn(value.shape());
                match value.data_mut() {
                    $(Buffer::$variant(v) => {
                        let view = ArrayViewMut::from_shape(shape, v).expect("the shape matches the data");
                        ArgumentMut::$variant(view)
                    })*
                }
            }
        }

        /// Writable array of any element type.
        #[derive(Debug)]
        #[allow(missing_docs)] // one variant for each DType
        pub enum ArgumentMut<'a> { $($variant(ArrayViewMutD<'a, $t>)),* }

        impl ArgumentMut<'_> {
            /// Returns the element type.
            pub fn dtype(&self) -> DType {
                match self { $(ArgumentMut::$variant(_) => DType::$variant),* }
            }

            /// Returns the sizes of the dimensions.
            pub fn shape(&self) -> &[usize] {
                match self { $(ArgumentMut::$variant(a) => a.shape()),* }
            }

            /// Reborrows the array for a shorter lifetime.
            pub(crate) fn view_mut(&mut self) -> ArgumentMut<'_> {
                match self { $(ArgumentMut::$variant(a) => ArgumentMut::$variant(a.view_mut())),* }
            }

            /// Returns whether C can write the array in place.
            pub(crate) fn in_place(&self) -> bool {
                match self { $(ArgumentMut::$variant(a) => a.is_standard_layout()),* }
            }

            /// Copies the current elements into a value.
            pub fn to_value(&self) -> Option<Value> {
                let data = match self { $(ArgumentMut::$variant(a) => Buffer::$variant(a.iter().copied().collect())),* };
                Value::new(self.shape().to_vec(), data)
            }

            /// Borrows the array as a C argument, without a copy; `None` unless row-major and contiguous.
            pub(crate) fn as_arg(&mut self) -> Option<Arg<'_>> {
                let shape = self.shape().to_vec();
                match self { $(ArgumentMut::$variant(a) => ArgMut::new(a.as_slice_mut()?, &shape).map(Arg::Out)),* }
            }

            /// Copies the elements of a value of the same type and shape into the array.
            pub(crate) fn assign(&mut self, value: &Value) {
                match (self, value.data()) {
                    $((ArgumentMut::$variant(a), Buffer::$variant(v)) => {
                        a.iter_mut().zip(v).for_each(|(to, from)| *to = *from);
                    })*
                    _ => {}
                }
            }
        }
    };
}

elements!(Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F16 f16, Bf16 bf16, F32 f32, F64 f64);

/// Converts a view into an argument: borrowed if row-major and contiguous, else copied.
pub fn argument<T: Element, D: Dimension>(view: ArrayView<'_, T, D>) -> Argument<'_> {
    let view = view.into_dyn();
    if view.is_standard_layout() {
        T::argument(CowArray::from(view))
    } else {
        T::argument(CowArray::from(view.as_standard_layout().into_owned()))
    }
}

/// Converts a mutable view into a writable argument.
pub fn argument_mut<T: Element, D: Dimension>(view: ArrayViewMut<'_, T, D>) -> ArgumentMut<'_> {
    T::argument_mut(view.into_dyn())
}

/// Converts a value into an array; `None` if its elements have another type.
pub fn to_array<T: Element>(value: Value) -> Option<ArrayD<T>> {
    let (shape, data) = value.into_parts();
    ArrayD::from_shape_vec(IxDyn(&shape), T::from_buffer(data)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr2, s};

    #[test]
    fn only_noncontiguous_views_are_copied() {
        let a = arr2(&[[1.0f32, 2.0], [3.0, 4.0]]);
        let whole = argument(a.view());
        assert!(matches!(&whole, Argument::F32(c) if c.as_ptr() == a.as_ptr()));
        let transposed = argument(a.t());
        assert!(matches!(&transposed, Argument::F32(c) if c.as_ptr() != a.as_ptr()));
        let elements = |a: Argument<'_>| a.to_value().map(|v| v.into_parts().1);
        assert_eq!(elements(transposed), Some(Buffer::F32(vec![1.0, 3.0, 2.0, 4.0])));
        assert_eq!(elements(argument(a.slice(s![.., ..;-1]))), Some(Buffer::F32(vec![2.0, 1.0, 4.0, 3.0])));
    }

    #[test]
    fn values_become_arrays_of_their_own_type() {
        let v = Value::new(vec![2], Buffer::I64(vec![1, 2])).expect("a value");
        assert_eq!(to_array::<i32>(v.clone()), None);
        assert_eq!(to_array::<i64>(v), Some(ndarray::arr1(&[1, 2]).into_dyn()));
    }
}
