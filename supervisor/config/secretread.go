package config

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	secretCommandLimit = 10 * time.Second
	maxSecret          = mib
)

// read returns the value of a secret. Errors name its source.
func (s secret) read(ctx context.Context, c *Config, base []string) (string, error) {
	text, err := s.raw(ctx, c, base)
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(text, 0) {
		return "", errEnvNUL
	}
	return text, nil
}

func (s secret) raw(ctx context.Context, c *Config, base []string) (string, error) {
	switch {
	case s.file != "":
		text, err := readAll(ctx, s.file, maxSecret)
		if err != nil {
			return "", fmt.Errorf("file %s: %w", s.file, cause(err))
		}
		return withoutNewline(text), nil
	case s.env != "":
		if value, ok := lookup(base, s.env); ok {
			return value, nil
		}
		return "", fmt.Errorf("environment variable %q is not set", s.env)
	case len(s.command) > 0:
		return s.run(ctx, c, base)
	}
	return "", errNoSource
}

// run runs the secret's command without a shell and returns its output.
func (s secret) run(ctx context.Context, c *Config, base []string) (string, error) {
	if c.run == nil {
		return "", fmt.Errorf("command %q: %w", s.command[0], errNoRunner)
	}
	ctx, cancel := context.WithTimeout(ctx, secretCommandLimit)
	defer cancel()
	text, err := c.run(ctx, s.command, c.Dir, base)
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("command %q: no answer within %v", s.command[0], secretCommandLimit)
	case err != nil:
		return "", fmt.Errorf("command %q: %w", s.command[0], err)
	case int64(len(text)) > maxSecret:
		return "", fmt.Errorf("command %q: %w", s.command[0], errSecretTooLarge)
	}
	return withoutNewline(text), nil
}

// withoutNewline removes the one line end that editors and echo add.
func withoutNewline(text []byte) string {
	text = bytes.TrimSuffix(text, []byte("\n"))
	return string(bytes.TrimSuffix(text, []byte("\r")))
}
