package team

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/config"
)

// TestSettingsReachTheRules checks that a change of each setting for decisions changes the rules.
func TestSettingsReachTheRules(t *testing.T) {
	elsewhere := map[string]bool{"VerifyAttempts": true, "MaxLine": true} // of workspaces and of readers
	base := config.Alone(t.TempDir(), t.TempDir(), "a", nil)
	before, protocol := Rules(base)
	for _, part := range []any{&base.Scheduler, &base.Bus, &base.Protocol} {
		fields := reflect.ValueOf(part).Elem()
		for i := range fields.NumField() {
			name := fields.Type().Field(i).Name
			if elsewhere[name] {
				continue
			}
			field := fields.Field(i)
			kept := reflect.New(field.Type()).Elem()
			kept.Set(field)
			switch field.Interface().(type) {
			case bool:
				field.SetBool(!field.Bool())
			case int, int64, time.Duration:
				field.SetInt(field.Int() + 1)
			case string:
				field.SetString(field.String() + "x")
			case []string:
				field.Set(reflect.ValueOf([]string{"x"}))
			default:
				t.Fatalf("%s has a type that this test does not change", name)
			}
			after, next := Rules(base)
			require.False(t, reflect.DeepEqual(before, after) && protocol == next, "%s has no effect: add it to Rules", name)
			field.Set(kept)
		}
	}
}
