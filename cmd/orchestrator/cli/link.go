package cli

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"orchestrator/supervisor/api"
)

// Link is the client's end of a pipe.
type Link struct {
	net.Conn
	in *bufio.Reader // what came behind the answer may be in it
}

func (l *Link) Read(p []byte) (int, error) { return l.in.Read(p) }

// Leave says that nothing more will be said. What there is to hear is still
// heard.
func (l *Link) Leave() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// Join makes a connection a pipe. Its errors are failures where the
// orchestrator has refused, and those of the connection otherwise.
func (d *Client) Join(ctx context.Context, query url.Values) (*Link, error) {
	if d.Target.URL != "" {
		return nil, UsageError("a pipe goes through a socket, and "+d.Target.URL+" is elsewhere", "Run it on the machine of the orchestrator; or register there: orchestrator help http")
	}
	conn, err := api.Dial(ctx, d.Target.Socket)
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
func (d *Client) upgrade(conn net.Conn, query url.Values) (*Link, error) {
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
	return &Link{Conn: conn, in: in}, nil
}
