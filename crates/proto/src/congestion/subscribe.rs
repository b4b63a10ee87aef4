//! The subscription control of a session, with a circuit breaker.

use super::breaker::CircuitBreaker;
use super::build::build;
use super::control::{FirstChannel, SubscriptionControl, SubscriptionError, SubscriptionLimits};
use fontana_wire::CongestionControl;

/// The control that follows from a session's head. It takes over a subscription to channel 0, which
/// it does not ask for again, and to no other.
///
/// # Errors
/// [`SubscriptionError`] if the limits are below the lowest level of the session.
pub fn subscribe(
    control: &CongestionControl,
    limits: &SubscriptionLimits,
    first: FirstChannel,
) -> Result<Box<dyn SubscriptionControl>, SubscriptionError> {
    let inner = build(control, limits, first)?;
    // At a constant rate on one channel there is nothing to come down to; the operator answers for it
    // on a network of his own, and receivers are to bear any loss there.
    let answered_for = *control == CongestionControl::FixedRate;
    let Some(breaker) = limits.breaker.filter(|_| !answered_for) else { return Ok(inner) };
    let scheme = control.clone();
    Ok(Box::new(CircuitBreaker::new(scheme, *limits, breaker, inner, first.now)))
}
