package cli

import (
	"fmt"
	"time"
)

// ParseTime parses a time of a flag: how long ago (10m), a clock time of today (14:33), or
// a date with an optional clock time.
func ParseTime(flag, text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, UsageError(
		fmt.Sprintf("--%s cannot be %q", flag, text),
		`It is how long ago (10m, 2h), a time of today (14:33) or a date with a time ("2026-11-20 14:33", 2026-11-20T14:33:00Z)`,
	)
}
