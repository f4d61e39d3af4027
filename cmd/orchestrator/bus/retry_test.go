package bus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// answering returns a client of a server that gives the answers in turn, and the number of requests so
// far. An answer is a status and a body; an empty answer refuses the connection.
func answering(a *cli.App, answers ...string) (*client.Client, *int) {
	asked := new(int)
	dial := func(context.Context) (net.Conn, error) {
		answer := answers[min(*asked, len(answers)-1)]
		*asked++
		if answer == "" {
			return nil, errors.New("connection refused")
		}
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			if _, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
				fmt.Fprintf(there, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", answer[:3], len(answer[4:]), answer[4:])
			}
		}()
		return here, nil
	}
	return a.NewClient(client.Target{Socket: "/none/api.sock", Dial: dial}), asked
}

// Every temporary error, and no other one, is retried with the pauses of the bus: the status
// decides, not the code or the form of the answer.
//
// Rows: E-57, E-58, E-60.
func TestRetries(t *testing.T) {
	const sent = `200 {"seq":7,"to_actor":"GO"}`
	refusal := func(status, code string) string { return status + ` {"error":{"code":"` + code + `","message":"no"}}` }
	for _, test := range []struct {
		name, answer string
		again        bool
	}{
		{"no quorum", refusal("503", "no_quorum"), true},
		{"another code", refusal("503", "busy"), true},
		{"timeout", refusal("504", "timeout"), true},
		{"internal", refusal("500", "internal"), true},
		{"page of a proxy", "502 <html>Bad gateway</html>", true},
		{"empty", "503 ", true},
		{"no connection", "", true},
		{"bad request with the code internal", refusal("400", "internal"), false},
		{"forbidden with the code internal", refusal("403", "internal"), false},
		{"page that is not there", "404 <html>Not found</html>", false},
		{"rate", refusal("429", "rate_limited"), false},
		{"conflict", refusal("409", "conflict"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ask := func(answers ...string) (time.Duration, int, error) {
					a := cli.New(cli.Env{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer)})
					d, asked := answering(a, answers...)
					begun := time.Now()
					_, err := askAgain(t.Context(), a, d, false, "send-message", wire.SendMessage{To: "GO", Key: "k"})
					return time.Since(begun), *asked, err
				}
				took, attempts, err := ask(test.answer, sent)
				if !test.again {
					require.Error(t, err)
					require.Equal(t, 1, attempts)
					require.False(t, cli.Temporary(err))
					return
				}
				require.NoError(t, err)
				require.Equal(t, 2, attempts)
				require.Equal(t, 2*time.Second, took)
				took, attempts, err = ask(test.answer)
				require.True(t, cli.Temporary(err), "%v", err)
				require.Equal(t, 4, attempts)
				require.Equal(t, 72*time.Second, took)
			})
		})
	}
}

// A message that was given up is a line of the incident file, as the Go library writes it.
//
// Rows: E-59.
func TestGivenUp(t *testing.T) {
	t.Chdir(t.TempDir())
	a := cli.New(cli.Env{})
	d, _ := answering(a, "503 ")
	_, err := d.Ask(t.Context(), "status", struct{}{})
	m := &wire.SendMessage{From: "PO:shop", To: "GO", Topic: "a.b", Payload: wire.Raw(`{"n":1.0}`), Key: "k-1"}
	f := cli.FailureOf(givenUp(d, m, err))
	require.Equal(t, []string{"The message is saved in bus-incidents.jsonl"}, f.Because)
	require.Contains(t, f.Hint, "--key k-1")
	line, err := os.ReadFile("bus-incidents.jsonl")
	require.NoError(t, err)
	var kept struct {
		Actor    string   `json:"actor"`
		To       string   `json:"to"`
		Topic    string   `json:"topic"`
		Key      string   `json:"key"`
		Payload  wire.Raw `json:"payload"`
		Attempts int      `json:"attempts"`
	}
	require.NoError(t, object.DecodeOwn(bytes.TrimSpace(line), &kept))
	require.Equal(t, "PO:shop GO a.b k-1 4", fmt.Sprint(kept.Actor, " ", kept.To, " ", kept.Topic, " ", kept.Key, " ", kept.Attempts))
	require.Equal(t, `{"n":1.0}`, string(kept.Payload))
}
