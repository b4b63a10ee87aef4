//! How a run ended, as a number that scripts can rely on.

use fontana_proto::Category;

/// Exit codes of `fontana`: part of its interface. Where several apply, the first in the order of
/// [`Verdict::worst`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// Everything complete and verified on this host.
    Complete = 0,
    /// The command line or a configuration makes no sense.
    Usage = 2,
    /// Incomplete when the time was up; what was received is kept.
    Incomplete = 3,
    /// What was received is not what was promised.
    VerificationFailed = 4,
    /// Disk full, or input and output failed.
    Io = 5,
    /// A path or a permission was refused.
    Refused = 6,
    /// A key or an authentication failed.
    Authentication = 7,
    /// The source changed while it was being sent.
    SourceChanged = 8,
    /// Nothing was heard.
    NothingHeard = 75,
    /// Interrupted; what was received is kept.
    Interrupted = 130,
}

impl Verdict {
    /// The exit code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The one of the two that is reported.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let rank = |verdict| match verdict {
            Self::Authentication => 0,
            Self::VerificationFailed => 1,
            Self::Io => 2,
            Self::Refused => 3,
            Self::SourceChanged => 4,
            Self::Usage => 5,
            Self::Interrupted => 6,
            Self::Incomplete => 7,
            Self::NothingHeard => 8,
            Self::Complete => 9,
        };
        if rank(self) <= rank(other) { self } else { other }
    }
}

impl From<Category> for Verdict {
    fn from(category: Category) -> Self {
        match category {
            Category::DiskFull | Category::Io => Self::Io,
            // A description that fits no object: the sender's, where it is not a defect of ours.
            Category::Geometry => Self::VerificationFailed,
            Category::Refused => Self::Refused,
            Category::SourceChanged => Self::SourceChanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_applies_wins() {
        let order = [7, 4, 5, 6, 8, 3, 75, 0];
        let all = [
            Verdict::Complete,
            Verdict::Incomplete,
            Verdict::VerificationFailed,
            Verdict::Io,
            Verdict::Refused,
            Verdict::Authentication,
            Verdict::SourceChanged,
            Verdict::NothingHeard,
        ];
        let place = |v: Verdict| order.iter().position(|&c| c == v.code());
        for a in all {
            for b in all {
                let expected = if place(a) <= place(b) { a } else { b };
                assert_eq!(a.worst(b), expected);
            }
        }
    }
}
