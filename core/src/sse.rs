//! Server-sent events, decoded as the bytes come (SPEC 3.2, 7.5).
//!
//! The grammar is that of the HTML standard: a byte order mark at the start, lines ended by CR, LF or CRLF wherever the
//! network cut them, comments, one optional space after the colon, several `data` lines joined by LF. Two things differ
//! because servers do: an event that the end of the stream cuts before its blank line is delivered, and a size limit holds.

use std::borrow::Cow;

use crate::error::{Error, ErrorCode, Result};

/// Bytes in, events out. [`push`](Decoder::push) bytes, then take events until there is none.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Largest event accepted, also the largest line, bytes.
    limit: usize,
    buffer: Vec<u8>,
    /// Where the line being read starts in `buffer`.
    start: usize,
    /// How far that line has been searched for its end.
    scanned: usize,
    /// The last byte taken was CR, so an LF that follows belongs to it.
    after_cr: bool,
    /// The first line was read, so a byte order mark is no longer one.
    begun: bool,
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<Vec<u8>>,
    retry: Option<u64>,
    /// The event before was handed out; the next one starts empty.
    taken: bool,
}

/// One event. Bytes that are not UTF-8 become U+FFFD, which never stalls the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// Empty when the stream names none.
    pub name: Cow<'a, str>,
    pub data: Cow<'a, str>,
    /// The id given since the event before, if one was.
    pub id: Option<Cow<'a, str>>,
    /// Milliseconds to wait before connecting again, if given since the event before.
    pub retry: Option<u64>,
}

impl Decoder {
    /// A decoder at the beginning of a stream whose events have at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Decoder {
            limit,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            after_cr: false,
            begun: false,
            event: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            retry: None,
            taken: false,
        }
    }

    /// Adds bytes. Errors with `limit_exceeded` when an unfinished line grows too large.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.check(self.buffer.len().saturating_add(bytes.len()))?;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next complete event, if there is one. Blocks without `data` are none.
    pub(crate) fn next_event(&mut self) -> Result<Option<SseEvent<'_>>> {
        self.forget_taken();
        while let Some((from, to)) = self.line() {
            if from == to {
                if self.has_data {
                    return Ok(Some(self.take()));
                }
                self.event.clear();
                continue;
            }
            self.field(from, to)?;
        }
        Ok(None)
    }

    /// What an end of the stream leaves: the last event when its blank line is missing.
    pub(crate) fn finish(&mut self) -> Result<Option<SseEvent<'_>>> {
        self.forget_taken();
        if self.start < self.buffer.len() {
            let (from, to) = (self.start, self.buffer.len());
            self.start = to;
            self.scanned = to;
            let from = self.skip_mark(from, to);
            if from < to {
                self.field(from, to)?;
            }
        }
        Ok(self.has_data.then(|| self.take()))
    }

    fn forget_taken(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.event.clear();
            self.data.clear();
            self.has_data = false;
            self.id = None;
            self.retry = None;
        }
    }

    fn take(&mut self) -> SseEvent<'_> {
        self.taken = true;
        SseEvent {
            name: String::from_utf8_lossy(&self.event),
            data: String::from_utf8_lossy(&self.data),
            id: self.id.as_deref().map(String::from_utf8_lossy),
            retry: self.retry,
        }
    }

    /// The next complete line as a range of the buffer, without its end.
    fn line(&mut self) -> Option<(usize, usize)> {
        if self.after_cr && self.start < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
                self.scanned = self.scanned.max(self.start);
            }
        }
        let rest = &self.buffer[self.scanned..];
        let Some(offset) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let (from, to) = (self.start, self.scanned + offset);
        self.after_cr = self.buffer[to] == b'\r';
        self.start = to + 1;
        self.scanned = self.start;
        Some((self.skip_mark(from, to), to))
    }

    fn skip_mark(&mut self, from: usize, to: usize) -> usize {
        let first = !std::mem::replace(&mut self.begun, true);
        if first && self.buffer[from..to].starts_with(b"\xEF\xBB\xBF") {
            from + 3
        } else {
            from
        }
    }

    fn field(&mut self, from: usize, to: usize) -> Result<()> {
        let line = &self.buffer[from..to];
        let (name, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                self.check(self.data.len().saturating_add(value.len()))?;
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(value).unwrap_or_default();
                self.retry = text.parse().ok().or(self.retry);
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self, bytes: usize) -> Result<()> {
        if bytes > self.limit {
            return Err(Error::new(
                ErrorCode::LimitExceeded,
                format!("an event of the stream is larger than {} bytes", self.limit),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = (String, String);

    fn decode<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
        let mut decoder = Decoder::new(1024);
        let mut events = Vec::new();
        for read in reads {
            decoder.push(read).unwrap();
            while let Some(event) = decoder.next_event().unwrap() {
                events.push((event.name.into_owned(), event.data.into_owned()));
            }
        }
        if let Some(event) = decoder.finish().unwrap() {
            events.push((event.name.into_owned(), event.data.into_owned()));
        }
        events
    }

    fn data(events: &[Owned]) -> Vec<&str> {
        events.iter().map(|(_, data)| data.as_str()).collect()
    }

    const MIXED: &[u8] =
        "\u{FEFF}data: {\"a\":\r\ndata: 1}\r\n\r\n: note\r\n\r\nevent: x\rdata:two\r\rid: 7\n\n\
        data:  那个 🌍\n\ndata\n\ndata: last"
            .as_bytes();

    fn mixed() -> Vec<Owned> {
        [
            ("", "{\"a\":\n1}"),
            ("x", "two"),
            ("", " 那个 🌍"),
            ("", ""),
            ("", "last"),
        ]
        .map(|(name, data)| (name.to_owned(), data.to_owned()))
        .to_vec()
    }

    #[test]
    fn the_same_events_come_out_wherever_the_bytes_are_cut_in_two() {
        for cut in 0..=MIXED.len() {
            let (a, b) = MIXED.split_at(cut);
            assert_eq!(decode([a, b]), mixed(), "cut at {cut}");
        }
    }

    #[test]
    fn the_same_events_come_out_of_single_bytes() {
        assert_eq!(decode(MIXED.chunks(1)), mixed());
    }

    #[test]
    fn a_carriage_return_at_the_end_of_a_read_does_not_wait_for_the_next() {
        let mut decoder = Decoder::new(1024);
        decoder.push(b"data: a\r\r").unwrap();
        assert_eq!(decoder.next_event().unwrap().unwrap().data, "a");
        decoder.push(b"\ndata: b\n\r\n").unwrap();
        assert_eq!(decoder.next_event().unwrap().unwrap().data, "b");
    }

    #[test]
    fn a_name_without_data_is_not_an_event_and_not_kept() {
        let events = decode([&b"event: ping\n\ndata: x\n\n"[..]]);
        assert_eq!(events, [(String::new(), "x".to_owned())]);
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(data(&decode([&b"data: a\xFFb\n\n"[..]])), ["a\u{FFFD}b"]);
    }

    #[test]
    fn an_event_has_the_id_and_the_retry_since_the_one_before() {
        let mut decoder = Decoder::new(1024);
        let stream =
            "id: 1\nretry: 50\ndata\n\ndata: x\n\nid: 3\n\nid: a\0\nretry: 5s\ndata: y\n\n";
        decoder.push(stream.as_bytes()).unwrap();
        let mut next = || {
            let event = decoder.next_event().unwrap().unwrap();
            let id = event.id.map(Cow::into_owned);
            (event.data.into_owned(), id, event.retry)
        };
        assert_eq!(next(), (String::new(), Some("1".to_owned()), Some(50)));
        assert_eq!(next(), ("x".to_owned(), None, None));
        assert_eq!(next(), ("y".to_owned(), Some("3".to_owned()), None));
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let mut decoder = Decoder::new(1024);
        let piece = [b'x'; 512];
        decoder.push(&piece).unwrap();
        assert!(decoder.next_event().unwrap().is_none());
        decoder.push(&piece).unwrap();
        assert!(decoder.next_event().unwrap().is_none());
        let error = decoder.push(b"x").unwrap_err();
        assert_eq!(error.code(), ErrorCode::LimitExceeded);
    }
}
