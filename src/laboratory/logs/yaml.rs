//! The part of YAML that configuration files of training use: nested maps of plain values.
//!
//! Lists, anchors and texts over several lines are passed over: nothing that describes a layout
//! is written so. (Whole parsers were weighed: a new dependency for two dozen lines.)

use super::settings::Settings;

/// Values by dotted path (`parallelism.tp`), as written, without quotes.
pub(super) fn settings(text: &str) -> Settings {
    let mut settings = Settings::default();
    let mut path: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let content = line.split(" #").next().unwrap_or_default().trim_end();
        let trimmed = content.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with('-') {
            continue;
        }
        let Some((key, value)) = trimmed.split_once(':') else {
            continue;
        };
        let indent = content.len() - trimmed.len();
        path.retain(|(other, _)| *other < indent);
        path.push((indent, key.trim().to_owned()));
        let value = value.trim().trim_matches(['"', '\'']);
        if !value.is_empty() {
            let keys: Vec<&str> = path.iter().map(|(_, key)| key.as_str()).collect();
            settings.values.insert(keys.join("."), value.to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_nest_by_indentation() {
        let text = "a:\n  b: 1 # one\n  c:\n    d: \"x\"\n  e: null\n- f: 2\n# g: 3\nh: true\n";
        let values = settings(text).values;
        let shown: Vec<String> = values
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(shown, ["a.b=1", "a.c.d=x", "a.e=null", "h=true"]);
    }
}
