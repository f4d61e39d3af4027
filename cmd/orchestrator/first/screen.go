package first

import (
	"os"
	"strconv"
)

// A screen is stdout or stderr. The answer comes from a socket that an agent of this user may have put into its folder,
// with a file beside it. So a terminal gets nothing that it obeys, but colors.
type screen struct {
	to       *os.File
	terminal bool
	held     []byte // the end of the last text, which may be the begin of a color
}

// write writes a part of the answer.
func (s *screen) write(text []byte) error {
	if s.terminal {
		text, s.held = visible(append(s.held, text...))
	}
	_, err := s.to.Write(text)
	return err
}

// visible returns text with its control characters spelled out, except line ends, tabs and colors, and the end of the
// text that needs more to be judged.
func visible(text []byte) (shown, held []byte) {
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '\n' || c == '\t' || c == '\r':
			shown = append(shown, c)
		case c == 0x1b:
			end := at + 1
			for end < len(text) && (end == at+1 && text[end] == '[' || end > at+1 && (text[end] == ';' || '0' <= text[end] && text[end] <= '9')) {
				end++
			}
			switch {
			case end == len(text) && end-at < maxColor:
				return shown, append([]byte(nil), text[at:]...)
			case end < len(text) && text[end] == 'm' && end > at+1:
				shown, at = append(shown, text[at:end+1]...), end
			default:
				shown = spell(shown, c)
			}
		case c < ' ' || c == 0x7f:
			shown = spell(shown, c)
		case c == 0xc2 && at+1 == len(text):
			return shown, append([]byte(nil), c)
		case c == 0xc2 && text[at+1] < 0xa0: // U+0080 to U+009F
			shown, at = spell(shown, text[at+1]), at+1
		default:
			shown = append(shown, c)
		}
	}
	return shown, nil
}

// maxColor is longer than every color.
const maxColor = 32

// spell appends a control character as digits.
func spell(b []byte, c byte) []byte {
	digits := strconv.FormatUint(0x100|uint64(c), 16)
	return append(b, `\x`+digits[1:]...)
}
