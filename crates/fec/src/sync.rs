//! Locks: of the standard library, or, without it, locks that spin.

#[cfg(not(any(feature = "std", feature = "no_std")))]
compile_error!("fontana-fec needs the feature `std`, or without it `no_std`");

#[cfg(feature = "std")]
pub(crate) use std::sync::OnceLock;

/// A lock that ignores the panic of an earlier holder.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

#[cfg(feature = "std")]
type Mutex<T> = std::sync::Mutex<T>;
#[cfg(feature = "std")]
type Guard<'l, T> = std::sync::MutexGuard<'l, T>;

#[cfg(not(feature = "std"))]
type Mutex<T> = spin::Mutex<T>;
#[cfg(not(feature = "std"))]
type Guard<'l, T> = spin::MutexGuard<'l, T>;

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until no other thread holds it.
    #[cfg(feature = "std")]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until no other thread holds it.
    #[cfg(not(feature = "std"))]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock()
    }
}

/// A value that is made once.
#[cfg(not(feature = "std"))]
pub(crate) struct OnceLock<T>(spin::Once<T>);

#[cfg(not(feature = "std"))]
impl<T> OnceLock<T> {
    pub(crate) const fn new() -> Self {
        Self(spin::Once::new())
    }

    /// The value, made at the first call.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.call_once(make)
    }
}

#[cfg(not(feature = "std"))]
impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        Self(spin::Once::initialized(value))
    }
}
