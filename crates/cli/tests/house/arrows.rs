//! Tests that crates depend only on those that ARCHITECTURE.md allows. A new dependency is added to
//! this table with a reason.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// A crate, and the crates of this workspace that it may use. Everything below `fontana-store` is
/// the same on a machine and in a simulation.
const ALLOWED: &[(&str, &[&str])] = &[
    ("fontana-fec", &[]),
    ("fontana-wire", &["fontana-fec"]),
    ("fontana-proto", &["fontana-fec", "fontana-wire"]),
    ("fontana-sim", &["fontana-proto", "fontana-wire", "fontana-fec"]),
    ("fontana-net", &["fontana-proto", "fontana-wire"]),
    ("fontana-store", &["fontana-proto", "fontana-wire", "fontana-fec"]),
    ("fontana", &["fontana-net", "fontana-store", "fontana-proto", "fontana-wire", "fontana-fec"]),
    ("fontana-console", &["fontana"]),
    // Experiments run on ids, on simulated networks where there is one. An emulator is a simulated
    // link between real interfaces; real runs are over sockets, and one is of the library.
    (
        "fontana-lab",
        &[
            "fontana",
            "fontana-console",
            "fontana-sim",
            "fontana-net",
            "fontana-proto",
            "fontana-wire",
            "fontana-fec",
        ],
    ),
    ("fontana-cli", &["fontana", "fontana-console"]),
    // Peers run between network namespaces. Each stage of a transfer is measured alone.
    (
        "fontana-bench",
        &[
            "fontana",
            "fontana-fec",
            "fontana-net",
            "fontana-proto",
            "fontana-store",
            "fontana-wire",
        ],
    ),
    ("fontana-testing", &[]),
    ("fontana-bindings", &["fontana", "fontana-console"]),
    ("fontana-capi", &["fontana", "fontana-bindings", "fontana-console"]),
    ("fontana-python", &["fontana", "fontana-bindings", "fontana-fec"]),
    ("fontana-xtask", &[]),
];

/// Compares our codes and transfers with those of others. No shipped crate may depend on it.
const NEVER_SHIPPED: &str = "fontana-bench";

/// Crates that only tests may use: ours with bytes for tests, and others that panic on malformed
/// input or serve for comparison.
const NEVER_LINKED: &[&str] = &["fontana-testing", "raptorq", "flute", "reed-solomon-simd"];

fn normal_dependencies() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let normal = dependencies.iter().filter(|d| d["kind"].is_null()).map(name);
            (name(package), normal.collect())
        })
        .collect()
}

#[test]
fn every_arrow_is_in_the_plan() {
    let found = normal_dependencies();
    let planned: Vec<_> = ALLOWED.iter().map(|(name, _)| (*name).to_owned()).collect();
    for name in found.keys() {
        assert!(planned.contains(name), "{name} has no row in ALLOWED");
    }
    for (name, allowed) in ALLOWED {
        for dependency in found[*name].iter().filter(|d| d.starts_with("fontana")) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
        assert!(
            !found[*name].iter().any(|d| d == NEVER_SHIPPED),
            "{name} would ship the benchmark"
        );
    }
}

#[test]
fn crates_for_tests_and_comparison_are_never_linked() {
    let shipped = normal_dependencies().into_iter().filter(|(name, _)| name != NEVER_SHIPPED);
    for (name, dependencies) in shipped {
        for never in NEVER_LINKED {
            assert!(!dependencies.iter().any(|d| d == never), "{name} links {never}");
        }
    }
}
