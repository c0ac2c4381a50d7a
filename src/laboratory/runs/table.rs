//! Comma-separated values of which one bad row costs that row alone.

use csv::{ByteRecord, StringRecord};

use crate::count::counted;

/// A row of the table below its header.
#[derive(Debug)]
pub(super) struct Row {
    /// Line in the file at which it starts, from 1.
    pub(super) line: u64,
    /// Its fields, as many as the header has; what is no UTF-8 is replaced.
    pub(super) fields: StringRecord,
    /// Why none of its fields can be trusted.
    pub(super) fault: Option<String>,
}

/// A row after the last: an open quote swallows it.
const END: &[u8] = b"\0end";

/// Reads a table: the names of its columns, without blanks around them, and its rows.
///
/// # Errors
///
/// If the header cannot be read: the reason, for people.
pub(super) fn read(text: &[u8]) -> Result<(StringRecord, Vec<Row>), String> {
    let text = [&with_plain_ends(text), &b"\n"[..], END].concat();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(&text[..]);
    let records = reader.byte_records().collect::<Result<Vec<_>, _>>();
    let mut records = records.map_err(|error| error.to_string())?;
    let is_open = records.pop_if(|last| last.as_slice() == END).is_none();
    let last = records.len().saturating_sub(1);
    if is_open && last == 0 {
        return Err("a quote in its first line never closes".to_owned());
    }
    let mut records = records.into_iter().enumerate();
    let (_, header) = records.next().unwrap_or_default();
    let mut header = StringRecord::from_byte_record(header)
        .map_err(|_| "its first line is not UTF-8".to_owned())?;
    header.trim();
    let separators = [(';', "semicolons"), ('\t', "tabs")];
    if let Some((_, name)) = separators
        .iter()
        .find(|(c, _)| header.len() == 1 && header[0].contains(*c))
    {
        return Err(format!("{name} separate its fields, not commas"));
    }
    let rows = records.map(|(index, record)| Row {
        line: line(&record, &text),
        fault: if is_open && index == last {
            Some("a quote opens and never closes: what follows is lost".to_owned())
        } else {
            fault(&record, header.len())
        },
        fields: fitted(&record, header.len()),
    });
    let rows = rows.collect();
    Ok((header, rows))
}

/// The text with `\n` at the end of each line in place of `\r\n` and `\r`.
fn with_plain_ends(text: &[u8]) -> Vec<u8> {
    let bytes = text.iter().enumerate();
    let kept = bytes.filter(|&(at, &byte)| byte != b'\r' || text.get(at + 1) != Some(&b'\n'));
    kept.map(|(_, &byte)| if byte == b'\r' { b'\n' } else { byte })
        .collect()
}

/// The line at which a record starts, from 1. Empty lines before it belong to none.
fn line(record: &ByteRecord, text: &[u8]) -> u64 {
    record.position().map_or(0, |before| {
        let rest = text.iter().skip(before.byte() as usize);
        before.line() + rest.take_while(|&&byte| byte == b'\n').count() as u64
    })
}

/// Longest field, in bytes: names and numbers need less.
const LONGEST_FIELD: usize = 1000;

/// What makes all fields of a record doubtful.
fn fault(record: &ByteRecord, columns: usize) -> Option<String> {
    if record.len() != columns {
        let breaks = record.as_slice().iter().filter(|&&byte| byte == b'\n');
        let quoted = match breaks.count() {
            0 => String::new(),
            more => format!(" and goes on for {more} more lines: is a quote left open?"),
        };
        let fields = counted(record.len(), "field");
        return Some(format!("it has {fields} below {columns} columns{quoted}"));
    }
    let mut fields = (1..).zip(record.iter());
    fields.find_map(|(number, field)| {
        if field.len() > LONGEST_FIELD {
            return Some(format!(
                "its field {number} has {} bytes, and a field at most {LONGEST_FIELD}",
                field.len()
            ));
        }
        let is_text = std::str::from_utf8(field).is_ok();
        (!is_text).then(|| format!("its field {number} is not UTF-8"))
    })
}

/// The fields as text, filled up or cut to the number of columns.
fn fitted(record: &ByteRecord, columns: usize) -> StringRecord {
    let texts = record.iter().map(String::from_utf8_lossy);
    let filled = texts.chain(std::iter::repeat("".into()));
    filled.take(columns).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and fault of each row.
    fn rows(text: &[u8]) -> Vec<(u64, String)> {
        let (_, rows) = read(text).expect("the header is right");
        assert!(rows.iter().all(|row| row.fields.len() == 2));
        let row = |row: Row| (row.line, row.fault.unwrap_or_default());
        rows.into_iter().map(row).collect()
    }

    #[test]
    fn a_bad_row_costs_itself_alone() {
        let found = rows(b"a,b\n1,2\n3\n4,5,6\nx\xff,7\n8,9\n");
        let expected = [
            (2, ""),
            (3, "it has 1 field below 2 columns"),
            (4, "it has 3 fields below 2 columns"),
            (5, "its field 1 is not UTF-8"),
            (6, ""),
        ];
        assert_eq!(
            found,
            expected.map(|(line, fault)| (line, fault.to_owned()))
        );
    }

    #[test]
    fn lines_count_from_the_header_whatever_ends_them() {
        let lines = |text: &[u8]| rows(text).iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(lines(b"a,b\n1,2\n3,4\n"), [2, 3]);
        assert_eq!(lines(b"a,b\r\n1,2\r\n3,4\r\n"), [2, 3]);
        assert_eq!(lines(b"a,b\r1,2\r3,4"), [2, 3]);
        assert_eq!(lines(b"\n\na , b\n\n1,2\n\n\n3,4\n"), [5, 8]);
        assert_eq!(lines(b"\xef\xbb\xbfa,b\n\"1\nx\",2\n3,4\n"), [2, 4]);
    }

    #[test]
    fn an_open_quote_is_found() {
        let found = rows(b"a,b\n\"x\"\"y\",2\n1,\"2\n3,4\n");
        assert_eq!(found[0], (2, String::new()));
        assert_eq!(found[1].0, 3);
        assert!(found[1].1.contains("a quote opens and never closes"));
        let error = read(b"a,\"b\n1,2\n").expect_err("the header is open");
        assert!(error.contains("its first line never closes"), "{error}");
        let error = read(b"a;b\n1;2\n").expect_err("commas are expected");
        assert!(error.contains("semicolons"), "{error}");
        let error = read(b"a,\xff\n1,2\n").expect_err("the header is no text");
        assert!(error.contains("UTF-8"), "{error}");
    }
}
