//! Lines of a child's output, with a limit.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Longer than the limit; this is how it begins. The rest was thrown away.
    TooLong(Vec<u8>),
}

/// Reads lines of at most `limit` bytes.
pub(super) struct Lines<R> {
    reader: R,
    limit: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub fn new(reader: R, limit: usize) -> Self {
        Lines { reader, limit }
    }

    /// The next line; `None` at the end. A last line without an end counts.
    pub async fn next(&mut self) -> std::io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        let mut any = false;
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() && !any {
                return Ok(None);
            }
            any = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            let room = self.limit - line.len();
            too_long |= piece.len() > room;
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            let at_end = end.is_some() || available.is_empty();
            let used = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(used);
            if at_end {
                break;
            }
        }
        if too_long {
            return Ok(Some(Line::TooLong(line)));
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(Line::Whole(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &str, limit: usize) -> Vec<Line> {
        // A small buffer, so that lines come in pieces.
        let reader = tokio::io::BufReader::with_capacity(3, text.as_bytes());
        let mut lines = Lines::new(reader, limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn every_line_comes_whole_whatever_its_end() {
        assert_eq!(
            lines("one two\r\n\nthree", 10).await,
            [whole("one two"), whole(""), whole("three")]
        );
    }

    #[tokio::test]
    async fn a_line_over_the_limit_costs_only_itself() {
        assert_eq!(
            lines("12345678\nok\n", 5).await,
            [Line::TooLong(b"12345".to_vec()), whole("ok")]
        );
        assert_eq!(lines("12345\n", 5).await, [whole("12345")]);
    }
}
