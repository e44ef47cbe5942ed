"""C interface of the libraries of `taffeta build`, with results given by the caller as in an application's loop."""

import ctypes
import os
import subprocess
import tempfile

import numpy as np

# TAFFETA_ABI of taffeta.h.
ABI = 3
# TAFFETA_TRUST_ARRAYS: for callers that call often with the same index arrays, as the peers do.
TRUST_ARRAYS = 1
# taffeta_level_kind, by the names of the language.
LEVELS = {
    name: kind
    for kind, name in enumerate(
        "dense compressed singleton hashed bytemap bitmap banded ragged blocklist runlength packbits lower upper symmetric point "
        "range offset squeezed sliced".split()
    )
}
DTYPES = {"float32": 11, "float64": 12, "int32": 3, "int64": 4, "uint8": 5, "uint16": 6, "bool": 0}


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("owner", ctypes.c_int32),
        ("length", ctypes.c_size_t),
    ]


class Level(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("n_arrays", ctypes.c_int32),
        ("arrays", ctypes.POINTER(Array)),
    ]


class Stored:
    """Structured tensor by its arrays: `levels` are pairs of a name and the arrays drawn on its page of the manual."""

    def __init__(self, shape, levels, values):
        self.shape, self.levels, self.values = shape, levels, np.ascontiguousarray(values)


class Made:
    """Result that each call makes anew, in the caller's memory by `malloc`; `stored` has the arrays of the last one."""

    def __init__(self, shape, dtype=np.float64):
        self.shape, self.dtype, self.stored = shape, np.dtype(dtype), None


class Tensor(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("levels", ctypes.c_void_p),
        ("fill", ctypes.c_void_p),
        ("n_levels", ctypes.c_int32),
        ("owner", ctypes.c_int32),
        ("n_stored", ctypes.c_size_t),
        ("alloc", ctypes.c_void_p),
        ("alloc_data", ctypes.c_void_p),
    ]


class Context(ctypes.Structure):
    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("threads", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("site", ctypes.c_int32),
        ("arena_owner", ctypes.c_int32),
        ("arena", ctypes.c_void_p),
        ("arena_capacity", ctypes.c_size_t),
        ("memory_used", ctypes.c_size_t),
        ("memory_peak", ctypes.c_size_t),
        ("print", ctypes.c_void_p),
        ("print_data", ctypes.c_void_p),
        ("message", ctypes.c_char * 512),
        ("flags", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("alloc", ctypes.c_void_p),
        ("alloc_data", ctypes.c_void_p),
        ("cancel", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


def tensor(array):
    """Returns a view of an array or of a structured tensor, and an object that keeps the shape alive."""
    if isinstance(array, Stored):
        return structured(array)
    if isinstance(array, Made):
        shape = (ctypes.c_int64 * len(array.shape))(*array.shape)
        return Tensor(dtype=DTYPES[array.dtype.name], ndim=len(array.shape), shape=shape), shape
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    view = Tensor(dtype=DTYPES[array.dtype.name], ndim=array.ndim, shape=shape, data=array.ctypes.data)
    return view, shape


def structured(stored):
    levels, keeps = (Level * len(stored.levels))(), [stored]
    for level, (kind, arrays) in zip(levels, stored.levels):
        views = (Array * len(arrays))()
        for view, array in zip(views, arrays):
            view.data, view.dtype, view.length = array.ctypes.data, DTYPES[array.dtype.name], len(array)
        level.kind, level.n_arrays, level.arrays = LEVELS[kind], len(arrays), views
        keeps.append(views)
    shape = (ctypes.c_int64 * len(stored.shape))(*stored.shape)
    view = Tensor(
        dtype=DTYPES[stored.values.dtype.name],
        ndim=len(stored.shape),
        shape=shape,
        data=stored.values.ctypes.data,
        levels=ctypes.cast(levels, ctypes.c_void_p),
        n_levels=len(levels),
        n_stored=len(stored.values),
    )
    return view, (shape, levels, keeps)


def copied(view, made):
    """Copies the arrays of a result that a call has made."""
    names = {number: name for name, number in DTYPES.items()}

    def array(data, dtype, length):
        if not length:
            return np.empty(0, dtype)
        return np.frombuffer((ctypes.c_char * (length * np.dtype(dtype).itemsize)).from_address(data), dtype).copy()

    levels = ctypes.cast(view.levels, ctypes.POINTER(Level))
    of = lambda level: [
        array(a.data, names[a.dtype], a.length) for a in (level.arrays[k] for k in range(level.n_arrays))
    ]
    kinds = {number: name for name, number in LEVELS.items()}
    found = [(kinds[levels[k].kind], of(levels[k])) for k in range(view.n_levels)]
    return Stored(made.shape, found, array(view.data, made.dtype, view.n_stored))


def drop_pages(array):
    """Gives the whole pages of an array back to the system, after which its elements are 0."""
    page = os.sysconf("SC_PAGE_SIZE")
    start = -(-array.ctypes.data // page) * page
    length = (array.ctypes.data + array.nbytes - start) // page * page
    if length > 0:
        dontneed = 4
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), dontneed)


class Entry:
    """Entry of a program, compiled with a schedule, with sizes and statics built in, for a number of threads."""

    def __init__(self, file, entry, schedule=None, sizes=(), statics=(), threads=None):
        folder = tempfile.mkdtemp(prefix="taffeta-peers-")
        command = [os.environ["TAFFETA"], "build", file, entry, "-o", folder, "--shared"]
        # `race.py --schedule` races another schedule in the place of the examples' own.
        own = schedule and os.environ.get("TAFFETA_RACE_SCHEDULE")
        command += ["--schedule", own or schedule or "none"]
        for option, values in (("--size", dict(sizes)), ("--set", dict(statics))):
            for name, value in values.items():
                command += [option, f"{name}={value}"]
        self.threads = int(threads or os.environ.get("OMP_NUM_THREADS", "2"))
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads)}
        made = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if made.returncode != 0:
            raise RuntimeError(f"taffeta build {entry}: {made.stderr}")
        self.library = ctypes.CDLL(os.path.join(folder, f"libtaffeta_{entry}.so"))
        self.function = getattr(self.library, f"taffeta_{entry}")
        self.function.restype = ctypes.c_int
        self.context = Context(abi=ABI, threads=self.threads, site=-1, flags=TRUST_ARRAYS)

    def bind(self, arguments, results):
        """Prepares a call with these arrays: parameters, then results. Sizes come from the parameters' shapes."""
        arrays = [a if isinstance(a, Stored) else np.require(a, requirements="C") for a in arguments] + list(results)
        views, shapes = zip(*(tensor(a) for a in arrays))
        args = (Tensor * len(views))(*views)
        context, function, count = ctypes.byref(self.context), self.function, len(views)
        made = [(ctypes.byref(view), view, a) for view, a in zip(args, arrays) if isinstance(a, Made)]
        free = self.library.taffeta_free_3

        def call():
            if function(context, args, ctypes.c_size_t(count), None) != 0:
                raise RuntimeError(self.context.message.decode())
            for at, _, _ in made:
                free(at)

        def tell():
            """Calls, and copies what is made."""
            if function(context, args, ctypes.c_size_t(count), None) != 0:
                raise RuntimeError(self.context.message.decode())
            for at, view, a in made:
                a.stored = copied(view, a)
                free(at)
            return [a.stored for _, _, a in made]

        call.tell = tell

        def forget():
            """Gives the scratch memory and the pages of the results back, as if there had been no call."""
            self.library.taffeta_ctx_release_3(context)
            self.context.abi, self.context.site, self.context.flags = ABI, -1, TRUST_ARRAYS
            self.context.threads = self.threads
            for result in results:
                if not isinstance(result, Made):
                    drop_pages(result)

        call.keeps, call.forget = (arrays, shapes, args, self), forget
        return call
