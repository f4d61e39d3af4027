package wire

import "github.com/go-json-experiment/json/jsontext"

// AppendQuoted appends a text as JSON.
func AppendQuoted(b []byte, text string) []byte { return appendText(b, text) }

// What is spelled most is spelled by these, without reflection. They append a
// member behind others.

func appendText(b []byte, text string) []byte {
	plain := true
	for i := 0; i < len(text) && plain; i++ {
		c := text[i]
		plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\'
	}
	if plain {
		b = append(b, '"')
		b = append(b, text...)
		return append(b, '"')
	}
	b, _ = jsontext.AppendQuote(b, text) // invalid UTF-8 is replaced, and said; it was checked on its way in
	return b
}

func appendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func appendMember(b []byte, key, text string) []byte { return appendText(appendKey(b, key), text) }

// appendSome leaves the member out when there is nothing to say.
func appendSome(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	return appendMember(b, key, text)
}

func appendOrNull(b []byte, key, text string) []byte {
	b = appendKey(b, key)
	if text == "" {
		return append(b, "null"...)
	}
	return appendText(b, text)
}

func appendRaw(b []byte, key string, value jsontext.Value) []byte {
	if value == nil {
		return b
	}
	return append(appendKey(b, key), value...)
}

func appendTexts(b []byte, key string, texts []string) []byte {
	b = append(appendKey(b, key), '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, text)
	}
	return append(b, ']')
}
