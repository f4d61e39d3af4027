package state

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Values that are written in different ways.
var (
	oddTexts = []string{"", "t", "a \"quote\" and \\", "é <&> \u2028", "cut \xff", "a line\n\x00\x7f", "12345678 1234567\t"}
	oddRaws  = []string{`null`, `{"a":1.50,"b":[]}`, `{"a": 1}`, `"\u00e9 \\ x"`, ` 7`, `[1,"a b",{"c":{}}]`, `1E5`, `"\ud800"`, `{"a":1,"a":2}`}
	oddReals = []float64{0, 0.5, 1, -0.25, 1e-7, 123456.789, 1e6, 1e22, 1.0 / 3}
)

// fill gives a value and its members values of the tables, or none.
func fill(random *rand.Rand, v reflect.Value) {
	if random.IntN(3) == 0 {
		return
	}
	if v.Type() == reflect.TypeFor[wire.Raw]() {
		v.SetBytes([]byte(oddRaws[random.IntN(len(oddRaws))]))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(oddTexts[random.IntN(len(oddTexts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(random.Int64N(2000) - 1000)
	case reflect.Uint64:
		v.SetUint(random.Uint64())
	case reflect.Float64:
		v.SetFloat(oddReals[random.IntN(len(oddReals))])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(3), 3))
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(random, f)
			}
		}
	}
}

// TestEncode checks that facts are written as by reflection, and the most frequent ones without it. Members that are
// rare are left out of most facts, so that most of them are plain.
func TestEncode(t *testing.T) {
	rare := map[string]bool{"Dependencies": true, "Verify": true, "Block": true, "Observability": true, "Delegated": true, "Artifacts": true}
	for kind, empty := range Facts {
		random, plain := rand.New(rand.NewPCG(1, 2)), 0
		const rounds = 2000
		for round := range rounds {
			f := empty()
			v := reflect.ValueOf(f).Elem()
			for i := range v.NumField() {
				if field := v.Type().Field(i); v.Field(i).CanSet() && field.Tag.Get("json") != "-" && !(rare[field.Name] && round%10 > 0) {
					fill(random, v.Field(i))
				}
			}
			got, gotErr := Encode(f)
			want, wantErr := object.Encode(f)
			require.Equal(t, wantErr == nil, gotErr == nil, kind)
			require.Equal(t, string(want), string(got), kind)
			if _, ok := appendPlain(nil, f); ok {
				plain++
			}
		}
		switch empty().(type) {
		case *TaskCreated, *TaskAssigned, *TaskStarted, *TaskProgress, *TaskDone:
			require.Greater(t, plain, rounds/20, kind)
		default:
			require.Zero(t, plain, kind)
		}
	}
}

// TestEncodeAllocates checks that a plain fact costs the memory of its text.
func TestEncodeAllocates(t *testing.T) {
	key := &RequestKey{ID: "1", Run: "r", Timestamp: "2026-11-21T10:00:00Z", Sum: 1 << 60}
	for _, f := range []Fact{
		&TaskCreated{ID: "t", Name: "n", Type: "w", Payload: wire.Raw(`{"a":[1,2]}`), RequiredCapabilities: []string{"go"}, Request: key},
		&TaskAssigned{ID: "t", Agent: "a", Run: "r", Attempt: 1},
		&TaskStarted{ID: "t", Agent: "a", Request: key},
		&TaskProgress{ID: "t", Progress: 0.5, Message: "half"},
		&TaskDone{ID: "t", Result: wire.Raw(`{"ok":true}`), Request: key},
	} {
		require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { _, _ = Encode(f) }), f.kind())
	}
}
