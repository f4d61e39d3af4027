package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Environ returns the environment for one start of an agent: the inherited variables of base,
// then its env files, then its env, where null removes a variable. Files and secrets are read
// again at each call. Variables named ORC_* are not inherited, except ORC_VAR_*. The sources of
// secrets and of sensitive variables are not inherited either; only env passes them on. Errors
// name the agent, the variable and the cause, but no value.
func (c *Config) Environ(ctx context.Context, a *Agent, base []string) ([]string, error) {
	e := &envBuilder{values: map[string]string{}}
	for _, pair := range base {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" && a.InheritEnv.passes(name) && !c.withheld[name] {
			e.set(name, value)
		}
	}
	for _, file := range a.EnvFile {
		settings, err := readEnvFile(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("agent %q: environment file %s: %w", a.Name, file, err)
		}
		e.apply(settings)
	}
	settings, err := c.envOf(ctx, a, base)
	if err != nil {
		return nil, fmt.Errorf("agent %q: %w", a.Name, err)
	}
	e.apply(settings)
	return e.list(), nil
}

func (i InheritEnv) passes(name string) bool {
	if strings.HasPrefix(name, "ORC_") && !strings.HasPrefix(name, "ORC_VAR_") {
		return false
	}
	return i.All || slices.Contains(i.Names, name)
}

// An envBuilder collects an environment. Variables keep the order of their first setting, so
// that every start gets the same order.
type envBuilder struct {
	order  []string
	values map[string]string
}

func (e *envBuilder) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

func (e *envBuilder) apply(settings []envSetting) {
	for _, s := range settings {
		if s.value != nil {
			e.set(s.name, *s.value)
			continue
		}
		if _, ok := e.values[s.name]; ok {
			delete(e.values, s.name)
			e.order = slices.DeleteFunc(e.order, func(name string) bool { return name == s.name })
		}
	}
}

func (e *envBuilder) list() []string {
	list := make([]string, 0, len(e.order))
	for _, name := range e.order {
		list = append(list, name+"="+e.values[name])
	}
	return list
}

// envOf evaluates an agent's env with the secrets that it mentions.
func (c *Config) envOf(ctx context.Context, a *Agent, base []string) ([]envSetting, error) {
	if a.env.whole == nil {
		return nil, nil
	}
	l := &secretReader{config: c, base: base, lent: map[string]string{}}
	if a.env.pairs == nil {
		v, err := l.work(ctx, a.env.whole, a.env.scope)
		if err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		return settingsOf(v)
	}
	var settings []envSetting
	for _, pair := range a.env.pairs {
		key, err := l.work(ctx, pair.Key, a.env.scope)
		if err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		name, err := envKey(key)
		if err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		text, err := l.text(ctx, pair.Value, a.env.scope)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		settings = append(settings, envSetting{name: name, value: text})
	}
	return settings, nil
}

func settingsOf(v cty.Value) ([]envSetting, error) {
	bare, _ := v.UnmarkDeep()
	if bare.IsNull() || !bare.CanIterateElements() {
		return nil, nil
	}
	var settings []envSetting
	for it := bare.ElementIterator(); it.Next(); {
		key, element := it.Element()
		name, err := envKey(key)
		if err != nil {
			return nil, err
		}
		text, err := envValue(element)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		settings = append(settings, envSetting{name: name, value: text})
	}
	return settings, nil
}

// A secretReader reads the secrets for one start, each at most once.
type secretReader struct {
	config *Config
	base   []string
	lent   map[string]string
}

// text returns a variable's value, or nil to remove the variable. It does not evaluate a secret
// that stands alone, because the expression library normalizes text and would change the bytes
// of a key.
func (sr *secretReader) text(ctx context.Context, expr hcl.Expression, sc *scope) (*string, error) {
	if t, ok := expr.(*hclsyntax.ScopeTraversalExpr); ok && len(t.Traversal) == 2 && t.Traversal.RootName() == "secret" {
		if name, ok := step(t.Traversal); ok {
			if err := sr.lend(ctx, name); err != nil {
				return nil, err
			}
			s := sr.lent[name]
			return &s, nil
		}
	}
	v, err := sr.work(ctx, expr, sc)
	if err != nil {
		return nil, err
	}
	return envValue(v)
}

// lend reads a secret unless this start has read it already.
func (sr *secretReader) lend(ctx context.Context, name string) error {
	if _, ok := sr.lent[name]; ok {
		return nil
	}
	s, err := sr.config.secrets[name].read(ctx, sr.config, sr.base)
	if err != nil {
		return fmt.Errorf("secret %q: %w", name, err)
	}
	sr.lent[name] = s
	return nil
}

// work evaluates an expression with the secrets that it mentions. Only the summary of an error
// is passed on, because the detail may quote a value.
func (sr *secretReader) work(ctx context.Context, expr hcl.Expression, sc *scope) (cty.Value, error) {
	names, all := mentioned(expr, "secret")
	if all {
		for name := range sr.config.secrets {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	object := map[string]cty.Value{}
	for _, name := range names {
		if err := sr.lend(ctx, name); err != nil {
			return cty.NilVal, err
		}
		if !utf8.ValidString(sr.lent[name]) {
			return cty.NilVal, fmt.Errorf("secret %q: %w", name, errNotUTF8)
		}
		object[name] = cty.StringVal(sr.lent[name]).Mark(sensitive)
	}
	v, diags := work(expr, sc.with("secret", cty.ObjectVal(object)))
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			return cty.NilVal, fmt.Errorf("%s", strings.ToLower(d.Summary))
		}
	}
	return v, nil
}
