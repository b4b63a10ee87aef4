//! `df.download`: a whole download, reception and decoding.

use super::carousel::CarouselCode;
use super::loss::LossProcess;
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use serde::{Deserialize, Serialize};

/// 16 MB in packets of 1 KB.
const SOURCE_SYMBOLS: u32 = 16_000;

/// Packets of 1 KB at 1 Mbit/s.
const PACKETS_PER_SECOND: f64 = 125.0;

/// Tornado Z, and an interleaved code of as many blocks as `df.table5` allows: the printed 212
/// means 17, of 941 packets.
const CODES: [CarouselCode; 2] = [CarouselCode::Tornado, CarouselCode::Interleaved(941)];
const BLOCKS: f64 = 17.0;

const LOSS: f64 = 0.5;

/// Time in which half of the packets of 1 Mbit/s are as many as the file has: "just over 4
/// minutes".
const SECONDS: f64 = 256.0;

const SECTION: &str = "section VI-A";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.download",
    paper: "digital fountain, section VI-A",
    what: "16 MB at 1 Mbit/s and a loss of 50 %: seconds of reception from a carousel at stretch 2, \
           mean of 400 receivers (quick: 100), and seconds of decoding by the paper's rule for its \
           own machine. What decoding takes on this one, as a ratio, is the claim `interleaved` of \
           df.table4.",
    sweep: &SweepOf {
        name: "df.download",
        kind: Kind::Counted,
        cases: |_| CODES.len() as u32,
        run,
    },
    claims: || {
        let reception = |code: CarouselCode| {
            move |rows: &[Download]| {
                let of_code = rows.iter().find(|row| row.code == code.name());
                of_code.map_or(f64::NAN.into(), Download::reception)
            }
        };
        let text = "seconds until enough packets have arrived; the first 16 000 have after 256 s";
        let minutes = || quote("It takes just over 4 minutes to receive enough packets", SECTION);
        vec![
            Claim::printed(
                "tornado",
                format!("Tornado Z: {text}"),
                minutes(),
                Target::Equal(SECONDS),
                30.0,
                reception(CarouselCode::Tornado),
            ),
            Claim::printed(
                "interleaved",
                format!("interleaved: {text}"),
                minutes(),
                Target::Equal(SECONDS),
                30.0,
                reception(CODES[1]),
            ),
            Claim::identity(
                "decoding",
                "the interleaved code is then decoded for almost 8 minutes: K^2/(31 250 B), with \
                 the 17 blocks of table V",
                Target::Equal(481.0),
                1.0,
                |_: &[Download]| f64::from(SOURCE_SYMBOLS).powi(2) / (31_250.0 * BLOCKS),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

/// The mean time of reception with a code.
#[derive(Serialize, Deserialize)]
struct Download {
    code: String,
    reception_seconds: f64,
    /// Its standard error.
    error: f64,
}

impl Download {
    fn reception(&self) -> Estimate {
        Estimate { value: self.reception_seconds, error: self.error }
    }
}

fn run(case: &Case) -> Vec<Download> {
    let Some(&code) = CODES.get(case.index as usize) else { return Vec::new() };
    let mut random = case.stream(0);
    let mut carousel = code.carousel(SOURCE_SYMBOLS, &mut random);
    let receivers = case.scale.pick(100, 400);
    let sent: Vec<f64> = (0..receivers)
        .map(|_| carousel.receive(&LossProcess::random(LOSS), &mut random).sent.into())
        .collect();
    let Estimate { value, error } = Estimate::mean(&sent).times(1.0 / PACKETS_PER_SECOND);
    vec![Download { code: code.name(), reception_seconds: value, error }]
}
