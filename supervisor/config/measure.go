package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// units are the units of sizes, longer names first so that the whole suffix is matched.
var units = []struct {
	name  string
	bytes int64
}{
	{name: "KiB", bytes: kib},
	{name: "MiB", bytes: mib},
	{name: "GiB", bytes: gib},
	{name: "KB", bytes: 1_000},
	{name: "MB", bytes: 1_000_000},
	{name: "GB", bytes: 1_000_000_000},
	{name: "B", bytes: 1},
}

var (
	errNoUnit   = errors.New("it has no unit")
	errNoNumber = errors.New("it is no whole number and unit")
	errTooLarge = errors.New("it is too large")
)

// parseSize parses a size such as "64KiB". Only "0" needs no unit.
func parseSize(s string) (int64, error) {
	if s == "0" {
		return 0, nil
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		if !isDigits(digits) {
			return 0, errNoNumber
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return 0, errTooLarge
		}
		return n * u.bytes, nil
	}
	return 0, errNoUnit
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// sizeHint returns a hint with the size that was probably meant by "64k" or "16 mib".
func (v value) sizeHint(s string) string {
	if v.sensitive {
		return ""
	}
	compact := strings.ToUpper(strings.ReplaceAll(s, " ", ""))
	number := strings.TrimRight(compact, "KMGIB")
	if !isDigits(number) {
		return ""
	}
	for _, u := range units {
		unit := strings.ToUpper(u.name)
		if rest := compact[len(number):]; rest == unit || rest == unit[:1] {
			return "Did you mean " + strconv.Quote(number+u.name) + "?"
		}
	}
	return ""
}
