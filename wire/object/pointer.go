package object

import (
	"strconv"
	"strings"
)

// Below returns the pointer to a member.
func (r *Reader) Below(key string) string { return r.Pointer + "/" + escapes.Replace(key) }

// BelowItem returns the pointer to an item of a list.
func (r *Reader) BelowItem(key string, i int) string { return r.Below(key) + "/" + strconv.Itoa(i) }

// escapes escapes keys in a pointer, see RFC 6901.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// NameOf returns a pointer as messages show it: options[0].value for /payload/options/0/value.
func NameOf(pointer string) string {
	path := pathOf(pointer)
	if path == "" {
		if at := strings.LastIndexByte(pointer, '/'); at >= 0 && at < len(pointer)-1 {
			return pointer[at+1:]
		}
		return "the request"
	}
	return path
}

// pathOf returns a pointer as messages show it, relative to the payload; it is "" for the
// payload itself.
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

// clipped bounds a path, since its keys come from a sender.
func clipped(path string) string {
	const maxPath = 200
	if len(path) <= maxPath {
		return path
	}
	return strings.ToValidUTF8(path[:maxPath], "") + "…"
}

// unescapes reverts escapes.
var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

// isIndex reports whether a part of a pointer is an index into a list.
func isIndex(part string) bool {
	for i := range len(part) {
		if part[i] < '0' || part[i] > '9' {
			return false
		}
	}
	return part != ""
}

// Named returns the path of a member as messages show it.
func (r *Reader) Named(key string) string {
	if path := pathOf(r.Pointer); path != "" {
		return path + "." + clipped(key)
	}
	return clipped(key)
}
