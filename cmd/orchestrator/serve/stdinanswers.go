package serve

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// stdinAnswers copies typed lines and completes requests and events with an id and a
// timestamp. A terminal delivers whole lines.
type stdinAnswers struct {
	to    io.Writer
	typed int // messages that were given an id
}

func (s *stdinAnswers) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		if _, err := s.to.Write(s.complete(line, time.Now())); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// complete adds the fields that a message lacks. It returns other lines unchanged.
func (s *stdinAnswers) complete(line []byte, now time.Time) []byte {
	trimmed := bytes.TrimSpace(line)
	var given struct {
		Type      string   `json:"type"`
		ID        wire.Raw `json:"id"`
		Timestamp wire.Raw `json:"timestamp"`
	}
	if object.Decode(trimmed, &given) != nil || !strings.HasPrefix(given.Type, "request:") && !strings.HasPrefix(given.Type, "event:") {
		return line
	}
	var more []byte
	if given.ID == nil {
		s.typed++
		more = fmt.Appendf(more, `"id":"%d",`, s.typed)
	}
	if given.Timestamp == nil {
		more = fmt.Appendf(more, `"timestamp":%q,`, object.Timestamp(now))
	}
	return fmt.Appendf(nil, "{%s%s\n", more, trimmed[1:])
}
