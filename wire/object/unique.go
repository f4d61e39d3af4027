package object

import (
	"bytes"
	"slices"
	"strconv"
)

// RefuseDuplicate returns the error that a key occurs twice in an object, at any depth of a valid
// value. It returns nil if none does. Programs disagree about which of the two members counts, so a
// value with both is not passed on.
func RefuseDuplicate(value []byte, pointer string) *Error {
	below := duplicateIn(value)
	if below == "" {
		return nil
	}
	pointer += below
	return Invalid(pointer, NameOf(pointer)+" stands twice")
}

// duplicateIn returns the pointer to a key that occurs twice in a value, or "".
func duplicateIn(value []byte) string {
	if value[0] != '{' && value[0] != '[' {
		return ""
	}
	u := uniqueKeys{Scanner{Text: value, room: AnyDepth}}
	pointer, _ := u.value()
	return pointer
}

// A uniqueKeys looks for duplicate keys in a valid value.
type uniqueKeys struct{ Scanner }

// value looks in the next value. It returns the pointer to a duplicate, relative to the value.
func (u *uniqueKeys) value() (pointer string, found bool) {
	u.Space()
	if u.At >= len(u.Text) {
		return "", false
	}
	switch u.Text[u.At] {
	case '{':
		return u.object()
	case '[':
		return u.array()
	}
	u.Scanner.value()
	return "", false
}

func (u *uniqueKeys) object() (pointer string, found bool) {
	u.At++
	var few [fewKeys][]byte // most objects have no more
	keys := few[:0]
	for !u.Next('}') {
		u.Next(',')
		u.Space()
		at := u.At
		u.Quoted()
		key := Unquote(u.Text[at:u.At])
		keys = append(keys, key)
		u.Next(':')
		if pointer, found = u.value(); found {
			return "/" + escapes.Replace(string(key)) + pointer, true
		}
	}
	if i := duplicateOf(keys); i >= 0 {
		return "/" + escapes.Replace(string(keys[i])), true
	}
	return "", false
}

func (u *uniqueKeys) array() (pointer string, found bool) {
	u.At++
	for i := 0; !u.Next(']'); i++ {
		u.Next(',')
		if pointer, found = u.value(); found {
			return "/" + strconv.Itoa(i) + pointer, true
		}
	}
	return "", false
}

// fewKeys is up to how many keys comparing each with each is faster than sorting.
const fewKeys = 8

// duplicateOf returns the index of a key that occurs twice, or -1. It may reorder keys.
func duplicateOf(keys [][]byte) int {
	if len(keys) > fewKeys {
		slices.SortFunc(keys, bytes.Compare)
		for i := range len(keys) - 1 {
			if bytes.Equal(keys[i], keys[i+1]) {
				return i
			}
		}
		return -1
	}
	for i := range keys {
		for j := range i {
			if bytes.Equal(keys[i], keys[j]) {
				return i
			}
		}
	}
	return -1
}
