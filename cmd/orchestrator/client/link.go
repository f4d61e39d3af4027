package client

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"orchestrator/supervisor/api"
)

// A Link is the client's end of a pipe.
type Link struct {
	net.Conn
	in *bufio.Reader // may hold bytes that follow the response
}

// Read reads what the orchestrator sends through the pipe.
func (l *Link) Read(p []byte) (int, error) { return l.in.Read(p) }

// Leave closes the link for writing. It stays open for reading.
func (l *Link) Leave() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// Join opens a pipe through the socket of the target. It returns errors as they are, for
// [Client.Failed].
func (c *Client) Join(ctx context.Context, query url.Values) (*Link, error) {
	conn, err := api.Dial(ctx, c.Target.Socket)
	if err != nil {
		return nil, err
	}
	unhand := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l, err := upgrade(conn, query)
	if !unhand() && err == nil { // closed meanwhile
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// upgrade sends the request for the pipe and reads the response.
func upgrade(conn net.Conn, query url.Values) (*Link, error) {
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
		return nil, refused(response)
	}
	return &Link{Conn: conn, in: in}, nil
}
