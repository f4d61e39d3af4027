package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// ReadArg returns the text given with a flag or an argument: the text itself, the contents
// of FILE for @FILE, or stdin for "-". It removes the line end that editors and echo add.
// Errors call the flag what.
func ReadArg(a *App, what, value string) (string, error) {
	var text []byte
	var err error
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case value == "-":
		name = "stdin"
		text, err = readBounded(a.Stdin)
	case isFile:
		text, err = ReadFile(a.Path(name))
	default:
		return value, nil
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err != nil {
		hint := "Write the text itself"
		if isFile {
			hint = "For text that begins with @ use stdin: " + what + " -"
		}
		return "", UsageError(what+" cannot read "+name+": "+err.Error(), hint)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// maxGiven is the maximum size of an argument, which is also that of a request.
const maxGiven = 16 << 20

func readBounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxGiven+1))
	if err == nil && len(text) > maxGiven {
		err = errors.New("it is larger than 16 MiB")
	}
	return text, err
}

// ReadFile reads a file of at most maxGiven bytes.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file)
}

// GivenDocument returns the JSON object given with a flag, or nil without the flag.
func GivenDocument(a *App, flag, value string) (wire.Raw, error) {
	if value == "" {
		return nil, nil
	}
	text, err := ReadArg(a, "--"+flag, value)
	if err != nil {
		return nil, err
	}
	document := wire.Raw(text)
	if !document.IsValid() || document.Kind() != '{' {
		return nil, UsageError("--"+flag+" is no JSON object: "+term.Clip(term.OneLine(text), 60), `Write it as: --`+flag+` '{"key": "value"}', or --`+flag+` @FILE`)
	}
	return document, nil
}

// GivenResult returns the JSON object or text given with a flag. A text that begins with {
// must be a valid object.
func GivenResult(a *App, flag, value string) (wire.Raw, error) {
	if value == "" {
		return nil, nil
	}
	text, err := ReadArg(a, "--"+flag, value)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return GivenDocument(a, flag, text)
	}
	if document := wire.Raw(text); document.IsValid() && document.Kind() == '"' {
		return document, nil
	}
	return object.Encode(text)
}

// Quoted puts quotes around the words of a command that need them.
func Quoted(words []string) []string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = term.Word(word)
	}
	return shown
}

// NotEmpty returns an error for a flag that is given an empty value. In a script that is
// usually an unset variable.
func NotEmpty(verb *cobra.Command, names ...string) error {
	for _, name := range names {
		if flag := verb.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return UsageError("--"+name+" is empty", "Leave it out, or say what it is")
		}
	}
	return nil
}

// ReplaceFile replaces a file atomically. It follows links and keeps the file's mode. A new
// file has the mode that the umask allows.
func ReplaceFile(path string, text []byte) error {
	var rights fs.FileMode
	if target, err := filepath.EvalSymlinks(path); err == nil {
		info, err := os.Stat(target)
		if err != nil {
			return err
		}
		path, rights = target, info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".orchestrator-new-%d", os.Getpid()))
	next, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err == nil && rights != 0 {
		err = next.Chmod(rights)
	}
	if closing := next.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
