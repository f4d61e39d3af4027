package wire

import (
	"time"
)

// ShutdownNotice is the payload of notify:shutdown.
type ShutdownNotice struct {
	GracePeriod int64  `json:"gracePeriod"` // milliseconds
	Reason      string `json:"reason"`
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
