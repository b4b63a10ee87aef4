//! The outcome of a session.

/// The outcome of a session. If several apply, [`Outcome::worst`] selects the one that is reported.
///
/// The list is complete: a program can map each outcome to a message or an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is complete and verified on this host.
    Complete,
    /// The options or a configuration are invalid.
    Usage,
    /// Incomplete when the time was up; what was received is saved.
    Incomplete,
    /// What was received is not what was announced.
    VerificationFailed,
    /// The disk is full, or input and output failed.
    Io,
    /// A path was refused, or a permission is missing.
    Refused,
    /// A key or an authentication failed.
    Authentication,
    /// The source changed while it was being sent.
    SourceChanged,
    /// A sender that collects reports: not all expected receivers are known to be complete.
    ReceiversIncomplete,
    /// Nothing was received.
    NothingReceived,
    /// A defect of the program, which panicked; what was received is saved.
    InternalError,
    /// Interrupted; what was received is saved.
    Interrupted,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 12] = [
        Self::Complete,
        Self::Usage,
        Self::Incomplete,
        Self::VerificationFailed,
        Self::Io,
        Self::Refused,
        Self::Authentication,
        Self::SourceChanged,
        Self::ReceiversIncomplete,
        Self::InternalError,
        Self::NothingReceived,
        Self::Interrupted,
    ];

    /// The outcome that is reported for both.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let rank = |outcome| match outcome {
            Self::InternalError => 0,
            Self::Authentication => 1,
            Self::VerificationFailed => 2,
            Self::Io => 3,
            Self::Refused => 4,
            Self::SourceChanged => 5,
            Self::Usage => 6,
            Self::ReceiversIncomplete => 7,
            Self::Interrupted => 8,
            Self::Incomplete => 9,
            Self::NothingReceived => 10,
            Self::Complete => 11,
        };
        if rank(self) <= rank(other) { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn the_first_that_applies_wins() {
        let order = [
            Outcome::InternalError,
            Outcome::Authentication,
            Outcome::VerificationFailed,
            Outcome::Io,
            Outcome::Refused,
            Outcome::SourceChanged,
            Outcome::Usage,
            Outcome::ReceiversIncomplete,
            Outcome::Interrupted,
            Outcome::Incomplete,
            Outcome::NothingReceived,
            Outcome::Complete,
        ];
        for (place, worse) in order.into_iter().enumerate() {
            for better in &order[place..] {
                assert_eq!(worse.worst(*better), worse);
                assert_eq!(better.worst(worse), worse);
            }
        }
    }
}
