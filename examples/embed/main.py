"""Calls heat.ft from Python by ctypes and NumPy. See heat.ft for how it is compiled; nothing of Taffeta is needed but
what `taffeta build` made.

    taffeta build examples/embed/heat.ft heat -o out
    python3 examples/embed/main.py out/libtaffeta_heat.so
"""
import ctypes
import sys
from ctypes import POINTER, Structure, byref, c_char, c_int32, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np

# The numbers of `taffeta_dtype` in taffeta.h.
DTYPES = {"bool": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "uint8": 5, "uint16": 6, "uint32": 7, "uint64": 8,
          "float16": 9, "float32": 11, "float64": 12}
ABI = 3


class Tensor(Structure):
    """`taffeta_tensor`."""

    _fields_ = [("dtype", c_int32), ("ndim", c_int32), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("data", c_void_p), ("levels", c_void_p), ("fill", c_void_p), ("n_levels", c_int32), ("owner", c_int32),
                ("n_stored", c_size_t), ("alloc", c_void_p), ("alloc_data", c_void_p)]


class Context(Structure):
    """`taffeta_ctx`, as TAFFETA_CTX_INIT makes it."""

    _fields_ = [("abi", c_uint32), ("threads", c_int32), ("status", c_int32), ("line", c_int32), ("site", c_int32),
                ("arena_owner", c_int32), ("arena", c_void_p), ("arena_capacity", c_size_t),
                ("memory_used", c_size_t), ("memory_peak", c_size_t), ("print", c_void_p), ("print_data", c_void_p),
                ("message", c_char * 512), ("flags", c_uint32), ("device", c_int32), ("alloc", c_void_p),
                ("alloc_data", c_void_p), ("cancel", c_void_p), ("stream", c_void_p)]

    def __init__(self):
        super().__init__(abi=ABI, site=-1, arena_owner=1)


def lend(array):
    """Describes an array, which must be C-contiguous and outlive the call."""
    assert array.flags.c_contiguous and array.flags.writeable
    shape = (c_int64 * array.ndim)(*array.shape)
    return Tensor(dtype=DTYPES[array.dtype.name], ndim=array.ndim, shape=shape, data=array.ctypes.data)


def call(entry, context, *arrays):
    """Calls an entry with its parameters, then its results, in order."""
    args = (Tensor * len(arrays))(*map(lend, arrays))
    if entry(byref(context), args, c_size_t(len(arrays)), None) != 0:
        raise RuntimeError(context.message.decode())


def main():
    library = ctypes.CDLL(sys.argv[1])
    context = Context()
    rod, average = np.zeros(8), np.zeros(())
    rod[4] = 100
    call(library.taffeta_heat, context, rod, np.array(50, np.int32), np.array(0.25), average)
    print(*(f"{t:.3f}" for t in rod), f"mean {average:.3f}")
    try:
        call(library.taffeta_heat, context, rod, np.array(50), np.array(0.25), average)
    except RuntimeError as mistake:
        print("error:", mistake)
    library.taffeta_ctx_release_3(byref(context))


if __name__ == "__main__":
    main()
