package config

import (
	"slices"
	"strings"
)

// credentialWords are the words in names of variables with credentials.
var credentialWords = []string{
	"KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "PGPASSWORD", "CREDENTIAL", "CREDENTIALS",
	"AUTH", "PAT", "DSN", "JWT", "COOKIE", "PRIVATE",
}

// IsCredential reports whether a variable looks like a credential.
func IsCredential(name string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToUpper(name), "_"), func(word string) bool { return slices.Contains(credentialWords, word) })
}

// vendorKeys are the credentials that the client of each protocol uses to sign in to the vendor of its model. An agent
// of the protocol inherits them by default: without them, a team that init has written would not work for people who
// sign in by a key. Clients of the Agent Client Protocol use any vendor.
var vendorKeys = map[string][]string{
	ProtocolClaude: anthropicKeys,
	ProtocolCodex:  openAIKeys,
	ProtocolACP:    slices.Concat(anthropicKeys, openAIKeys, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY"}),
}

var (
	anthropicKeys = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}
	openAIKeys    = []string{"OPENAI_API_KEY", "CODEX_API_KEY"}
)

// inherits reports whether a variable of the orchestrator reaches an agent.
func (a *Agent) inherits(name string) bool {
	switch {
	case strings.HasPrefix(name, "ORC_") && !strings.HasPrefix(name, "ORC_VAR_"):
		return false
	case a.InheritEnv.Ordinary:
		return !IsCredential(name) || slices.Contains(vendorKeys[a.Protocol], name)
	}
	return a.InheritEnv.All || slices.Contains(a.InheritEnv.Names, name)
}

// LeftOut returns the names of the variables of base that look like credentials and that an agent therefore does not
// inherit. It leaves out variables that an agent sets by its env, and the sources of secrets.
func (c *Config) LeftOut(base []string) (names []string) {
	for i := range c.Agents {
		a := &c.Agents[i]
		own := a.ownNames()
		for _, pair := range base {
			name, value, _ := strings.Cut(pair, "=")
			if a.InheritEnv.Ordinary && value != "" && IsCredential(name) && !a.inherits(name) && !c.withheld[name] && !slices.Contains(own, name) && !strings.HasPrefix(name, "ORC_") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MaySetPath reports whether programs of an agent may be found elsewhere than in the PATH of the orchestrator.
func (a *Agent) MaySetPath() bool {
	return len(a.EnvFile) > 0 || a.User != "" || slices.Contains(a.ownNames(), "PATH")
}

// ownNames returns the names of the variables that the env of an agent sets or removes.
func (a *Agent) ownNames() (names []string) {
	for _, pair := range a.env.pairs {
		if key, diags := work(pair.Key, a.env.scope); !diags.HasErrors() {
			if name, err := envKey(key); err == nil {
				names = append(names, name)
			}
		}
	}
	if a.env.whole != nil && a.env.pairs == nil {
		if v, diags := work(a.env.whole, a.env.scope); !diags.HasErrors() && v.IsKnown() {
			settings, _ := settingsOf(v)
			for _, s := range settings {
				names = append(names, s.name)
			}
		}
	}
	return names
}
