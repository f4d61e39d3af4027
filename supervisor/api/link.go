package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/identity"
)

// hostActor starts the bus actors of hosts. The token of such an actor lets the host join.
const hostActor = "HO:"

// toLink admits hosts.
func toLink(c identity.Caller, _ *http.Request) *wire.Error {
	if c.Kind == identity.Outsider && strings.HasPrefix(c.Name, hostActor) {
		return nil
	}
	hint := "Create one at the hub: orchestrator token issue --actor HO:NAME"
	if c.Kind == identity.Unknown {
		return unauthenticated("this needs the token of a host", hint)
	}
	return &wire.Error{Code: wire.CodeDenied, Message: "this is for hosts, and the caller is " + displayName(c), Hint: hint}
}

// revocation is how often the credential of a host is checked.
const revocation = time.Second

// link serves the link of a host until it ends. The link ends when the token of the host is revoked.
func (api *API) link(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r.Context())
	if !strings.EqualFold(r.Header.Get("Upgrade"), hostlink.Protocol) {
		api.refuse(w, r, &wire.Error{
			Code: wire.CodeInvalid, Message: r.URL.Path + " is a link: it takes a request that asks for an upgrade to " + hostlink.Protocol,
			Hint: "orchestrator join URL",
		})
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		api.refuse(w, r, err)
		return
	}
	defer conn.Close()
	if err := acceptLink(conn); err != nil {
		return
	}
	c.account.begin()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		ticker := time.NewTicker(revocation)
		defer ticker.Stop()
		for !api.lapsed(c) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		_ = conn.Close()
	}()
	name := strings.TrimPrefix(c.who.Name, hostActor)
	if err := api.Link(name, r.RemoteAddr, conn, buffered.Reader); err != nil {
		api.Log.Debug("the link of a host has ended", "host", name, "error", err)
	}
}

// acceptLink confirms that a connection is a link from now on.
func acceptLink(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", hostlink.Protocol)
	if err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// DialLink asks for a link through a connection to a hub at a host name. It returns a *wire.Error if the
// hub refuses.
func DialLink(conn net.Conn, host, token string) (*bufio.Reader, error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, "http://"+host+hostlink.Path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", hostlink.Protocol)
	request.Header.Set("Authorization", "Bearer "+token)
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		refusal, err := decode[wire.Refusal](text)
		if err != nil || refusal.Error == nil {
			return nil, fmt.Errorf("the server there is not an orchestrator (HTTP %s)", response.Status)
		}
		return nil, refusal.Error
	}
	return in, conn.SetDeadline(time.Time{})
}
