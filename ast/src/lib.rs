//! Weft's tree: types, statements, printer, validators and the reference interpreter
