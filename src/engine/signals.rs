//! Signals of an engine. They only set flags and wake it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::Signals;
#[cfg(windows)]
pub use windows::Signals;
