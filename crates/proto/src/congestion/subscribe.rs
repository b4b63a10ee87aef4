//! The subscription control of a session, with a circuit breaker.

use super::breaker::CircuitBreaker;
use super::build::build;
use super::control::{FirstChannel, SubscriptionControl, SubscriptionError, SubscriptionLimits};
use fontana_wire::CongestionControl;

/// Makes the subscription control of a session from its head. The control takes over a subscription
/// to channel 0, and asks only for other channels.
///
/// # Errors
/// [`SubscriptionError`] if the limits are below the lowest level of the session.
pub fn subscribe(
    control: &CongestionControl,
    limits: &SubscriptionLimits,
    first: FirstChannel,
) -> Result<Box<dyn SubscriptionControl>, SubscriptionError> {
    let inner = build(control, limits, first)?;
    // A session of constant rate on one channel has no lower level. Its operator controls the
    // network, and receivers must tolerate any loss there.
    let answered_for = *control == CongestionControl::FixedRate;
    let Some(breaker) = limits.breaker.filter(|_| !answered_for) else { return Ok(inner) };
    let scheme = control.clone();
    Ok(Box::new(CircuitBreaker::new(scheme, *limits, breaker, inner, first.now)))
}
