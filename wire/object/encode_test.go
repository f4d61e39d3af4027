package object

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// document has lists and a member that may be missing.
type document struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Agents  []string `json:"agents"`
	Started string   `json:"started_at,omitzero"`
}

func TestEncodeSpelling(t *testing.T) {
	text, err := Encode(document{Name: "a", Command: []string{"a > b & <c>"}})
	require.NoError(t, err)
	require.Contains(t, string(text), `"command":["a > b & <c>"]`, "no \\u003e")
	require.Contains(t, string(text), `"agents":[]`, "lists are never null")
	require.NotContains(t, string(text), "started_at", "what is not there is left out")
}

func TestAppendText(t *testing.T) {
	for _, text := range []string{"", "plain", "twelve bytes", "a \"quote\"", `a \ in it`, "del \x7f", "nul \x00", "a line\n", "é", "no UTF-8 \xff", "long enough for words of eight \t"} {
		want, _ := jsontext.AppendQuote([]byte("before "), text)
		require.Equal(t, string(want), string(AppendText([]byte("before "), text)), "%q", text)
	}
}

func TestReplaced(t *testing.T) {
	for document, want := range map[string]string{
		`{"a":"cut \ud83d"}`:                           "{\"a\":\"cut \ufffd\"}",
		`{"a":"\uDE00","b":1.50}`:                      "{\"a\":\"\ufffd\",\"b\":1.50}",
		"{\"a\":\"cut \xf0\x9f\"}":                     "{\"a\":\"cut \ufffd\ufffd\"}",
		`{"a": "\ud83d\ude00"}`:                        `{"a":"😀"}`,
		`{"a": "\\ud83d", "b": [9007199254740993000]}`: `{"a":"\\ud83d","b":[9007199254740993000]}`,
		`{"a": "\u00e4"}`:                              `{"a": "\u00e4"}`,
		"no JSON \xff":                                 "no JSON \xff",
	} {
		before := []byte(document)
		require.Equal(t, want, string(Replaced(before)), document)
		require.Equal(t, document, string(before), "it is not changed")
	}
}

func TestDecodeIsStrict(t *testing.T) {
	var r document
	require.NoError(t, Decode([]byte(`{"agents":["a"],"later":1}`), &r), "newer keys are passed over")
	require.Equal(t, []string{"a"}, r.Agents)
	for _, bad := range []string{`{"agents":["a"],"agents":["b"]}`, `{"agents":["a"]} {}`, `{"agents":"a"}`, `{`, "{\"agents\":[\"\xff\"]}"} {
		require.Error(t, Decode([]byte(bad), &r), bad)
	}
	r = document{}
	require.NoError(t, Decode([]byte(`{"AGENTS":["a"]}`), &r))
	require.Empty(t, r.Agents, "keys are exact")
}
