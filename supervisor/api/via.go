package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"

	"orchestrator/wire/object"
)

// Via describes how the caller's request came, as members of a JSON object for the audit: the
// process at the other end of a unix socket, or the address, and the id of the credential. Each
// member begins with a comma.
func (c Caller) Via() string { return c.via }

// via returns the Via of a request.
func via(r *http.Request, c Caller) string {
	b := make([]byte, 0, 96)
	if p, _ := r.Context().Value(peerKey{}).(*peer); p != nil && p.PID != 0 {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(p.PID), 10)
		b = object.AppendText(append(b, `,"program":`...), p.Program)
	} else if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		b = object.AppendText(append(b, `,"address":`...), r.RemoteAddr)
	}
	id := c.token
	if c.key != nil {
		id = keyID(c)
	}
	if id != "" {
		b = object.AppendText(append(b, `,"credential":`...), id)
	}
	return string(b)
}

// keyID returns the id of a caller's key or token, as the operation that issued it gave it.
func keyID(c Caller) string {
	sum := sha256.Sum256([]byte(*c.key))
	id := hex.EncodeToString(sum[:4])
	if c.Kind == Outsider {
		return "a" + id
	}
	return "k" + id
}
