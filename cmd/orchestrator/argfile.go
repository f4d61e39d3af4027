package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// readArg is what a flag or an argument was given, named as the user wrote it: the
// text itself, @FILE for what is in a file, or - for what comes on stdin. The
// line end that editors and echo add is not meant.
func (a *app) readArg(what, value string) (string, error) {
	var text []byte
	var err error
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case value == "-":
		name = "stdin"
		text, err = readBounded(a.stdin)
	case isFile:
		text, err = readFile(a.path(name))
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
		return "", usageError(what+" cannot read "+name+": "+err.Error(), hint)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// mostGiven bounds what is read for one flag: no request may be larger.
const mostGiven = 16 << 20

func readBounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostGiven+1))
	if err == nil && len(text) > mostGiven {
		err = errors.New("it is larger than 16 MiB")
	}
	return text, err
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file)
}

// givenDocument is given for a flag that takes a JSON object; nil when it was
// not used.
func (a *app) givenDocument(flag, value string) (wire.Raw, error) {
	if value == "" {
		return nil, nil
	}
	text, err := a.readArg("--"+flag, value)
	if err != nil {
		return nil, err
	}
	document := wire.Raw(text)
	if !document.IsValid() || document.Kind() != '{' {
		return nil, usageError("--"+flag+" is no JSON object: "+plain.Clip(plain.OneLine(text), 60), `Write it as: --`+flag+` '{"key": "value"}', or --`+flag+` @FILE`)
	}
	return document, nil
}

// givenResult is given for a flag that takes a JSON object or any text. Text
// that begins as an object does was meant to be one.
func (a *app) givenResult(flag, value string) (wire.Raw, error) {
	if value == "" {
		return nil, nil
	}
	text, err := a.readArg("--"+flag, value)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return a.givenDocument(flag, text)
	}
	if document := wire.Raw(text); document.IsValid() && document.Kind() == '"' {
		return document, nil
	}
	return wire.Encode(text)
}
