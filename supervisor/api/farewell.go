package api

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// farewells counts the connections of a listener that are being turned away.
type farewells struct{ open atomic.Int32 }

// maxFarewells bounds the connections of a listener that get a reason when they are turned away. Each has a file
// descriptor and a goroutine until its client has read the answer. More are only closed.
const maxFarewells = 256

// away refuses a connection and closes it. It returns at once. The message needs no escapes.
func (f *farewells) away(conn net.Conn, status, code, message string) {
	if f.open.Add(1) > maxFarewells || usesReserve(conn) {
		f.open.Add(-1)
		_ = conn.Close()
		return
	}
	go func() {
		defer f.open.Add(-1)
		turnAway(linger(conn), status, code, message)
	}()
}

// requestTime is how long an answer waits for the first byte of its request. A client that has not
// begun a request takes an answer for a fault of the server.
const requestTime = time.Second

// turnAway answers a request with a refusal without reading it, and closes the connection.
func turnAway(conn net.Conn, status, code, message string) {
	_ = conn.SetReadDeadline(time.Now().Add(requestTime))
	if _, err := conn.Read(make([]byte, 1)); err == io.EOF {
		_ = conn.Close()
		return
	}
	text := `{"format_version":"1.0","error":{"code":"` + code + `","message":"` + message + `"}}` + "\n"
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 "+status+"\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	_ = conn.Close()
}
