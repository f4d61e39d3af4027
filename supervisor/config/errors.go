package config

import (
	"errors"
	"io/fs"
)

var (
	errIsFolder = errors.New("it is a folder")
	errNotThere = errors.New("there is no such file")
	errNoFolder = errors.New("there is no such folder")

	errNoEquals   = errors.New("is not NAME=value")
	errEnvName    = errors.New("has no name a variable can have before its =")
	errOpenQuote  = errors.New("has a quote that does not end")
	errAfterQuote = errors.New("goes on after its closing quote")
	errNUL        = errors.New("holds a NUL byte")

	errBadEnvKey = errors.New("a variable's name is text without = in it")
	errEnvNUL    = errors.New("the value holds a NUL byte, which no program can be given")

	errNoRunner       = errors.New("commands of secrets cannot be run here")
	errNothingCame    = errors.New("nothing came from it in time")
	errNoSource       = errors.New("it has no source")
	errNotUTF8        = errors.New("it is not UTF-8 text, so it can only stand alone, as NAME = secret.name")
	errSecretTooLarge = errors.New("it is larger than 1 MiB")
)

// cause returns the reason of a file error without the path, which the message around it
// contains.
func cause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNotThere
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// folderCause is cause for a folder.
func folderCause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFolder
	}
	return cause(err)
}
