package config

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

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

// environment reads an env and checks what can be checked without secrets.
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
		r.badEnv(expr, fmt.Errorf("env is a map such as { NAME = \"value\" }, not %s", kindOf(bare)))
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

// fingerprint returns a digest of the known values of an env. If the env mentions secrets, the
// digest also covers its text, their definitions, and what else it mentions. Within the values,
// the definition replaces the secret, which detects a change in "${var.prefix}-${secret.key}".
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
		h.Write([]byte(r.plainText(e.whole)))
		for _, t := range e.whole.Variables() {
			if root := t.RootName(); root != "secret" {
				v, _ := t.TraverseAbs(e.scope.context())
				bare, _ := v.UnmarkDeep()
				fmt.Fprintf(h, "%#v\n", bare)
			}
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// plainText returns the source of an expression without spaces and comments.
func (r *reader) plainText(expr hcl.Expression) string {
	at := expr.Range()
	src := r.sources[at.Filename]
	if src == nil || at.End.Byte > len(src.text) || at.Start.Byte > at.End.Byte {
		return ""
	}
	text := src.text[at.Start.Byte:at.End.Byte]
	tokens, _ := hclsyntax.LexExpression(text, "", hcl.InitialPos)
	var b strings.Builder
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenComment && t.Type != hclsyntax.TokenNewline {
			b.Write(t.Bytes)
			b.WriteByte(' ')
		}
	}
	return b.String()
}
