//! Rows of single cases in a directory: what a run of a slice leaves, whenever it ends.

use crate::csv::{self, CaseHeading};
use crate::experiment::Experiment;
use crate::identity::RunIdentity;
use crate::plan::PlannedCase;
use crate::registry;
use crate::table::CaseRow;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The folder of a results directory that has the files of cases.
const FOLDER: &str = "cases";
/// The file of the folder that describes the run.
const RUN_FILE: &str = "run";

/// Files of rows, one for each case, and one (`run`) with the identity of the run and its
/// experiments. Every file gets its name when it is complete, so that a process that is killed
/// leaves no part of one. Any number of processes may write to one store.
#[derive(Clone, Debug)]
pub struct CaseStore {
    folder: PathBuf,
    identity: RunIdentity,
    experiments: Vec<&'static Experiment>,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory cannot be read.
    #[error("cannot read {path:?}: {error}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path:?}: {error}")]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file that no run has written.
    #[error("{path:?} is not what `fontana-lab run` writes: line {line} does not fit")]
    Malformed {
        /// Which one.
        path: PathBuf,
        /// The first invalid line, from 1.
        line: usize,
    },
    /// Rows of an experiment that is not registered.
    #[error("{path:?} has rows of {id:?}, which this version does not know")]
    Unknown {
        /// Which file.
        path: PathBuf,
        /// The experiment.
        id: String,
    },
    /// Rows of another run.
    #[error("{path:?} is of {found}, not of {expected}")]
    OtherRun {
        /// Which file.
        path: PathBuf,
        /// What it states.
        found: String,
        /// What the run or the other files state.
        expected: String,
    },
}

impl CaseStore {
    /// The store of a run in a results directory. Creates it if the directory has none.
    ///
    /// # Errors
    /// [`StoreError::OtherRun`] if the directory has a store of another run.
    pub fn create(
        directory: &Path,
        identity: RunIdentity,
        experiments: Vec<&'static Experiment>,
    ) -> Result<Self, StoreError> {
        let folder = directory.join(FOLDER);
        let store = Self { folder, identity, experiments };
        match Self::open(directory)? {
            Some(found) => store.check_same_run(&found)?,
            None => {
                let path = store.folder.join(RUN_FILE);
                let write = |error| StoreError::Write { path: path.clone(), error };
                std::fs::create_dir_all(&store.folder).map_err(write)?;
                replace(&path, &store.description()).map_err(write)?;
            }
        }
        Ok(store)
    }

    /// The store of a results directory; `None` if it has none.
    ///
    /// # Errors
    /// [`StoreError`] if its description cannot be read.
    pub fn open(directory: &Path) -> Result<Option<Self>, StoreError> {
        let folder = directory.join(FOLDER);
        let path = folder.join(RUN_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::Read { path, error }),
        };
        let mut lines = text.lines();
        let Some(identity) = lines.next().and_then(csv::run_heading) else {
            return Err(StoreError::Malformed { path, line: 1 });
        };
        let mut experiments = Vec::new();
        for id in lines {
            match registry::find(id) {
                Some(experiment) => experiments.push(experiment),
                None => return Err(StoreError::Unknown { path, id: id.to_owned() }),
            }
        }
        Ok(Some(Self { folder, identity, experiments }))
    }

    /// What determines the rows.
    pub fn identity(&self) -> &RunIdentity {
        &self.identity
    }

    /// The experiments of the run, whether the store has rows of them or not.
    pub fn experiments(&self) -> &[&'static Experiment] {
        &self.experiments
    }

    /// Checks that another store is of the same experiments, seed, scale and commit.
    ///
    /// # Errors
    /// [`StoreError::OtherRun`].
    pub(crate) fn check_same_run(&self, other: &Self) -> Result<(), StoreError> {
        if self.description() == other.description() {
            return Ok(());
        }
        let path = other.folder.join(RUN_FILE);
        Err(StoreError::OtherRun { path, found: other.summary(), expected: self.summary() })
    }

    /// Whether the store has the rows of a case.
    pub fn has(&self, case: &PlannedCase) -> bool {
        self.path(case).exists()
    }

    /// Writes the rows of a case.
    pub(crate) fn write(&self, case: &PlannedCase, rows: &[CaseRow]) -> Result<(), StoreError> {
        let heading =
            CaseHeading { sweep: &case.word(), case: case.index, identity: &self.identity };
        let text = csv::write_case(&heading, case.sweep.columns(), rows);
        let path = self.path(case);
        replace(&path, &text).map_err(|error| StoreError::Write { path, error })
    }

    /// The rows of a case; `None` if the store has none.
    pub(crate) fn read(&self, case: &PlannedCase) -> Result<Option<Vec<CaseRow>>, StoreError> {
        let path = self.path(case);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::Read { path, error }),
        };
        let Some((name, index, identity)) = csv::case_heading(&text) else {
            return Err(StoreError::Malformed { path, line: 1 });
        };
        if identity != self.identity {
            let (found, expected) = (identity.to_string(), self.identity.to_string());
            return Err(StoreError::OtherRun { path, found, expected });
        }
        if name != case.word() || index != case.index {
            return Err(StoreError::Malformed { path, line: 1 });
        }
        let rows = match csv::rows(&text, case.sweep.columns()) {
            Ok(rows) => rows,
            Err(line) => return Err(StoreError::Malformed { path, line }),
        };
        match rows.iter().position(|row| row.case != case.index) {
            Some(row) => Err(StoreError::Malformed { path, line: row + 3 }),
            None => Ok(Some(rows)),
        }
    }

    fn path(&self, case: &PlannedCase) -> PathBuf {
        self.folder.join(format!("{}.{}.csv", case.word(), case.index))
    }

    /// The text of the file `run`.
    fn description(&self) -> String {
        let mut text = csv::write_run_heading(&self.identity);
        for experiment in &self.experiments {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}", experiment.id);
        }
        text
    }

    /// The run in a message.
    fn summary(&self) -> String {
        let ids: Vec<&str> = self.experiments.iter().map(|experiment| experiment.id).collect();
        let of = match ids.as_slice() {
            ids if ids.len() == registry::EXPERIMENTS.len() => "all experiments".to_owned(),
            [first, .., last] => format!("{} experiments, {first} to {last}", ids.len()),
            ids => ids.join(" "),
        };
        format!("a run of {of} ({})", self.identity)
    }
}

/// Writes a file under a temporary name, and renames it when its content is on the disk.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new.").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    // Other users may merge what this one has computed.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
