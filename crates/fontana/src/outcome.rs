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
    /// Nothing was received.
    NothingReceived,
    /// Interrupted; what was received is saved.
    Interrupted,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 10] = [
        Self::Complete,
        Self::Usage,
        Self::Incomplete,
        Self::VerificationFailed,
        Self::Io,
        Self::Refused,
        Self::Authentication,
        Self::SourceChanged,
        Self::NothingReceived,
        Self::Interrupted,
    ];

    /// The outcome that is reported for both.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let rank = |outcome| match outcome {
            Self::Authentication => 0,
            Self::VerificationFailed => 1,
            Self::Io => 2,
            Self::Refused => 3,
            Self::SourceChanged => 4,
            Self::Usage => 5,
            Self::Interrupted => 6,
            Self::Incomplete => 7,
            Self::NothingReceived => 8,
            Self::Complete => 9,
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
            Outcome::Authentication,
            Outcome::VerificationFailed,
            Outcome::Io,
            Outcome::Refused,
            Outcome::SourceChanged,
            Outcome::Usage,
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
