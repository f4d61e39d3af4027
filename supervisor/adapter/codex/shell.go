package codex

import (
	"path"
	"slices"
	"strings"
)

// shells are the shells that the client runs commands with, and how it passes a command to them.
var (
	shells  = []string{"sh", "bash", "dash", "zsh"}
	options = []string{"-c", "-lc"}
)

// unwrapped returns a command without the shell around it, as the shell gets it. It returns the
// whole command if that is not sure: rules for permissions compare the result.
func unwrapped(command string) string {
	words, ok := split(command)
	if !ok || len(words) != 3 || !path.IsAbs(words[0]) || !slices.Contains(shells, path.Base(words[0])) || !slices.Contains(options, words[1]) {
		return command
	}
	return words[2]
}

// split splits a command into its words, as a POSIX shell does. It reports false if the command
// has anything but words: an operator, an expansion, or a quote without an end.
func split(command string) (words []string, ok bool) {
	var word []byte
	begun := false // a word, which may be empty
	for len(command) > 0 {
		c := command[0]
		command = command[1:]
		switch c {
		case ' ', '\t':
			if begun {
				words = append(words, string(word))
			}
			word, begun = nil, false
			continue
		case '\'':
			text, rest, ended := strings.Cut(command, "'")
			if !ended {
				return nil, false
			}
			word, command = append(word, text...), rest
		case '"':
			text, rest, ended := doubleQuoted(command)
			if !ended {
				return nil, false
			}
			word, command = append(word, text...), rest
		case '\\':
			if command == "" || command[0] == '\n' {
				return nil, false
			}
			word, command = append(word, command[0]), command[1:]
		default:
			if strings.IndexByte("\n\r|&;<>()$`*?[]{}!#~=%^", c) >= 0 {
				return nil, false
			}
			word = append(word, c)
		}
		begun = true
	}
	if begun {
		words = append(words, string(word))
	}
	return words, true
}

// doubleQuoted returns the text up to a double quote, and the rest after the quote. A backslash quotes only the
// characters that are special there.
func doubleQuoted(s string) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '$' || c == '`':
			return "", "", false
		case c == '\\' && i+1 < len(s) && s[i+1] == '\n': // it continues the line
			i++
		case c == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
