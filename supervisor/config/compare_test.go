package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/settings"
)

// needs returns the need of a change of each row.
func needs() map[string]settings.Action {
	all := map[string]settings.Action{}
	for _, r := range slices.Concat(new(Config).section().rows(""), new(Agent).section().rows("")) {
		all[r.name] = r.needs
	}
	return all
}

// mutate changes each leaf of a value in turn and calls try after each change.
func mutate(v reflect.Value, path string, try func(path string)) {
	for i := range v.NumField() {
		field, name := v.Field(i), path+v.Type().Field(i).Name
		if !field.CanSet() {
			continue
		}
		if field.Kind() == reflect.Struct && !strings.HasPrefix(name, "Capabilities") && name != "InheritEnv" {
			mutate(field, name+".", try)
			continue
		}
		before := reflect.ValueOf(field.Interface())
		switch field.Kind() {
		case reflect.String:
			field.SetString(field.String() + "x")
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.Int, reflect.Int64:
			field.SetInt(field.Int() + 1)
		case reflect.Float64:
			field.SetFloat(field.Float() + 1)
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Slice:
			field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
		case reflect.Struct:
			mutate(field, name+".", try)
			continue
		}
		try(name)
		field.Set(before)
	}
}

func TestCompareSeesEveryField(t *testing.T) {
	prev := load(t, "testdata/minimal.hcl", Options{})
	next := load(t, "testdata/minimal.hcl", Options{})
	known := map[string]bool{"Agent.Name": true, "Agent.Block": true, "Index": true, "Agent.Place": true}
	for _, derived := range []string{"Offers", "Abilities", "Environ", "MaxLine", "Raw", "Confine", "Client.Protocol"} { // from other attributes
		known["Agent."+derived] = true
	}
	for _, own := range []string{"Agent", "Run", "Dir", "Protocol", "Confined", "Conversation", "Door", "DoorEnv", "Patience", "Examine"} {
		known["Agent.Client.Opening."+own] = true // the supervisor's
	}
	rows, seen := needs(), 0
	check := func(path string) {
		if known[path] {
			return
		}
		changes := Compare(prev, next)
		require.NotEmpty(t, changes, "%s is compared by no row of a section", path)
		require.Len(t, changes, 1, path)
		require.Len(t, changes[0].Attributes, 1, path)
		require.Equal(t, rows[changes[0].Attributes[0]], changes[0].Action, path)
		seen++
	}
	mutate(reflect.ValueOf(&next.Agents[0]).Elem(), "", check)
	for _, block := range reflect.ValueOf(next).Elem().Fields() {
		if block.Kind() == reflect.Struct {
			mutate(block, "", check)
		}
	}
	require.Greater(t, seen, 60)
	require.Empty(t, Compare(prev, next))
}

func compared(t *testing.T, before, after string, o ...Options) []Change {
	t.Helper()
	o = append(o, Options{}, Options{})
	return Compare(load(t, config(t, before), o[0]), load(t, config(t, after), o[len(o)-2]))
}

func agentLike(name, line string) string {
	return "agent \"" + name + "\" {\n command = [\"x\"]\n dir = \"/\"\n output {\n dir = \"/log\"\n}\n" + line + "\n}\n"
}

const settled = "orchestrator {\n name = \"n\"\n state_dir = \"/s\"\n}\n"

func TestCompareAgents(t *testing.T) {
	before := settled + agentLike("a", "replicas = 2") + agentLike("b", "") + agentLike("c", "")
	after := settled + agentLike("a", "replicas = 3") + agentLike("b", "description = \"d\"\nprotocol = \"raw\"") + agentLike("d", "")
	require.Equal(t, []Change{
		{Agent: "a-2", Action: settings.ActionStart, Attributes: []string{"replicas"}, Place: "orchestrator.hcl:5", Detail: "is one more replica"},
		{Agent: "b", Action: settings.ActionRestart, Attributes: []string{"description", "protocol"}, Place: "orchestrator.hcl:13",
			Detail: "protocol takes effect only at a start; it is drained and restarted"},
		{Agent: "d", Action: settings.ActionStart, Place: "orchestrator.hcl:22", Detail: "is new"},
		{Agent: "c", Action: settings.ActionStop, Place: "orchestrator.hcl:21", Detail: "is no longer declared"},
	}, compared(t, before, after))
}

func TestCompareRefused(t *testing.T) {
	changes := compared(t, settled+"http {\n rate = 1\n}\n", settled+"http {\n rate = 2\n}\nlog {\n level = \"debug\"\n}\n")
	require.Len(t, changes, 2)
	require.Equal(t, settings.ActionRefused, changes[0].Action)
	require.Empty(t, changes[0].Agent)
	require.Equal(t, "orchestrator.hcl:6", changes[0].Place)
	require.Equal(t, settings.ActionLive, changes[1].Action)
}

func TestCompareEnv(t *testing.T) {
	const secrets = "secret \"k\" {\n file = \"/k\"\n}\nsecret \"other\" {\n file = \"/o\"\n}\nvariable \"v\" { default = \"1\" }\n" + settled
	env := func(text string) string { return secrets + agentLike("a", "env = "+text) }
	plain := env(`{ K = secret.k, A = "x" }`)
	for name, c := range map[string]struct {
		before, after string
		changed       bool
	}{
		"spaces and comments":     {plain, env("{\n # why\n K = secret.k,\n A = \"x\" }"), false},
		"a value":                 {plain, env(`{ K = secret.k, A = "y" }`), true},
		"another secret":          {plain, env(`{ K = secret.other, A = "x" }`), true},
		"the secret's definition": {plain, strings.Replace(plain, `"/k"`, `"/k2"`, 1), true},
		"a secret not used":       {plain, strings.Replace(plain, `"/o"`, `"/o2"`, 1), false},
		"a variable beside it": {env(`{ K = "${var.v}${secret.k}" }`),
			strings.Replace(env(`{ K = "${var.v}${secret.k}" }`), `"1"`, `"2"`, 1), true},
		"the same value said otherwise": {env(`{ A = "xy" }`), env(`{ A = "x${"y"}" }`), false},
		"null":                          {env(`{ A = null }`), env(`{}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			changes := compared(t, c.before, c.after)
			if !c.changed {
				require.Empty(t, changes)
				return
			}
			require.Len(t, changes, 1)
			require.Equal(t, []string{"env"}, changes[0].Attributes)
			require.Equal(t, settings.ActionRestart, changes[0].Action)
		})
	}
}

func TestCompareWithNothing(t *testing.T) {
	c := load(t, "testdata/minimal.hcl", Options{})
	require.Equal(t, settings.ActionStart, Compare(nil, c)[0].Action)
	require.Equal(t, settings.ActionStop, Compare(c, nil)[0].Action)
	require.Empty(t, Compare(nil, nil))
}
