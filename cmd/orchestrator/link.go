package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"orchestrator/supervisor/api"
)

// link is the client's end of a pipe.
type link struct {
	net.Conn
	in *bufio.Reader // what came behind the answer may be in it
}

func (l *link) Read(p []byte) (int, error) { return l.in.Read(p) }

// leave says that nothing more will be said. What there is to hear is still
// heard.
func (l *link) leave() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// join makes a connection a pipe. Its errors are failures where the
// orchestrator has refused, and those of the connection otherwise.
func (d *client) join(ctx context.Context, query url.Values) (*link, error) {
	if d.target.url != "" {
		return nil, usageError("a pipe goes through a socket, and "+d.target.url+" is elsewhere", "Run it on the machine of the orchestrator; or register there: orchestrator help http")
	}
	conn, err := api.Dial(ctx, d.target.socket)
	if err != nil {
		return nil, err
	}
	unhand := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l, err := d.upgrade(conn, query)
	if !unhand() && err == nil { // closed meanwhile
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// upgrade asks for the pipe.
func (d *client) upgrade(conn net.Conn, query url.Values) (*link, error) {
	request, err := http.NewRequest(http.MethodPost, "http://localhost/api/v1/pipe?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", api.PipeProtocol)
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		return nil, d.refused(response)
	}
	return &link{Conn: conn, in: in}, nil
}
