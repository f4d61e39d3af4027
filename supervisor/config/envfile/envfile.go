// Package envfile reads files of NAME=value lines.
package envfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Why a line cannot be read. Errors never have its content, which may be secret.
var (
	errNoEquals   = errors.New("is not NAME=value")
	errName       = errors.New("has no valid variable name before its =")
	errOpenQuote  = errors.New("has an unclosed quote")
	errAfterQuote = errors.New("has text after its closing quote")
	errNUL        = errors.New("holds a NUL byte")
)

var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`) })

// IsName reports whether a text can be the name of a variable.
func IsName(text string) bool { return name().MatchString(text) }

// A Setting is a variable and its value.
type Setting struct{ Name, Value string }

// Parse returns the settings of a file. Errors have the number of a line.
func Parse(text string) ([]Setting, error) {
	var settings []Setting
	for i, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "export "); ok {
			line = strings.TrimSpace(rest)
		}
		s, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", i+1, err)
		}
		settings = append(settings, s)
	}
	return settings, nil
}

func parse(line string) (Setting, error) {
	name, rest, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !ok {
		return Setting{}, errNoEquals
	}
	if !IsName(name) {
		return Setting{}, errName
	}
	v, err := unquote(strings.TrimSpace(rest))
	if err != nil {
		return Setting{}, err
	}
	if strings.ContainsRune(v, 0) {
		return Setting{}, errNUL
	}
	return Setting{Name: name, Value: v}, nil
}

// unquote parses a value as a shell would, without expansion: 'unchanged', "with \n, \t, \"
// and \\", or bare up to a # after a space.
func unquote(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	switch quote := s[0]; quote {
	case '\'':
		end := strings.IndexByte(s[1:], '\'')
		if end < 0 {
			return "", errOpenQuote
		}
		return s[1 : end+1], afterQuote(s[end+2:])
	case '"':
		return unescape(s[1:])
	}
	if s[0] == '#' {
		return "", nil
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return strings.TrimSpace(s[:i]), nil
		}
	}
	return s, nil
}

func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), afterQuote(s[i+1:])
		case c == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case '"', '\\', '$', '`':
				b.WriteByte(s[i])
			default:
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", errOpenQuote
}

func afterQuote(rest string) error {
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
		return errAfterQuote
	}
	return nil
}
