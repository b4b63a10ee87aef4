//! How this program is used.

/// The commands and their options.
pub(crate) const USAGE: &str = "\
usage: cargo xtask package [--target TARGET]... [--out DIR] [--no-rpm] [--sign KEY]
       cargo xtask wheel [--out DIR]

`package` builds the program, and makes packages of it in DIR (target/packages): a tar archive, a
Debian package, an RPM package and an OCI image for each target, and SHA256SUMS. Those of an earlier
run are deleted, and nothing else there.

  --target TARGET  x86_64-unknown-linux-musl (default), aarch64-unknown-linux-musl
  --no-rpm         make no RPM package, where there is no rpmbuild
  --sign KEY       sign SHA256SUMS with this secret key of minisign: SHA256SUMS.minisig

`wheel` makes wheels for Python in DIR (target/wheel), which contain the program, one for glibc and
one for musl: with maturin and ziglang, of PyPI.

Two runs on one state of the repository make the same bytes. SOURCE_DATE_EPOCH is the time of all
files: that of the last commit if it is not set.";
