package object

import (
	"fmt"
	"strings"
	"time"
)

// timeLayouts are the accepted layouts of a time; all are ISO 8601.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02T15:04:05.999999999Z07",
	"20060102T150405Z0700",
	time.DateOnly,
}

// ParseTime reads an ISO 8601 time. One without a zone is UTC.
func ParseTime(when string) (time.Time, bool) {
	if loose(when) {
		return time.Time{}, false
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, when); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// Time returns an optional ISO 8601 time as a Timestamp, or "" if it is missing.
func (r *Reader) Time(key string) string {
	when := r.OptionalText(key)
	if when == nil {
		return ""
	}
	at, ok := ParseTime(*when)
	if !ok {
		r.Refuse(key, fmt.Sprintf("must be an ISO 8601 time, not %.40q", *when))
		return ""
	}
	return Timestamp(at)
}

// loose reports whether a time has a fault that time.Parse lets pass: an hour of one digit, or
// an offset of more than 23 hours or 59 minutes.
func loose(when string) bool {
	if len(when) > len("2006-01-02T1:") && when[12] == ':' {
		return true
	}
	sign := strings.LastIndexAny(when, "+-")
	if sign <= len("2006-01") || len(when) < sign+len("+00") {
		return false
	}
	return when[sign+1:sign+3] > "23" || len(when) > sign+len("+00") && when[len(when)-2:] > "59"
}

// Timestamp formats a time as all messages and documents do: UTC, RFC 3339, milliseconds.
func Timestamp(at time.Time) string {
	return string(AppendTimestamp(make([]byte, 0, len(timeLayout)), at))
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// AppendTimestamp appends the Timestamp of a time to b. It is written by hand because every line
// that is sent or recorded has one.
func AppendTimestamp(b []byte, at time.Time) []byte {
	at = at.UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.AppendFormat(b, timeLayout)
	}
	hour, minute, second := at.Clock()
	b = append(appendTwo(appendTwo(b, year/100), year%100), '-')
	b = append(appendTwo(b, int(month)), '-')
	b = append(appendTwo(b, day), 'T')
	b = append(appendTwo(b, hour), ':')
	b = append(appendTwo(b, minute), ':')
	b = append(appendTwo(b, second), '.')
	milli := at.Nanosecond() / 1e6
	return append(appendTwo(append(b, byte('0'+milli/100)), milli%100), 'Z')
}

func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }
