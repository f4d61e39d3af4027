package wire

import (
	"strconv"
	"strings"
)

// below is the pointer to a member.
func (o *Object) below(key string) string { return o.pointer + "/" + escapes.Replace(key) }

// belowItem is the pointer to an item of a list.
func (o *Object) belowItem(key string, i int) string { return o.below(key) + "/" + strconv.Itoa(i) }

// escapes are those of keys in a pointer (RFC 6901).
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// nameOf spells a pointer for messages: options[0].value for /payload/options/0/value.
func nameOf(pointer string) string {
	path := pathOf(pointer)
	if path == "" {
		if at := strings.LastIndexByte(pointer, '/'); at >= 0 && at < len(pointer)-1 {
			return pointer[at+1:]
		}
		return "the request"
	}
	return path
}

// pathOf spells a pointer from inside what holds the fields of a request: it is ""
// for that itself.
func pathOf(pointer string) string {
	// A session message that the API is given is a message within a body.
	for _, holder := range [...]string{"/params", "/payload", "/message", "/payload"} {
		if rest, ok := strings.CutPrefix(pointer, holder); ok && (rest == "" || rest[0] == '/') {
			pointer = rest
		}
	}
	var path strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = unescapes.Replace(part)
		switch {
		case isIndex(part) && path.Len() > 0:
			path.WriteString("[" + part + "]")
		case path.Len() > 0:
			path.WriteString("." + part)
		default:
			path.WriteString(part)
		}
	}
	return clipped(path.String())
}

// clipped bounds a path: its keys are those of a sender.
func clipped(path string) string {
	const maxPath = 200
	if len(path) <= maxPath {
		return path
	}
	return strings.ToValidUTF8(path[:maxPath], "") + "…"
}

// unescapes are those of keys in a pointer, undone.
var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

// isIndex reports whether a part of a pointer counts the items of a list.
func isIndex(part string) bool {
	for i := range len(part) {
		if part[i] < '0' || part[i] > '9' {
			return false
		}
	}
	return part != ""
}

// named spells a member for messages: its key, after the path to the object.
func (o *Object) named(key string) string {
	if path := pathOf(o.pointer); path != "" {
		return path + "." + clipped(key)
	}
	return clipped(key)
}
