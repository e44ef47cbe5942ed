# The two commands of the README, and what people who change Taffeta type.
#
#   make demo     build, and run SubdivNet's circular difference on a mesh
#   make test     everything that must hold
#   make bench    what we are measured on, against bars and the machine's limits, and how compile time grows;
#                 against peers where `make peers` has been
#   make peers    PyTorch, JAX, SciPy and MKL in .venv-peers (5 GB), for make bench
#   make race-schedules   what rules choose against the examples' own schedules, in pairs (Python with NumPy)
#   make book     the manual as a book, target/book/index.html (by mdbook)
#   make gallery  the pictures of the manual's gallery, drawn again by the examples
#   make fuzz     the random campaigns, for as long as you like: make fuzz MINUTES=60 (SEED=… for those seeds again)
.PHONY: demo test lint bench peers race-peers race-schedules race-sparse race-polybench book gallery fuzz setup clean

CARGO ?= cargo
# Rust installed by rustup is not on the path of a bare shell.
export PATH := $(PATH):$(HOME)/.cargo/bin
# Real data, if there is any beside the project.
export TAFFETA_DATA ?= $(wildcard $(abspath ../shared/data))
# The Python that the differential tests compare with; setup makes it.
export TAFFETA_PYTHON ?= $(abspath .venv/bin/python)
MINUTES ?= 60

demo:
	@tools/setup.sh
	@$(CARGO) build --quiet
	@tools/demo.sh $${CARGO_TARGET_DIR:-target}/debug/taffeta

# Tests run side by side, one more than there are processors, since some wait for files and programs. Threads that
# waited actively for the next parallel loop would take each other's time.
test: export RUST_TEST_THREADS ?= $(shell expr $$(nproc) + 1)
test:
	@tools/setup.sh test
	OMP_WAIT_POLICY=passive $(CARGO) test --workspace --quiet

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

# The Python that has the peers.
TAFFETA_PEERS ?= $(abspath .venv-peers/bin/python)

bench:
	@tools/setup.sh
	TAFFETA_MACHINE=this $(CARGO) bench --workspace
	@if [ -x "$(TAFFETA_PEERS)" ]; then $(MAKE) --no-print-directory race-peers; else echo "no peers to race with: make peers"; fi

# ONLY=sgemm races those whose name has it in it, SCHEDULE=auto what rules choose in the place of the examples' own
# schedules.
race-peers: race-sparse
	@$(CARGO) build --release --quiet
	TAFFETA=$${CARGO_TARGET_DIR:-$(abspath target)}/release/taffeta $(TAFFETA_PEERS) benches/peers/race.py --only "$(ONLY)" --schedule "$(SCHEDULE)"

# What rules choose against the examples' own schedules; no peers are needed, but their Python with NumPy.
race-schedules:
	@$(CARGO) build --release --quiet
	TAFFETA=$${CARGO_TARGET_DIR:-$(abspath target)}/release/taffeta $(TAFFETA_PEERS) benches/peers/race.py --only "$(ONLY)" --schedule auto --own

# Structured tensors: every published matrix, graph and tensor, on one thread and on two.
race-sparse:
	@$(CARGO) build --release --quiet
	@for threads in 1 2; do \
	    TAFFETA=$${CARGO_TARGET_DIR:-$(abspath target)}/release/taffeta $(TAFFETA_PEERS) -W ignore \
	        benches/peers/sparse.py --threads $$threads --only "$(ONLY)" || exit 1; \
	done

# PolyBench by what rules choose against its C code, by gcc and by clang with Polly: SUITE=~/polybench-c-4.2.1; and
# against what Pluto made of it, with PLUTO=~/folder-of-KERNEL.pluto.c
race-polybench:
	@$(CARGO) build --release --quiet
	TAFFETA=$${CARGO_TARGET_DIR:-$(abspath target)}/release/taffeta \
	    python3 benches/peers/polybench.py $(SUITE) --only "$(ONLY)" $(if $(PLUTO),--pluto $(PLUTO))

peers:
	python3 -m venv .venv-peers
	.venv-peers/bin/pip install --quiet numpy scipy torch "jax[cpu]" mkl opencv-python-headless \
	    python-graphblas suitesparse-graphblas

book:
	@tools/book.sh

gallery:
	@tools/setup.sh
	@$(CARGO) build --quiet
	@tools/gallery.sh $${CARGO_TARGET_DIR:-target}/debug/taffeta

fuzz:
	@tools/setup.sh
	OMP_WAIT_POLICY=passive TAFFETA_FUZZ_MINUTES=$(MINUTES) TAFFETA_FUZZ_SEED=$(SEED) $(CARGO) test --quiet -p taffeta --test campaign

clean:
	$(CARGO) clean
