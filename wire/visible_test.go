package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

// Rows: B-80, S-11.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                 "plain",
		"tab\tstays":            "tab\tstays",
		"":                      "",
		"naïve 日本 😀 👩‍👩‍👧":      "naïve 日本 😀 👩‍👩‍👧",
		"\x1b[31mred\x1b[0m":    "red",
		"\x1b[38;5;9mx":         "x",
		"\x1b[2Jgone":           `\x1b[2Jgone`,
		"\x1b]0;title\a":        `\x1b]0;title\x07`,
		"a\rb\bc\x7f":           `a\x0db\x08c\x7f`,
		"nul\x00":               `nul\x00`,
		"bad \xff\xfe utf-8":    `bad \xff\xfe utf-8`,
		"\u009b31m c1":          `\u009b31m c1`,
		"abc\u202etxt.exe":      `abc\u202etxt.exe`,
		"zero\u200bwidth":       `zero\u200bwidth`,
		"line\u2028separator":   `line\u2028separator`,
		"\ufffd is a character": "\ufffd is a character",
		"tag\U000e0041\u00ad":   `tag\U000e0041\u00ad`,
		"\u3164\u2063\u115f\ufe01\u2800\U000e0100":     `\u3164\u2063\u115f\ufe01\u2800\U000e0100`,
		"\U0001f469\u200d\U0001f680 \u2764\ufe0f":      "\U0001f469\u200d\U0001f680 \u2764\ufe0f",
		"e" + strings.Repeat("\u0301", 8):              "e" + strings.Repeat("\u0301", 8),
		"e" + strings.Repeat("\u0301", 10) + "x\u0301": "e" + strings.Repeat("\u0301", 8) + `\u0301\u0301` + "x\u0301",
		"e" + strings.Repeat("\u20dd\u200d", 9):        "e" + strings.Repeat("\u20dd\u200d", 8) + `\u20dd` + "\u200d",
		"\x1b[":                                        `\x1b[`,
		"\x1b[123":                                     `\x1b[123`,
	} {
		require.Equal(t, want, Visible(in))
	}
}

// Rows: S-11.
func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31mb\u202e\xff")
	f.Fuzz(func(t *testing.T, in string) {
		out := Visible(in)
		require.True(t, utf8.ValidString(out))
		for _, r := range out {
			require.False(t, r != '\t' && unicode.IsControl(r), "%q has the control character %q", out, r)
			require.False(t, treacherous(r))
		}
		require.Equal(t, out, Visible(out), "showing twice changes nothing")
	})
}

// FuzzVisibleJSON checks that JSON for a terminal shows every character, and says the same.
//
// Rows: S-12.
func FuzzVisibleJSON(f *testing.F) {
	f.Add("a\x7f\u009b\u202e\u2028\U000e0041\ufffd\u200d\\u202e")
	f.Fuzz(func(t *testing.T, in string) {
		text, err := object.Encode(map[string]string{in: in})
		require.NoError(t, err)
		out := AppendVisibleJSON(nil, text)
		for _, r := range string(out) {
			require.False(t, r == 0x7f || treacherous(r), "%q has the character %q", out, r)
		}
		var before, after map[string]string
		require.NoError(t, json.Unmarshal(text, &before))
		require.NoError(t, json.Unmarshal(out, &after))
		require.Equal(t, before, after)
	})
}

func TestShortIDs(t *testing.T) {
	for id, short := range map[string]string{
		"": "", "greeting-1": "greeting-1", "日本語-1": "日本語-1",
		"5b8aa5a2-d2c8-42e8-a21c-f37308d69df2": "5b8aa5a2", "5B8AA5A2-D2C8-42E8-A21C-F37308D69DF2": "5B8AA5A2",
		"5b8aa5a2-d2c8-42e8-a21c-f37308d69dfg": "5b8aa5a2-d2c8-42e8-a21c-",
		strings.Repeat("é", 30):                strings.Repeat("é", 24),
		strings.Repeat("é", 18):                strings.Repeat("é", 18),
	} {
		require.Equal(t, short, ShortID(id))
	}
}
