package toolspan

// scanner walks over JSON that is known to be well formed and gives its values as they stand. Of text that is not, it says that it
// failed, and never looks beyond the end.
type scanner struct {
	text   []byte
	at     int
	ends   []byte
	first  bool
	failed bool
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// take steps over a byte that has to be there.
func (s *scanner) take(want byte) {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != want {
		s.failed = true
		return
	}
	s.at++
}

// open steps into a list or an object.
func (s *scanner) open(begin, end byte) {
	s.take(begin)
	s.ends = append(s.ends, end)
	s.first = true
}

// more steps to the next item of what was opened last, or out of it.
func (s *scanner) more() bool {
	if s.failed {
		return false
	}
	s.space()
	end := s.ends[len(s.ends)-1]
	if s.at < len(s.text) && s.text[s.at] == end {
		s.at++
		s.ends = s.ends[:len(s.ends)-1]
		s.first = false
		return false
	}
	if !s.first {
		s.take(',')
	}
	s.first = false
	return !s.failed
}

func (s *scanner) colon() { s.take(':') }

// value steps over a value and gives its text.
func (s *scanner) value() []byte {
	s.space()
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.string()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return s.text[start:s.at]
			}
			depth--
			s.at++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return s.text[start:s.at]
			}
			s.at++
			continue
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return s.text[start:s.at]
		}
	}
	s.failed = true
	return nil
}

func (s *scanner) string() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = min(s.at, len(s.text))
	s.failed = true
}
