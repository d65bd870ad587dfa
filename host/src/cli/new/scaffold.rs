//! The files of a new project, which are part of this binary: see `build.rs`.
//!
//! In a template `{{name}}` is the project's name and `{{name_snake}}` the same with underscores, in names of files too. An
//! ending `.tmpl` goes: it keeps tools from taking the template's files for their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::super::failure::{Refused, cannot_write};
use super::Language;

include!(concat!(env!("OUT_DIR"), "/scaffold.rs"));

/// How a block of commands begins and ends in a README.
const BLOCK: &str = "```";

/// A file of a project.
pub(super) struct File {
    path: PathBuf,
    content: Vec<u8>,
}

/// Every file of a new project.
pub(super) fn files(language: Language, name: &str) -> Result<Vec<File>> {
    let sdk = language.sdk();
    let of = |folder: &str| {
        let prefix = format!("{folder}/");
        FILES.iter().filter_map(move |(path, content)| Some((path.strip_prefix(&prefix)?, *content)))
    };
    let template = language.templates().iter().map(|folder| format!("{sdk}/{folder}"));
    let Some(template) = template.into_iter().find(|folder| of(folder).next().is_some()) else {
        return Err(Refused(format!("this build of keyrail has no template for {sdk}")).into());
    };
    let mut files: Vec<File> = of(&template)
        .map(|(path, content)| File {
            path: filled(path.strip_suffix(".tmpl").unwrap_or(path), name).into(),
            content: match std::str::from_utf8(content) {
                Ok(text) => filled(text, name).into_bytes(),
                Err(_) => content.to_vec(),
            },
        })
        .collect();
    let verbatim =
        |(path, content): (&str, &[u8]), to: &str| File { path: Path::new(to).join(path), content: content.to_vec() };
    files.extend(of(&format!("{sdk}/sdk")).map(|file| verbatim(file, "keyrail/sdk")));
    files.extend(of("wit").map(|file| verbatim(file, "keyrail/wit")));
    Ok(files)
}

fn filled(text: &str, name: &str) -> String {
    text.replace("{{name}}", name).replace("{{name_snake}}", &name.replace('-', "_"))
}

/// Writes them; the folder is made where it is missing.
pub(super) fn write(folder: &Path, files: &[File]) -> Result<()> {
    for File { path, content } in files {
        let path = folder.join(path);
        let cannot = cannot_write(&path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(&cannot)?;
        }
        fs::write(&path, content).map_err(&cannot)?;
        if path.extension().is_some_and(|extension| extension == "sh") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(&cannot)?;
        }
    }
    Ok(())
}

/// What to type next: the first block of the project's README.
pub(super) fn next_commands(folder: &Path) -> Vec<String> {
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    let block = readme.lines().skip_while(|line| !line.trim().starts_with(BLOCK)).skip(1);
    block.take_while(|line| line.trim() != BLOCK).map(|line| line.trim_end().to_string()).collect()
}
