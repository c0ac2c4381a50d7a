//! stub
use super::document::Origin;
use super::error::Problems;
use super::file::ModelSection;

pub(crate) fn read(
    _config: &str,
    _at: &Origin,
    _problems: &mut Problems,
) -> Option<(String, ModelSection)> {
    None
}
