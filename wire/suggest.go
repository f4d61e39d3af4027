package wire

import (
	"bytes"
	"slices"
	"strings"

	"orchestrator/wire/object"
)

// spoken are the types of messages that agents say.
var spoken = slices.DeleteFunc(Schemas(), func(name string) bool {
	return !strings.HasPrefix(name, "request:") && !strings.HasPrefix(name, "event:")
})

// meantType is the type that was probably meant by one that there is not; "" when none
// is near. An author that forgets what stands before the colon asks for something.
func meantType(kind string) string {
	const slips, longest = 2, 64
	if len(kind) > longest {
		return ""
	}
	if !strings.Contains(kind, ":") {
		kind = "request:" + kind
	}
	kind = dashed(kind)
	best, fewest := "", slips+1
	for _, name := range spoken {
		if n := slipsBetween(kind, name); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// dashed spells complete_task and completeTask as complete-task.
func dashed(kind string) string {
	var b strings.Builder
	for i, r := range kind {
		switch {
		case r == '_' || r == ' ':
			r = '-'
		case r >= 'A' && r <= 'Z':
			if r += 'a' - 'A'; i > 0 && kind[i-1] >= 'a' && kind[i-1] <= 'z' {
				b.WriteByte('-')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// slipsBetween counts the letters that are wrong, too many or missing.
func slipsBetween(a, b string) int {
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			wrong := 1
			if a[i] == b[j] {
				wrong = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+wrong)
		}
		last, row = row, last
	}
	return last[len(b)]
}

// nearly returns why a line that is no JSON object was probably meant as a message; "" when
// it was not.
func nearly(line []byte) string {
	text := bytes.TrimLeft(line, " \t")
	if !bytes.HasPrefix(text, []byte("{")) {
		return ""
	}
	for _, begun := range []string{`"request:`, `"event:`, `'request:`, `'event:`} {
		if bytes.Contains(text[:min(len(text), 512)], []byte(begun)) {
			return "it is no JSON object in one line: let a library spell it"
		}
	}
	return ""
}

// nearly returns why an object that is log was probably meant as a message.
func (k *keys) nearly(kind string, typed bool) string {
	switch {
	case k.kind == nil || !object.IsObject(k.payload):
		return ""
	case !typed:
		return "its type is no text"
	}
	if name := meantType(kind); name != "" {
		return "there is no message type " + string(Quote(kind)) + ": did you mean " + string(Quote(name)) + "?"
	}
	return ""
}
