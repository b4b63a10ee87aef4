//! Experiments between hosts: `fontana-lab run ID --real`.

use crate::bench;
use std::process::Command;

#[test]
fn a_real_run_without_the_rights_of_root_is_6_and_says_what_to_do() {
    if !bench::available() {
        return;
    }
    let output = Command::new("setpriv")
        .args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"])
        .arg(fontana_testing::program("fontana-lab"))
        .args("run fc.fig16 --real --quick".split(' '))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("only for root"), "{said}");
    let way_out = "unshare --map-root-user --net fontana-lab run fc.fig16 --real";
    assert!(said.contains(way_out), "{said}");
}
