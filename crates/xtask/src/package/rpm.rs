//! RPM packages.

use super::{DESCRIPTION, Package, SUMMARY};
use crate::command::{Outcome, output, run, write};

/// Makes `fontana-VERSION-1.ARCHITECTURE.rpm`.
///
/// # Errors
/// rpmbuild fails.
pub(super) fn make(package: &Package<'_>) -> Outcome<()> {
    let (version, architecture) = (&package.release.version, package.target.rpm());
    let listed = "find usr -type f | LC_ALL=C sort";
    let files = output(package.command("sh").current_dir(&package.files).args(["-c", listed]))?;
    let files: String = files.lines().map(|path| format!("/{path}\n")).collect();
    let root = package.files.display();
    // The program is static and stripped: nothing is to be derived from it or done to it.
    let spec = format!(
        "%global debug_package %{{nil}}\n%global __os_install_post %{{nil}}\n\
         %global _build_id_links none\n%global _binary_payload w9.gzdio\n\
         %global use_source_date_epoch_as_buildtime 1\n\
         %global clamp_mtime_to_source_date_epoch 1\n%global _buildhost localhost\n\
         Name: fontana\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\n\
         License: (MIT OR Apache-2.0) AND others, see THIRD-PARTY-LICENSES.txt\n\
         Recommends: ca-certificates\nAutoReqProv: no\n\n%description\n{DESCRIPTION}\n\n\
         %install\ncp -a {root}/usr %{{buildroot}}/\n\n\
         %files\n%defattr(-,root,root)\n%dir /usr/share/doc/fontana\n{files}"
    );
    let top = package.work.join("rpm");
    let spec_file = top.join("fontana.spec");
    write(&spec_file, spec)?;
    run(package
        .command("rpmbuild")
        .args(["-bb", "--quiet", "--target", architecture])
        .arg(format!("--define=_topdir {}", top.display()))
        .arg(format!("--define=_rpmdir {}", package.out.display()))
        .arg("--define=_rpmfilename %{name}-%{version}-%{release}.%{arch}.rpm")
        .arg(spec_file))
}
