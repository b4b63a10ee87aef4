//! Sizes that grow only on purpose.

/// `.ci/ratchet`: lines of a subject, a number and a reason, with tabs between them.
const FILE: &str = include_str!("../../../.ci/ratchet");

/// The rows of `.ci/ratchet`: subject and number.
///
/// # Panics
/// If a line is no row.
#[must_use]
pub fn ratchets() -> Vec<(&'static str, u64)> {
    let rows = FILE.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let mut fields = line.split('\t');
        let (subject, number, reason) = (fields.next()?, fields.next()?, fields.next()?);
        (!reason.is_empty() && fields.next().is_none()).then_some((subject, number.parse().ok()?))
    };
    rows.map(|line| row(line).unwrap_or_else(|| panic!(".ci/ratchet: {line:?}"))).collect()
}

/// What is wrong with the row of a subject, if the subject measures so much: it must be at most the
/// number, and at least 99 % of it.
#[must_use]
pub fn ratchet(subject: &str, measured: u64) -> Option<String> {
    let rows = ratchets();
    let Some(&(_, number)) = rows.iter().find(|row| row.0 == subject) else {
        return Some(format!("{subject}: {measured}, and .ci/ratchet has no row for it"));
    };
    if measured > number {
        let way_out = "make it smaller, or raise the number and say in its reason why";
        return Some(format!("{subject}: {measured}, more than {number}: {way_out}"));
    }
    let fell = measured < number - number / 100;
    fell.then(|| format!("{subject}: {measured}, less than 99 % of {number}: lower the number"))
}
