package object

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// Place returns the position of a member's value in an object. The value must be a slice of the
// object that keeps its capacity, since that gives the position.
func Place(document []byte, key string) (from, to int, ok bool) {
	members, _, _ := Scan(document, AnyDepth, nil)
	value := Once(members, key)
	if value == nil {
		return 0, 0, false
	}
	from = cap(document) - cap(value)
	return from, from + len(value), true
}

// Once returns the value of a member, or nil if its key is missing or a duplicate.
func Once(members []Member, key string) []byte {
	var found []byte
	for i := range members {
		if string(members[i].Key) != key {
			continue
		}
		if found != nil {
			return nil
		}
		found = members[i].Value
	}
	return found
}

// OpenCopy splits a whole message into its members. The document is a copy that outlives the
// line.
func OpenCopy(line []byte, depth int) (document Raw, members []Member, err *Error) {
	document = Clone(bytes.TrimSpace(line))
	members, why, ok := Scan(document, depth, nil)
	if !ok {
		if why == "" {
			why = "it must be an object"
		}
		return nil, nil, Invalid("", "the message: "+why)
	}
	return document, members, nil
}

// Sum returns the checksum of several texts. Each is preceded by its length, so that the
// boundaries count.
func Sum(parts ...[]byte) uint64 {
	sum := fnv.New64a()
	for _, part := range parts {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = sum.Write(part)
	}
	return sum.Sum64()
}

func IsRun(text string, of func(byte) bool) bool {
	for i := range len(text) {
		if !of(text[i]) {
			return false
		}
	}
	return text != ""
}

func IsAlphanumeric(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

// isUUID reports whether a text is a UUID in the usual form: 8-4-4-4-12.
func IsUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// CanonicalID returns a UUID in lower case, as RFC 9562 requires, and any other id unchanged.
func CanonicalID(id string) string {
	if IsUUID(id) {
		return strings.ToLower(id)
	}
	return id
}
