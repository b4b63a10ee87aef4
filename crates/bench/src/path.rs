//! Processor time of a packet, by the stages of the path from a file to a file: reading and
//! encoding, deciding and writing headers, the seals of a group key, sockets, and placing, hashing
//! and recovering. Each stage runs the code that a transfer runs, alone and on one thread.

use std::path::PathBuf;
use tempfile::TempDir;

mod content;
mod encode;
mod header;
mod row;
mod seal;
mod socket;
mod stage;
mod store;

use content::PathContent;
use row::{HEADING, PathRow, sums};
use stage::Stage;

pub(crate) const USAGE: &str = "\
usage: fontana-bench path [--stage NAME,..] [--smoke] [--json] [--directory DIR]

  path    processor time of a packet in each stage: socket, header, seal, encode, store";

/// Bytes of the file, and of that of `--smoke`.
const SIZE: u64 = 64 << 20;
const SMOKE_SIZE: u64 = 2 << 20;

/// What is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct PathPlan {
    stages: Vec<Stage>,
    /// Bytes of the file.
    size: u64,
    /// Where the files are, in a directory of their own.
    directory: PathBuf,
}

impl PathPlan {
    /// Parses what follows `path`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan =
            Self { stages: Stage::ALL.to_vec(), size: SIZE, directory: "/dev/shm".into() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--smoke" => plan.size = SMOKE_SIZE,
                "--stage" => {
                    let names = arguments.next().ok_or("--stage needs a value")?;
                    plan.stages = names.split(',').map(Stage::named).collect::<Result<_, _>>()?;
                }
                "--directory" => {
                    plan.directory = arguments.next().ok_or("--directory needs a value")?.into();
                }
                other => return Err(format!("what is {other}?")),
            }
        }
        Ok(plan)
    }
}

/// Measures the stages, and prints a line for each part of them.
///
/// # Errors
/// What is missing, or failed.
pub(crate) fn run(plan: &PathPlan, json: bool) -> Result<(), String> {
    let rows = measure(plan)?;
    if !json {
        println!("{HEADING}");
    }
    for row in &rows {
        println!("{}", if json { row.json() } else { row.line() });
    }
    Ok(())
}

fn measure(plan: &PathPlan) -> Result<Vec<PathRow>, String> {
    let directory = TempDir::with_prefix_in("fontana-path-", &plan.directory)
        .map_err(|error| format!("{}: {error}", plan.directory.display()))?;
    let content = PathContent::new(directory.path(), plan.size);
    let mut rows = Vec::new();
    for stage in &plan.stages {
        rows.extend(match stage {
            Stage::Socket => socket::measure(&content)?,
            Stage::Header => header::measure(&content)?,
            Stage::Seal => seal::measure(&content),
            Stage::Encode => encode::measure(&content),
            Stage::Store => store::measure(&content),
        });
    }
    rows.extend(sums(&rows));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    // `cargo bench` compiles this without a harness: then there are no tests to use it.
    #[allow(unused_imports)]
    use super::*;

    #[allow(dead_code)]
    fn parse(words: &str) -> Result<PathPlan, String> {
        PathPlan::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn each_part_of_the_path_takes_time_in_the_smoke_form() {
        let rows = measure(&parse("--smoke").unwrap()).unwrap();
        for stage in Stage::ALL {
            assert!(rows.iter().any(|row| row.stage == Some(stage)), "{}", stage.name());
        }
        for row in &rows {
            assert!(row.us_per_packet > 0.0, "{}", row.line());
            let line: serde_json::Value = serde_json::from_str(&row.json()).unwrap();
            assert!(line["part"].is_string() && line["us_per_packet"].is_f64());
        }
        assert_eq!(rows.iter().filter(|row| row.stage.is_none()).count(), 4, "the sums");
    }

    #[test]
    fn stages_are_selected_by_their_names() {
        let whole = parse("").unwrap();
        assert_eq!((whole.stages, whole.size), (Stage::ALL.to_vec(), SIZE));
        let part = parse("--stage store,socket --smoke").unwrap();
        assert_eq!((part.stages, part.size), (vec![Stage::Store, Stage::Socket], SMOKE_SIZE));
        assert_eq!(
            parse("--stage x").unwrap_err(),
            "x is none of socket, header, seal, encode, store"
        );
        assert_eq!(parse("--stage").unwrap_err(), "--stage needs a value");
        assert_eq!(parse("--fast").unwrap_err(), "what is --fast?");
    }
}
