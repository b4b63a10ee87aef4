//! The systems that packages are for.

use crate::command::Outcome;

/// A system. Programs for it need no library: musl is linked statically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    X86_64,
    Aarch64,
}

impl Target {
    const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    pub(super) fn named(triple: &str) -> Outcome<Self> {
        let found = Self::ALL.into_iter().find(|target| target.triple() == triple);
        let names = Self::ALL.map(Self::triple).join(", ");
        found.ok_or_else(|| format!("there are no packages for {triple}, but for {names}"))
    }

    /// The target whose programs run here.
    pub(super) fn of_this_host() -> Outcome<Self> {
        Self::named(&format!("{}-unknown-linux-musl", std::env::consts::ARCH))
    }

    /// Rust's name of it.
    pub(super) const fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Its name in file names.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux",
            Self::Aarch64 => "aarch64-linux",
        }
    }

    /// Debian's and OCI's name of the processor.
    pub(super) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// RPM's name of the processor.
    pub(super) const fn rpm(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The C compiler for it, which links as well, by Debian's names.
    pub(super) const fn compiler(self) -> &'static str {
        match self {
            Self::X86_64 => "musl-gcc",
            Self::Aarch64 => "aarch64-linux-gnu-gcc",
        }
    }

    /// What has this compiler.
    pub(super) const fn compiler_source(self) -> &'static str {
        match self {
            Self::X86_64 => "Debian's musl-tools",
            Self::Aarch64 => "Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross",
        }
    }
}
