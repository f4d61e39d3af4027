package config

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functionTable returns the functions that expressions may call. env and file return sensitive
// values, because their content may be secret.
func (r *reader) functionTable() map[string]function.Function {
	return map[string]function.Function{
		"abspath": r.abspathFunction(),
		"env":     r.envFunction(),
		"file":    r.fileFunction(),

		"tobool":   stdlib.MakeToFunc(cty.Bool),
		"tonumber": stdlib.MakeToFunc(cty.Number),
		"tostring": stdlib.MakeToFunc(cty.String),

		"coalesce":   stdlib.CoalesceFunc,
		"compact":    stdlib.CompactFunc,
		"concat":     stdlib.ConcatFunc,
		"contains":   stdlib.ContainsFunc,
		"distinct":   stdlib.DistinctFunc,
		"element":    stdlib.ElementFunc,
		"flatten":    stdlib.FlattenFunc,
		"format":     stdlib.FormatFunc,
		"join":       stdlib.JoinFunc,
		"jsondecode": stdlib.JSONDecodeFunc,
		"jsonencode": stdlib.JSONEncodeFunc,
		"keys":       stdlib.KeysFunc,
		"length":     stdlib.LengthFunc,
		"lookup":     stdlib.LookupFunc,
		"lower":      stdlib.LowerFunc,
		"max":        stdlib.MaxFunc,
		"merge":      stdlib.MergeFunc,
		"min":        stdlib.MinFunc,
		"range":      stdlib.RangeFunc,
		"replace":    stdlib.ReplaceFunc,
		"sort":       stdlib.SortFunc,
		"split":      stdlib.SplitFunc,
		"substr":     stdlib.SubstrFunc,
		"trimprefix": stdlib.TrimPrefixFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc,
		"upper":      stdlib.UpperFunc,
		"values":     stdlib.ValuesFunc,
	}
}

// hush returns s marked as sensitive, and remembers it for masked.
func (r *reader) hush(s string) cty.Value {
	r.remember(s)
	return cty.StringVal(s).Mark(sensitive)
}

func (r *reader) remember(s string) {
	// A short value would also match parts of ordinary words.
	const shortest = 8
	if len(s) >= shortest {
		r.sensitive = append(r.sensitive, s)
	}
}

func (r *reader) envFunction() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, "env takes a name and one default")
			}
			if r.options.NoEnv {
				return cty.UnknownVal(cty.String).Mark(sensitive), nil
			}
			name := args[0].AsString()
			if value, ok := lookup(r.options.Environ, name); ok {
				return r.hush(strings.ToValidUTF8(value, "\uFFFD")), nil
			}
			if len(args) == 2 {
				return args[1].Mark(sensitive), nil
			}
			return cty.NilVal, function.NewArgErrorf(0,
				"Environment variable %q is not set; give a default as the second argument, env(%q, \"...\")", name, name)
		},
	})
}

func (r *reader) fileFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			file := r.config.absolute(args[0].AsString())
			text, err := readAll(context.Background(), file, mib)
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "%s cannot be read: %v", file, cause(err))
			}
			return r.hush(strings.ToValidUTF8(string(text), "\uFFFD")), nil
		},
	})
}

func (r *reader) abspathFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(r.config.absolute(args[0].AsString())), nil
		},
	})
}

// absolute resolves a path of the file: ~/ is the home folder, everything else
// is relative to the file.
func (c *Config) absolute(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok && c.home != "" {
		return filepath.Join(c.home, rest)
	}
	if p == "~" && c.home != "" {
		return c.home
	}
	return within(c.Dir, p)
}

// within returns p, relative to dir unless it is absolute.
func within(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// expression returns a func that compiles a regular expression at its first call. Every command
// links this package, but most read no file.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
