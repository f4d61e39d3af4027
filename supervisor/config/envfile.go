package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var envName = expression(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// An envSetting is a value for an environment variable, or nil to remove the variable.
type envSetting struct {
	name  string
	value *string
}

// envFiles reads a list of env files and checks each.
func envFiles(into *[]string) func(value) {
	return func(v value) {
		items, ok := v.items("a list of files")
		if !ok {
			return
		}
		var files []string
		for _, item := range items {
			var file string
			path(&file, v.r.config.absolute)(item)
			if file == "" {
				continue
			}
			files = append(files, file)
			if _, err := readEnvFile(context.Background(), file); err != nil && !(v.r.options.NoEnv && errors.Is(err, errNotThere)) {
				item.reject("bad-env-file", "Environment file cannot be used", fmt.Sprintf("%s: %v.", item.quoted(), err), "")
			}
		}
		*into = files
	}
}

// readEnvFile reads NAME=value lines. Errors give the number of a line, never its content.
func readEnvFile(ctx context.Context, file string) ([]envSetting, error) {
	text, err := readAll(ctx, file)
	if err != nil {
		return nil, cause(err)
	}
	var settings []envSetting
	for i, line := range strings.Split(strings.TrimPrefix(string(text), "\uFEFF"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "export "); ok {
			line = strings.TrimSpace(rest)
		}
		s, err := parseEnvLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", i+1, err)
		}
		settings = append(settings, s)
	}
	return settings, nil
}

func parseEnvLine(line string) (envSetting, error) {
	name, rest, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !ok {
		return envSetting{}, errNoEquals
	}
	if !envName().MatchString(name) {
		return envSetting{}, errEnvName
	}
	v, err := unquoteEnv(strings.TrimSpace(rest))
	if err != nil {
		return envSetting{}, err
	}
	if strings.ContainsRune(v, 0) {
		return envSetting{}, errNUL
	}
	return envSetting{name: name, value: &v}, nil
}

// unquoteEnv parses a value as a shell would, without expansion: 'unchanged', "with \n, \t, \"
// and \\", or bare up to a # after a space.
func unquoteEnv(s string) (string, error) {
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
		return unescapeEnv(s[1:])
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

func unescapeEnv(s string) (string, error) {
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
