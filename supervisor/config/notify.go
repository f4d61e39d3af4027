package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"orchestrator/supervisor/config/storeurl"
)

// NotifyWords lists the occasions of notifications, for notify.on.
var NotifyWords = []string{"question", "failed", "done", "budget"}

// Notify holds the occasions and the ways of notifications to people.
type Notify struct {
	On       []string
	Bell     bool // of the terminal
	OSC      bool // notifications of the terminal
	Command  []string
	Webhook  string // a URL; "" without one, or if it is a secret
	HookFrom string // the name of a secret with the URL
	Secret   string // the name of a secret with the key of the signature
	Quiet    string // such as 22:00-07:00
	From, To time.Duration
}

// notify returns the block with the ways of notifications.
func (r *reader) notify(n *Notify) child {
	return child{kind: "notify", attributes: []attribute{
		attr("on", &n.On, someOf(NotifyWords)),
		attr("bell", &n.Bell, truth),
		attr("osc", &n.OSC, truth),
		attr("command", &n.Command, argv),
		raw("webhook", func(a *hcl.Attribute) { r.webhook(a, n) }),
		raw("secret", func(a *hcl.Attribute) {
			r.secretNamed(a, "notify.secret", &n.Secret, "secret must refer to a secret block, for example secret.webhook: the signing key must not be in this file.")
		}),
		attr("quiet", n, hours),
	}, check: func(b *hcl.Block, set map[string]hcl.Range) {
		if at, ok := set["secret"]; ok && set["webhook"].Empty() {
			r.report(at, Problem{Code: "config/no-webhook", Summary: "Secret without a webhook", Detail: "secret is the key that signs messages to webhook, and no webhook is set."})
		}
		if !n.Bell && !n.OSC && set["command"].Empty() && set["webhook"].Empty() {
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/tells-nobody", Summary: "Nobody is notified",
				Detail: "notify sets no bell, osc, command or webhook.",
			})
		}
	}}.live(n)
}

// someOf reads a list of some of the words.
func someOf(known []string) func(*[]string, value) {
	return func(into *[]string, v value) {
		items, ok := v.items("a list of words")
		if !ok {
			return
		}
		*into = []string{}
		for _, item := range items {
			var one string
			if choice(known...)(&one, item); one != "" {
				*into = append(*into, one)
			}
		}
	}
}

// webhook reads a URL, or the name of a secret that has it.
func (r *reader) webhook(a *hcl.Attribute, n *Notify) {
	if names, _ := mentioned(a.Expr, "secret"); len(names) > 0 {
		r.secretNamed(a, "notify.webhook", &n.HookFrom, "webhook must be a URL, or only a secret, for example secret.hook.")
		return
	}
	v, given := r.value(a.Expr, a.Name, r.scope)
	if !given {
		return
	}
	if text, ok := v.asText(); ok && storeurl.IsWebhook(text) {
		n.Webhook = text
	} else if ok {
		v.reject("bad-url", "Bad URL", "webhook must be an https:// URL, or an http:// URL of this machine, without a user name.", "")
	}
}

// hours reads the quiet hours of a day.
func hours(n *Notify, v value) {
	text, ok := v.asText()
	if !ok || text == "" {
		return
	}
	from, to, two := strings.Cut(text, "-")
	begin, err := time.Parse("15:04", from)
	end, endErr := time.Parse("15:04", to)
	if !two || err != nil || endErr != nil || begin.Equal(end) {
		v.reject("bad-hours", "Bad hours", fmt.Sprintf("quiet must be two times of the day, for example \"22:00-07:00\", not %s.", v.quoted()), "")
		return
	}
	midnight := begin.Truncate(24 * time.Hour)
	n.Quiet, n.From, n.To = text, begin.Sub(midnight), end.Sub(midnight)
}

// secretNamed reads which secret block an attribute names. what explains the problem if it names none.
func (r *reader) secretNamed(a *hcl.Attribute, path string, into *string, what string) {
	names, all := mentioned(a.Expr, "secret")
	if all || len(names) != 1 {
		r.report(a.Range, Problem{Code: "config/bad-credentials", Summary: "Credentials are not a secret", Detail: what})
		return
	}
	*into = names[0]
	r.config.references[path] = a.Expr
	if _, ok := r.config.secrets[names[0]]; !ok {
		r.report(a.Range, Problem{Code: "config/bad-expression", Summary: "Unknown secret", Detail: fmt.Sprintf("The secret %q does not exist.", names[0])})
	}
}

// SecretOf returns the secret that an attribute such as store.credentials names, or "" if the file does not set it. base
// is the environment of this program.
func (c *Config) SecretOf(ctx context.Context, attribute string, base []string) (string, error) {
	expr := c.references[attribute]
	if expr == nil {
		return "", nil
	}
	sr := &secretReader{config: c, base: base, lent: map[string]string{}}
	text, err := sr.text(ctx, expr, &scope{roots: map[string]cty.Value{}})
	if err != nil {
		return "", fmt.Errorf("%s: %w", attribute, err)
	}
	if text == nil || *text == "" {
		names, _ := mentioned(expr, "secret")
		return "", fmt.Errorf("%s: secret %q is empty", attribute, slices.Max(names))
	}
	return *text, nil
}
