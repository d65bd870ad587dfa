//! The manifest of a component that is a file: `orders.wasm` has `orders.manifest.toml` beside it. Without one nothing is
//! granted, and the limits are the host's.

use std::io;
use std::path::{Path, PathBuf};

use keyrail_runtime::Manifest;

/// Where the manifest of a component is looked for.
pub fn beside(component: &Path) -> PathBuf {
    component.with_extension("manifest.toml")
}

/// The text of a manifest and what it says: of the file `named`, or of the one beside the component, if there is one.
pub fn read(component: &Path, named: Option<&Path>) -> Result<(String, Manifest), String> {
    let path = named.map_or_else(|| beside(component), Path::to_path_buf);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => String::new(),
        Err(error) => {
            return Err(format!(
                "the manifest {} cannot be read: {error}; correct its path or its mode",
                path.display()
            ));
        }
    };
    match Manifest::parse(&text) {
        Ok(manifest) => Ok((text, manifest)),
        Err(problems) => Err(format!("the manifest {} is refused: {problems}", path.display())),
    }
}
