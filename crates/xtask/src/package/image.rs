//! Images for containers: an OCI image layout with one layer, on no other image.

use super::archive::{gzip, tar};
use super::{Package, sha256};
use crate::command::{Outcome, copy, empty_directory, output, run, write};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The user of the program in a container: `nobody` on most systems.
const USER: &str = "65534";

/// Makes `fontana-VERSION-TARGET.oci.tar`. The program is `/usr/bin/fontana`; `/data`, its
/// directory, belongs to its user.
///
/// # Errors
/// tar fails.
pub(super) fn make(package: &Package<'_>) -> Outcome<()> {
    let (root, layout) = (package.work.join("image"), package.work.join("layout"));
    copy(&package.files.join("usr/bin/fontana"), &root.join("usr/bin/fontana"))?;
    run(Command::new("cp")
        .args(["--archive", "--parents", "usr/share/doc/fontana"])
        .arg(&root)
        .current_dir(&package.files))?;
    empty_directory(&root.join("data"))?;
    empty_directory(&root.join("tmp"))?;
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    run(Command::new("chmod").arg("1777").arg(root.join("tmp")))?;
    let layer = package.work.join("layer.tar");
    run(tar(package, &root, &layer).args(["tmp", "usr"]))?;
    let owner = format!("--owner={USER}");
    run(package
        .command("tar")
        .args(["--format=gnu", "--numeric-owner", &owner, &format!("--group={USER}")])
        .arg(format!("--mtime=@{}", package.release.epoch))
        .arg("--file")
        .arg(&layer)
        .arg("--directory")
        .arg(&root)
        .args(["--append", "data"]))?;
    let difference = sha256(&layer)?;
    gzip(&layer)?;
    let blobs = layout.join("blobs/sha256");
    let layer = blob(&blobs, &package.work.join("layer.tar.gz"))?;
    let config = config(package, &difference)?;
    let config = blob_of(package, &blobs, &config)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described(&config, "application/vnd.oci.image.config.v1+json"),
        "layers": [described(&layer, "application/vnd.oci.image.layer.v1.tar+gzip")],
    });
    let mut manifest = described(
        &blob_of(package, &blobs, &manifest)?,
        "application/vnd.oci.image.manifest.v1+json",
    );
    manifest["platform"] = json!({ "architecture": package.target.debian(), "os": "linux" });
    manifest["annotations"] =
        json!({ "org.opencontainers.image.ref.name": package.release.version });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    write(&layout.join("index.json"), index.to_string())?;
    write(&layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&layout))?;
    run(tar(package, &layout, &package.path(".oci.tar")).args([
        "blobs",
        "index.json",
        "oci-layout",
    ]))
}

/// How the program runs in a container.
fn config(package: &Package<'_>, difference: &str) -> Outcome<Value> {
    let at = format!("@{}", package.release.epoch);
    let created = output(Command::new("date").args(["--utc", "--date", &at, "+%FT%TZ"]))?;
    let created = created.trim();
    Ok(json!({
        "created": created,
        "architecture": package.target.debian(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", "TMPDIR=/tmp"],
            "Entrypoint": ["/usr/bin/fontana"],
            "WorkingDir": "/data",
            "Labels": {
                "org.opencontainers.image.title": "fontana",
                "org.opencontainers.image.version": package.release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{difference}")] },
        "history": [{ "created": created, "created_by": "cargo xtask package" }],
    }))
}

/// A blob of a layout.
struct Blob {
    hash: String,
    bytes: u64,
}

fn described(blob: &Blob, media_type: &str) -> Value {
    json!({
        "mediaType": media_type,
        "digest": format!("sha256:{}", blob.hash),
        "size": blob.bytes,
    })
}

fn blob(blobs: &Path, file: &Path) -> Outcome<Blob> {
    let hash = sha256(file)?;
    copy(file, &blobs.join(&hash))?;
    let bytes = file.metadata().map_err(|error| error.to_string())?.len();
    Ok(Blob { hash, bytes })
}

fn blob_of(package: &Package<'_>, blobs: &Path, value: &Value) -> Outcome<Blob> {
    let file = package.work.join("blob.json");
    write(&file, value.to_string())?;
    blob(blobs, &file)
}
