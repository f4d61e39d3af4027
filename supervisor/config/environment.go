package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// An environment is an agent's env. It is stored as expressions, because they mention secrets
// that are read at each start.
type environment struct {
	whole hcl.Expression
	pairs []hcl.KeyValuePair // the pairs of a literal map, else nil
	scope *scope             // has unknown values for secrets
	// print is equal for environments that give the same variables while the secrets keep their
	// values. It is a digest, so that no value of env() is stored.
	print [sha256.Size]byte
}

// environment reads an env and checks it as far as possible without secrets.
func (r *reader) environment(expr hcl.Expression, sc *scope) environment {
	e := environment{whole: expr, scope: sc.with("secret", r.config.hiddenSecrets())}
	before := len(r.problems)
	if pairs, diags := hcl.ExprMap(expr); !diags.HasErrors() {
		e.pairs = pairs
		for _, pair := range pairs {
			r.checkPair(pair, e.scope)
		}
	} else if v, ok := r.evaluate(expr, e.scope); ok {
		r.checkMap(v, expr)
	}
	if len(r.problems) == before {
		e.print = r.fingerprint(e)
	}
	return e
}

func (r *reader) checkPair(pair hcl.KeyValuePair, sc *scope) {
	key, ok := r.evaluate(pair.Key, sc)
	if ok && key.IsWhollyKnown() {
		if _, err := envKey(key); err != nil {
			r.badEnv(pair.Key, err)
		}
	}
	v, ok := r.evaluate(pair.Value, sc)
	if !ok {
		return
	}
	if _, err := envValue(v); err != nil {
		r.badEnv(pair.Value, err)
	}
}

func (r *reader) checkMap(v cty.Value, expr hcl.Expression) {
	bare, _ := v.UnmarkDeep()
	ty := bare.Type()
	switch {
	case ty == cty.DynamicPseudoType, bare.IsNull(), !bare.IsKnown():
		return
	case !ty.IsObjectType() && !ty.IsMapType():
		r.badEnv(expr, fmt.Errorf("env must be a map such as { NAME = \"value\" }, not %s", kindOf(bare)))
		return
	}
	for key, element := range bare.AsValueMap() {
		if _, err := envKey(cty.StringVal(key)); err != nil {
			r.badEnv(expr, err)
		}
		if _, err := envValue(element); err != nil {
			r.badEnv(expr, err)
		}
	}
}

func (r *reader) badEnv(expr hcl.Expression, err error) {
	r.report(expr.Range(), Problem{Code: "config/bad-env", Summary: "Bad environment", Detail: upperFirst(err.Error()) + "."})
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func envKey(v cty.Value) (string, error) {
	bare, _ := v.UnmarkDeep()
	s, err := convert.Convert(bare, cty.String)
	if err != nil || s.IsNull() || s.AsString() == "" || strings.ContainsAny(s.AsString(), "=\x00") {
		return "", errBadEnvKey
	}
	return s.AsString(), nil
}

// envValue returns a variable's value, or nil for null and for an unknown secret.
func envValue(v cty.Value) (*string, error) {
	bare, _ := v.UnmarkDeep()
	if bare.IsNull() {
		return nil, nil
	}
	s, err := convert.Convert(bare, cty.String)
	if err != nil {
		return nil, fmt.Errorf("a variable's value is text, not %s", kindOf(bare))
	}
	if !s.IsKnown() || s.IsNull() {
		return nil, nil
	}
	text := s.AsString()
	if strings.ContainsRune(text, 0) {
		return nil, errEnvNUL
	}
	return &text, nil
}

// fingerprint returns a digest of the known values of an env. If the env mentions secrets, the digest also covers its
// text, their definitions, and other references. Within the values, the definition replaces the secret, which detects a
// change in "${var.prefix}-${secret.key}".
func (r *reader) fingerprint(e environment) [sha256.Size]byte {
	h := sha256.New()
	names, all := mentioned(e.whole, "secret")
	standIns := map[string]cty.Value{}
	for name, s := range r.config.secrets {
		standIns[name] = cty.StringVal(s.definition())
		if all && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	v, diags := work(e.whole, e.scope.with("secret", cty.ObjectVal(standIns)))
	if !diags.HasErrors() {
		bare, _ := v.UnmarkDeep()
		fmt.Fprintf(h, "%#v\n", bare)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(h, "%s %s\n", name, r.config.secrets[name].definition())
	}
	if len(names) > 0 {
		h.Write([]byte(r.sources.plainText(e.whole)))
		for _, t := range e.whole.Variables() {
			if root := t.RootName(); root != "secret" {
				v, _ := t.TraverseAbs(&hcl.EvalContext{Variables: e.scope.roots})
				bare, _ := v.UnmarkDeep()
				fmt.Fprintf(h, "%#v\n", bare)
			}
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Environ returns the environment for one start of an agent: the inherited variables of base, then the variables that
// name its user, its env files, then its env, where null removes a variable. Files and secrets are read again at each
// call. Variables named ORC_* are not inherited, except ORC_VAR_*, nor by default variables that look like credentials.
// The sources of secrets and of sensitive variables are not inherited either; only env passes them on. Errors name the
// agent, the variable and the cause, but no value.
func (c *Config) Environ(ctx context.Context, a *Agent, base []string) ([]string, error) {
	return c.environWith(ctx, a, base, func(string) bool { return true })
}

// VerifyEnviron is Environ for the commands that set up and verify the work of an agent. They run files that other
// agents have written, so values that may be secret are left out unless VerifyEnv names them: values from env files,
// and values of expressions that mention secrets, sensitive variables, env() and file().
func (c *Config) VerifyEnviron(ctx context.Context, a *Agent, base []string) ([]string, error) {
	return c.environWith(ctx, a, base, func(name string) bool { return slices.Contains(a.VerifyEnv, name) })
}

// environWith returns the environment of an agent, with those values that may be secret which reveal chooses by name.
func (c *Config) environWith(ctx context.Context, a *Agent, base []string, reveal func(name string) bool) ([]string, error) {
	e := &envBuilder{values: map[string]string{}}
	c.inherit(e, a, base)
	if err := e.applyUser(a); err != nil {
		return nil, err
	}
	for _, file := range a.EnvFile {
		settings, err := readEnvFile(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("agent %q: environment file %s: %w", a.Name, file, err)
		}
		e.apply(slices.DeleteFunc(settings, func(s envSetting) bool { return s.value != nil && !reveal(s.name) }))
	}
	settings, err := c.envOf(ctx, a, base, reveal)
	if err != nil {
		return nil, fmt.Errorf("agent %q: %w", a.Name, err)
	}
	e.apply(settings)
	return e.list(), nil
}

// inherit sets the variables of base that an agent inherits.
func (c *Config) inherit(e *envBuilder, a *Agent, base []string) {
	for _, pair := range base {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" && a.inherits(name) && !c.withheld[name] && !a.withholds(name) {
			e.set(name, value)
		}
	}
}

// Inherited returns the variables of base that reach an agent unchanged: inherited ones that its env does not set or
// remove. It reads no secrets and no env files.
func (c *Config) Inherited(a *Agent, base []string) []string {
	e := &envBuilder{values: map[string]string{}}
	c.inherit(e, a, base)
	var own []envSetting
	for _, name := range a.ownNames() {
		own = append(own, envSetting{name: name})
	}
	e.apply(own)
	return e.list()
}

// Secrets returns the names of the secrets that the env of an agent mentions.
func (c *Config) Secrets(a *Agent) []string {
	if a.env.whole == nil {
		return nil
	}
	names, all := mentioned(a.env.whole, "secret")
	if all {
		return slices.Sorted(maps.Keys(c.secrets))
	}
	slices.Sort(names)
	return names
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

// envOf evaluates an agent's env with the secrets that it mentions, as far as they are revealed.
func (c *Config) envOf(ctx context.Context, a *Agent, base []string, reveal func(name string) bool) ([]envSetting, error) {
	if a.env.whole == nil {
		return nil, nil
	}
	l := &secretReader{config: c, base: base, lent: map[string]string{}}
	if a.env.pairs == nil {
		v, err := l.work(ctx, a.env.whole, a.env.scope)
		if err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		settings, err := settingsOf(v)
		if secret := maySecret(a.env.whole, a.env.scope); secret {
			settings = slices.DeleteFunc(settings, func(s envSetting) bool { return s.value != nil && !reveal(s.name) })
		}
		return settings, err
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
		if maySecret(pair.Value, a.env.scope) && !reveal(name) {
			continue
		}
		text, err := l.text(ctx, pair.Value, a.env.scope)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		settings = append(settings, envSetting{name: name, value: text})
	}
	return settings, nil
}

// maySecret reports whether the value of an expression may be secret.
func maySecret(expr hcl.Expression, sc *scope) bool {
	if names, all := mentioned(expr, "secret"); len(names) > 0 || all {
		return true
	}
	v, _ := work(expr, sc)
	return v.ContainsMarked()
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
