package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compared matches expected lines with printed lines. It returns the missing and the unexpected
// ones.
func compared(want, said []string) (missing, extra []string) {
	left := append([]string(nil), said...)
	more := false
	for _, line := range want {
		if line == "…" {
			more = true
			continue
		}
		form, found := loose(line), false
		for i := range left {
			if form.MatchString(left[i]) {
				left, found = append(left[:i:i], left[i+1:]...), true
				break
			}
		}
		if !found {
			missing = append(missing, line)
		}
	}
	for _, line := range left {
		if !more && !passing.MatchString(line) {
			extra = append(extra, line)
		}
	}
	return missing, extra
}

// passing matches lines that may be missing: intermediate states, and notices of long waits.
var passing = regexp.MustCompile(`^[0-9a-f]{8} (queued|assigned to|running on)|^Waiting for `)

// various matches parts that differ between runs. The forms are patterns for them.
var (
	various = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d:\d\d|\b[0-9a-f]{8}\b|\d+\.\d+s|\b\d{4,}\b|…|created, .*| +`)
	forms   = []struct{ of, form *regexp.Regexp }{
		{regexp.MustCompile(`^\d{4}-`), regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)},
		{regexp.MustCompile(`^\d\d:`), regexp.MustCompile(`\d\d:\d\d:\d\d`)},
		{regexp.MustCompile(`^\d+\.\d+s$`), regexp.MustCompile(`[\d.hms]+`)},
		{regexp.MustCompile(`^[0-9a-f]{8}$`), regexp.MustCompile(`[0-9a-f]{8}`)},
		{regexp.MustCompile(`^\d+$`), regexp.MustCompile(`\d+`)},
		{regexp.MustCompile(`^created`), regexp.MustCompile(`created, .*`)},
		{regexp.MustCompile(`^…$`), regexp.MustCompile(`.*`)},
		{regexp.MustCompile(`^ +$`), regexp.MustCompile(` +`)},
	}
)

// loose returns a pattern for a line of the README.
func loose(line string) *regexp.Regexp {
	var b strings.Builder
	at := 0
	for _, found := range various.FindAllStringIndex(line, -1) {
		b.WriteString(regexp.QuoteMeta(line[at:found[0]]))
		at = found[1]
		part := regexp.QuoteMeta(line[found[0]:found[1]])
		for _, f := range forms {
			if f.of.MatchString(line[found[0]:found[1]]) {
				part = f.form.String()
				break
			}
		}
		b.WriteString(part)
	}
	return regexp.MustCompile("^" + b.String() + regexp.QuoteMeta(line[at:]) + "$")
}

func TestLoose(t *testing.T) {
	for want, said := range map[string]string{
		"14:53:41 hello   ok a8f6daff \"x\" done":  "09:00:00 hello ok 00000000 \"x\" done",
		"4a2a6c3f created, running on hello":       "11112222 created, queued",
		"shop is up, pid 5651, 1 agent. See …":     "shop is up, pid 7, 1 agent. See this",
		"  hello  exit 0 (0.0s)":                   "  hello  exit 0 (12.5s)",
		`{"id":…"at":"2026-11-21T14:53:39.954Z"}`:  `{"id":"7","at":"2030-01-01T00:00:00.000Z"}`,
		"4a2a6c3f  Say hello  done   hello - 1.0s": "ffffffff  Say hello  done  hello  -  1m02s",
	} {
		require.Regexp(t, loose(want), said)
		require.NotRegexp(t, loose(want), "x"+said)
	}
	missing, extra := compared([]string{"a", "b"}, []string{"b", "c"})
	require.Equal(t, []string{"a"}, missing)
	require.Equal(t, []string{"c"}, extra)
	_, extra = compared([]string{"a", "…"}, []string{"a", "c"})
	require.Empty(t, extra)
}
