package config

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A secret is the source of a secret. Exactly one of its fields is set.
type secret struct {
	file    string // absolute
	env     string
	command []string
}

// definition returns a text that identifies the source of the secret.
func (s secret) definition() string {
	return fmt.Sprintf("%q %q %q", s.file, s.env, s.command)
}

// secrets reads the secret blocks, but no values of secrets.
func (r *reader) secrets(blocks hcl.Blocks) {
	seen := map[string]hcl.Range{}
	for _, b := range blocks {
		if !r.unique(seen, b) {
			continue
		}
		name := b.Labels[0]
		if !hclsyntax.ValidIdentifier(name) {
			r.report(b.LabelRanges[0], Problem{
				Code: "config/bad-name", Summary: "Bad name",
				Detail: "You refer to a secret as secret.NAME, so its name can have only letters, digits, - and _, and must start with a letter.",
			})
		}
		s := r.secret(b)
		r.config.secrets[name] = s
		if s.env != "" {
			r.config.withheld[s.env] = true
		}
	}
}

func (r *reader) secret(b *hcl.Block) secret {
	var s secret
	set := r.read(b.Body, r.scope, section{
		title: fmt.Sprintf("Secret %q", b.Labels[0]),
		path:  "secret." + b.Labels[0],
		attributes: []attribute{
			attr("file", &s.file, path(r.config.absolute)),
			attr("env", &s.env, word),
			attr("command", &s.command, argv),
		},
	})
	if len(set) != 1 {
		given := "none is set"
		if len(set) > 1 {
			given = strings.Join(slices.Sorted(maps.Keys(set)), " and ") + " are set"
		}
		r.report(b.DefRange, Problem{
			Code: "config/bad-secret", Summary: "A secret has one source",
			Detail: fmt.Sprintf("Secret %q needs exactly one of file, env and command; %s.", b.Labels[0], given),
		})
	}
	return s
}

// hiddenSecrets returns the object named secret while the file is read. It has every secret,
// with an unknown value.
func (c *Config) hiddenSecrets() cty.Value {
	object := map[string]cty.Value{}
	for name := range c.secrets {
		object[name] = cty.UnknownVal(cty.String).Mark(sensitive)
	}
	return cty.ObjectVal(object)
}

// argv reads a command: a list of words, the program first.
func argv(into *[]string, v value) {
	if v.cty.Type() == cty.String {
		v.reject("command-is-text", "Command is not a list",
			v.name+` must be a list of words, for example ["node", "coder.mjs"]; to run it through a shell use ["sh", "-c", "…"].`, "")
		return
	}
	var list []string
	words(&list, v)
	isEmpty := v.cty.CanIterateElements() && v.cty.LengthInt() == 0
	if isEmpty || len(list) > 0 && list[0] == "" {
		v.reject("empty-command", "Empty command", v.name+" needs the program to run as its first word.", "")
		return
	}
	if slices.ContainsFunc(list, func(s string) bool { return strings.ContainsRune(s, 0) }) {
		v.reject("bad-command", "Bad command", "A word of "+v.name+" contains a NUL byte, which cannot be passed to a program.", "")
		return
	}
	*into = list
}

// prefix reads the words before a command. An empty list removes the words of the defaults.
func prefix(into *[]string, v value) {
	if ty := v.cty.Type(); (ty.IsTupleType() || ty.IsListType()) && v.cty.LengthInt() == 0 {
		*into = nil
		return
	}
	argv(into, v)
}

// secretCommandLimit is how long the command of a secret may take.
const secretCommandLimit = 10 * time.Second

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
		text, err := readAll(ctx, s.file)
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
	case int64(len(text)) > maxFile:
		return "", fmt.Errorf("command %q: %w", s.command[0], errSecretTooLarge)
	}
	return withoutNewline(text), nil
}

// withoutNewline removes the one line end that editors and echo add.
func withoutNewline(text []byte) string {
	text = bytes.TrimSuffix(text, []byte("\n"))
	return string(bytes.TrimSuffix(text, []byte("\r")))
}
