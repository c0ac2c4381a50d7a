//! Comma-separated values of which one bad row costs that row alone.

use csv::{ByteRecord, StringRecord};

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

/// Header and rows of a text.
#[derive(Debug)]
pub(super) struct Table {
    /// Names of the columns, without blanks around them.
    pub(super) header: StringRecord,
    /// The rows.
    pub(super) rows: Vec<Row>,
}

/// Reads a table.
///
/// # Errors
///
/// If the header cannot be read: the reason, for people.
pub(super) fn read(text: &[u8]) -> Result<Table, String> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let raw = reader.byte_headers().map_err(|error| error.to_string())?;
    let mut header = StringRecord::from_byte_record(raw.clone())
        .map_err(|_| "its first line is not UTF-8".to_owned())?;
    header.trim();
    let separators = [(';', "semicolons"), ('\t', "tabs")];
    if let Some((_, name)) = separators
        .iter()
        .find(|(c, _)| header.len() == 1 && header[0].contains(*c))
    {
        return Err(format!("{name} separate its fields, not commas"));
    }
    let open = unclosed_quote(text);
    let mut lines = Lines::new(text);
    if let Some(quote) = open.filter(|&quote| quote < position(reader.position(), text)) {
        let line = lines.at(quote);
        return Err(format!("the quote that opens on line {line} never closes"));
    }
    let mut rows = Vec::new();
    let mut record = ByteRecord::new();
    loop {
        // Empty lines before a row belong to none.
        let mut start = position(reader.position(), text);
        start += text[start..].iter().take_while(|&&c| is_end(c)).count();
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(error.to_string()),
        }
        let (line, end) = (lines.at(start), position(reader.position(), text));
        let quote = open.filter(|quote| (start..end).contains(quote));
        let fault = match quote.map(|quote| lines.at(quote)) {
            Some(open) => Some(format!(
                "the quote that opens on line {open} never closes: what follows is lost"
            )),
            None => fault(&record, header.len(), &text[start..end]),
        };
        rows.push(Row {
            line,
            fields: fitted(&record, header.len()),
            fault,
        });
    }
    Ok(Table { header, rows })
}

/// A position of the reader within the text.
fn position(position: &csv::Position, text: &[u8]) -> usize {
    (position.byte() as usize).min(text.len())
}

/// Whether a byte ends a line.
const fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Longest field, in bytes: names and numbers need less.
const LONGEST_FIELD: usize = 1000;

/// What makes all fields of a record doubtful.
fn fault(record: &ByteRecord, columns: usize, text: &[u8]) -> Option<String> {
    if record.len() != columns {
        let breaks = text.trim_ascii_end().iter().filter(|&&c| c == b'\n');
        let quoted = match breaks.count() {
            0 => String::new(),
            more => format!(" and goes on for {more} more lines: is a quote left open?"),
        };
        let fields = record.len();
        let plural = if fields == 1 { "" } else { "s" };
        return Some(format!(
            "it has {fields} field{plural} below {columns} columns{quoted}"
        ));
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

/// Numbers of lines at growing positions; `\n`, `\r\n` and `\r` end one.
struct Lines<'a> {
    text: &'a [u8],
    counted: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            counted: 0,
            line: 1,
        }
    }

    /// The line of a position, from 1.
    fn at(&mut self, position: usize) -> u64 {
        if position < self.counted {
            *self = Self::new(self.text);
        }
        let ends = (self.counted..position).filter(|&at| match self.text[at] {
            b'\n' => true,
            b'\r' => self.text.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        self.line += ends.count() as u64;
        self.counted = position;
        self.line
    }
}

/// Where a quote opens that nothing closes. Quotes count at the start of a field only; two in a row
/// within a quoted field are one of its text.
fn unclosed_quote(text: &[u8]) -> Option<usize> {
    let (mut opened, mut starts, mut at) = (None, true, 0);
    while let Some(&byte) = text.get(at) {
        if opened.is_some() {
            if byte == b'"' && text.get(at + 1) == Some(&b'"') {
                at += 1;
            } else if byte == b'"' {
                opened = None;
            }
        } else if byte == b'"' && starts {
            opened = Some(at);
        }
        starts = opened.is_none() && (byte == b',' || is_end(byte));
        at += 1;
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and fault of each row.
    fn rows(text: &[u8]) -> Vec<(u64, String)> {
        let table = read(text).expect("the header is right");
        assert!(table.rows.iter().all(|row| row.fields.len() == 2));
        let row = |row: Row| (row.line, row.fault.unwrap_or_default());
        table.rows.into_iter().map(row).collect()
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
        assert!(found[1].1.contains("opens on line 3 never closes"));
        let error = read(b"a,\"b\n1,2\n").expect_err("the header is open");
        assert!(error.contains("line 1"), "{error}");
        let error = read(b"a;b\n1;2\n").expect_err("commas are expected");
        assert!(error.contains("semicolons"), "{error}");
        let error = read(b"a,\xff\n1,2\n").expect_err("the header is no text");
        assert!(error.contains("UTF-8"), "{error}");
    }
}
