# Commands of development: `just` lists them. CONTRIBUTING.md says when each is needed.

_list:
    @just --list

# Build the program
build:
    cargo build --release --locked

# Run all tests but the long ones
test *arguments:
    cargo tests --locked {{ arguments }}

# Format, then lint as the gate does
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Check the language, links and structure of documents and sources
prose:
    cargo test --locked -p fontana-cli --test house

# Build the documentation of the crates, and docs/ as a book
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
    mdbook build

# Compute the page docs/lab.md again
lab:
    cargo run --release --locked -p fontana-lab -- run all --quick --out docs

# Run the gate
gate:
    .ci/run

# Run checks that are too long for the gate, or list them
long *names:
    .ci/long {{ names }}
