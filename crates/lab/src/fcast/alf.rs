//! `fc.alf`: the cost of self-describing fragments of a file (sections 4.1 and 6.1).

use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use serde::{Deserialize, Serialize};

/// Figure 8: a fragment's metadata, as far as they are shown, and the two lengths and the checksum
/// around them, of 4 bytes each.
const SHOWN: &str = "Content-Base: \"/tmp/\"\r\n\
                     Content-Location: \"big_file.ps\"\r\n\
                     Content-Length: 5623021\r\n\
                     Content-Fragment: 12/86\r\n\
                     Content-Offset: 786432\r\n";
const FRAMING: u32 = 12;

/// "The default 64 kilobyte fragment size", and the file of figure 8.
const FRAGMENT: u32 = 65_536;
const FILE: u32 = 5_623_021;

/// The trailer, as the text gives it.
const TRAILER: [u32; 2] = [140, 170];

/// The file of the experiments, in objects of one block: 32 symbols of 512 bytes.
const MEASURED_FILE: u32 = 1_042_142;
const BLOCK: u32 = 32 * 512;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fc.alf",
    paper: "FCAST, sections 4.1 and 6.1",
    what: "What a trailer of its own adds to each fragment of a file; and whether the fragments of \
           figure 8 and of the experiments are the fragments that these files have.",
    sweep: &SweepOf { name: "fc.alf", kind: Kind::Counted, cases: |_| 1, run },
    claims: || {
        let value = |what: &'static str| {
            move |rows: &[Number]| rows.number(|row| row.what == what, |row| row.value)
        };
        let mut claims: Vec<Claim> = [("short", "shortest"), ("long", "longest")]
            .into_iter()
            .map(|(name, which)| {
                let what =
                    if name == "short" { "shortest trailer (%)" } else { "longest trailer (%)" };
                Claim::identity(
                    name,
                    format!("0.2 % with fragments of 64 kilobytes: with the {which} trailer"),
                    Target::Equal(0.2),
                    0.1,
                    value(what),
                )
            })
            .collect();
        claims.extend([
            Claim::identity(
                "figure8",
                "a trailer has 140 to 170 bytes: that of figure 8, as far as it is shown",
                Target::AtMost(170.0),
                0.0,
                value("bytes of the trailer of figure 8"),
            ),
            Claim::identity(
                "fragments",
                "5623021 bytes are 86 fragments",
                Target::Equal(86.0),
                0.0,
                value("fragments of figure 8"),
            ),
            Claim::identity(
                "offset",
                "the 12th of them is at 786432",
                Target::Equal(786_432.0),
                0.0,
                value("offset of its fragment 12"),
            ),
            Claim::identity(
                "objects",
                "1042142 bytes are 64 objects of one block",
                Target::Equal(64.0),
                0.0,
                value("objects of the experiments"),
            ),
        ]);
        claims
    },
    exhibits: |_| Vec::new(),
};

/// A number about fragments.
#[derive(Serialize, Deserialize)]
struct Number {
    what: String,
    value: f64,
}

fn run(_: &Case) -> Vec<Number> {
    let percent = |bytes: u32| 100.0 * f64::from(bytes) / f64::from(FRAGMENT);
    [
        ("shortest trailer (%)", percent(TRAILER[0])),
        ("longest trailer (%)", percent(TRAILER[1])),
        ("bytes of the trailer of figure 8", f64::from(SHOWN.len() as u32 + FRAMING)),
        ("fragments of figure 8", FILE.div_ceil(FRAGMENT).into()),
        ("offset of its fragment 12", f64::from(12 * FRAGMENT)),
        ("objects of the experiments", MEASURED_FILE.div_ceil(BLOCK).into()),
    ]
    .map(|(what, value)| Number { what: what.into(), value })
    .into()
}
