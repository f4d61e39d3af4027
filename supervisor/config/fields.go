package config

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// The functions in this file return readers of attributes. Each is given where the value goes
// and which values are allowed.

func text(into *string) func(value) {
	return func(v value) {
		if s, ok := v.asText(); ok {
			*into = s
		}
	}
}

// word reads a text that is not empty.
func word(into *string) func(value) {
	return func(v value) {
		s, ok := v.asText()
		if ok && s == "" {
			v.reject("empty", "Empty value", v.name+" must not be empty.", "")
			return
		}
		if ok {
			*into = s
		}
	}
}

// choice reads one of a few words.
func choice(into *string, words ...string) func(value) {
	return func(v value) {
		s, ok := v.asText()
		if !ok {
			return
		}
		if !slices.Contains(words, s) {
			v.reject("unknown-value", "Unknown value",
				fmt.Sprintf("%s is %s, not %s.", v.name, quotedList(words), v.quoted()), v.suggest(s, words))
			return
		}
		*into = s
	}
}

func truth(into *bool) func(value) {
	return func(v value) {
		b, err := convert.Convert(v.cty, cty.Bool)
		if err != nil || b.IsNull() {
			v.wrongKind("true or false")
			return
		}
		*into = b.True()
	}
}

// whole reads an integer between least and most.
func whole(into *int, least, most int) func(value) {
	return func(v value) {
		n, ok := v.asNumber("a whole number")
		if !ok {
			return
		}
		i, accuracy := n.Int64()
		switch {
		case !n.IsInt():
			v.reject("bad-number", "Not a whole number", fmt.Sprintf("%s counts, so it is a whole number.", v.name), "")
		case accuracy != big.Exact || i < int64(least) || i > int64(most):
			v.reject("out-of-range", "Number out of range",
				fmt.Sprintf("%s is between %d and %d.", v.name, least, most), "")
		default:
			*into = int(i)
		}
	}
}

// ratio reads a number between least and most.
func ratio(into *float64, least, most float64) func(value) {
	return func(v value) {
		n, ok := v.asNumber("a number")
		if !ok {
			return
		}
		f, _ := n.Float64()
		if f < least || f > most {
			v.reject("out-of-range", "Number out of range",
				fmt.Sprintf("%s is between %v and %v.", v.name, least, most), "")
			return
		}
		*into = f
	}
}

func duration(into *time.Duration) func(value) {
	return func(v value) {
		if v.cty.Type() == cty.Number {
			v.reject("bad-duration", "Bad duration", fmt.Sprintf("%s is a time.", v.name), unitHint("Times", v, "s"))
			return
		}
		s, ok := v.asText()
		if !ok {
			return
		}
		d, err := time.ParseDuration(s)
		switch {
		case err != nil && isDigits(s):
			v.reject("bad-duration", "Bad duration", fmt.Sprintf("%s is a time.", v.name), unitHint("Times", v, "s"))
		case err != nil:
			v.reject("bad-duration", "Bad duration",
				fmt.Sprintf("%s is a time such as \"250ms\", \"30s\" or \"2h\", not %s.", v.name, v.quoted()), "")
		case d < 0:
			v.reject("bad-duration", "Bad duration", fmt.Sprintf("%s cannot be negative.", v.name), "")
		default:
			*into = d
		}
	}
}

// longer reads a duration that is not zero.
func longer(into *time.Duration) func(value) {
	return func(v value) {
		d := time.Duration(-1)
		duration(&d)(v)
		if d == 0 {
			v.reject("out-of-range", "Duration out of range", v.name+" must be longer than nothing.", "")
		}
		if d > 0 {
			*into = d
		}
	}
}

// size reads a number of bytes that is not below least.
func size(into *int64, least int64) func(value) { return sizeUpTo(into, least, math.MaxInt64) }

// maxSaid is the largest message. It must fit into one fact of the record, which holds 32 MiB.
const maxSaid = 28 << 20

// sizeUpTo is size with an upper limit.
func sizeUpTo(into *int64, least, most int64) func(value) {
	return func(v value) {
		if n := v.cty; n.Type() == cty.Number && n.AsBigFloat().Sign() != 0 {
			v.reject("bad-size", "Bad size", fmt.Sprintf("%s is a size.", v.name), unitHint("Sizes", v, "MiB"))
			return
		}
		s, ok := v.asText()
		if !ok {
			return
		}
		n, err := parseSize(s)
		switch {
		case err != nil && isDigits(s):
			v.reject("bad-size", "Bad size", fmt.Sprintf("%s is a size.", v.name), unitHint("Sizes", v, "MiB"))
		case err != nil:
			v.reject("bad-size", "Bad size",
				fmt.Sprintf("%s is a size such as \"64KiB\", \"16MiB\" or \"1GiB\", not %s: %v.", v.name, v.quoted(), err),
				v.sizeHint(s))
		case n < least:
			v.reject("out-of-range", "Size out of range",
				fmt.Sprintf("%s is at least %d bytes.", v.name, least), "")
		case n > most:
			v.reject("out-of-range", "Size out of range",
				fmt.Sprintf("%s is at most %d MiB.", v.name, most>>20), "What is larger goes into a file, and its name into the message.")
		default:
			*into = n
		}
	}
}

func unitHint(what string, v value, unit string) string {
	if v.sensitive {
		return what + " need a unit."
	}
	if s, err := convert.Convert(v.cty, cty.String); err == nil {
		return fmt.Sprintf("%s need a unit: %q?", what, s.AsString()+unit)
	}
	return what + " need a unit."
}

// words reads a list of texts. An empty list becomes nil, so that lists can be compared.
func words(into *[]string) func(value) {
	return func(v value) {
		items, ok := v.items("a list of words")
		if !ok {
			return
		}
		var list []string
		for _, item := range items {
			s, ok := item.asText()
			if !ok {
				return
			}
			list = append(list, s)
		}
		*into = list
	}
}

// numbers reads a list of whole numbers.
func numbers(into *[]int, least, most int) func(value) {
	return func(v value) {
		items, ok := v.items("a list of whole numbers")
		if !ok {
			return
		}
		var list []int
		for _, item := range items {
			n := least - 1
			if whole(&n, least, most)(item); n < least {
				return
			}
			list = append(list, n)
		}
		*into = list
	}
}

// path reads the path of a file or folder and makes it absolute.
func path(into *string, absolute func(string) string) func(value) {
	return func(v value) {
		var s string
		if word(&s)(v); s != "" {
			*into = absolute(s)
		}
	}
}
