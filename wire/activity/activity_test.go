package activity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

// Sums can be written, also of events that were recorded before their cost was bounded.
func TestUsed(t *testing.T) {
	for name, test := range map[string]struct {
		add  []Used
		want string
	}{
		"nothing":             {want: `{}`},
		"sums":                {add: []Used{{Input: 1, Output: 2, Cost: 0.25, Currency: "USD"}, {Input: 3, Output: 4, Cost: 0.5, Currency: "USD"}}, want: `{"input":4,"output":6,"cost":0.75,"currency":"USD"}`},
		"another currency":    {add: []Used{{Cost: 0.25, Currency: "USD"}, {Cost: 0.5, Currency: "EUR"}}, want: `{"cost":0.25,"currency":"USD"}`},
		"costs without bound": {add: []Used{{Cost: math.MaxFloat64, Currency: "USD"}, {Cost: math.MaxFloat64, Currency: "USD"}}, want: `{"cost":9007199254740991,"currency":"USD"}`},
		"tokens without end": {
			add:  []Used{{Input: object.MaxWhole, Output: 1}, {Input: object.MaxWhole, Output: object.MaxWhole}},
			want: `{"input":9007199254740991,"output":9007199254740991}`,
		},
	} {
		var u Used
		for _, more := range test.add {
			u.Add(more)
		}
		text, err := object.Encode(u)
		require.NoError(t, err, name)
		require.Equal(t, test.want, string(text), name)
	}
}
