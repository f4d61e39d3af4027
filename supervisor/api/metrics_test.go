package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

func figured(d *API) {
	d.Metrics = func(_ context.Context, to io.Writer) error {
		_, err := io.WriteString(to, "agents 2\n")
		return err
	}
}

// TestMetricsAccess checks that metrics have the access rule of the status, because they name
// agents.
func TestMetricsAccess(t *testing.T) {
	h := build(t, figured, TCP{})
	env, shut := h.run(t, "r1")
	defer shut()
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	tcp := func(header http.Header) asks { return asks{client: over(""), url: h.tcp.URL(), header: header} }
	for name, c := range map[string]struct {
		by   asks
		want int
	}{
		"operators' socket": {asks{client: over(h.socket)}, http.StatusOK},
		"socket of a run":   {asks{client: over(env[EnvSocket])}, http.StatusForbidden},
		"nobody":            {tcp(nil), http.StatusUnauthorized},
		"viewer":            {tcp(bearer(h.token(t, wire.PersonViewer))), http.StatusOK},
		"admin":             {tcp(bearer(h.token(t, wire.PersonAdmin))), http.StatusOK},
		"agent":             {tcp(bearer("orc_coder")), http.StatusForbidden},
		"actor":             {tcp(bearer("orc_far")), http.StatusForbidden},
		"wrong":             {tcp(bearer("orc_wrong")), http.StatusUnauthorized},
	} {
		response, text := c.by.do(t, http.MethodGet, metricsPath, "")
		require.Equal(t, c.want, response.StatusCode, name)
		if c.want == http.StatusOK {
			require.Equal(t, "agents 2", text, name)
			require.Equal(t, inFigures, response.Header.Get("Content-Type"), name)
		}
	}
	head, none := asks{client: over(h.socket)}.do(t, http.MethodHead, metricsPath, "")
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Empty(t, none)
}

// TestMetricsThatFail checks that metrics that fail halfway are an error.
func TestMetricsThatFail(t *testing.T) {
	h := build(t, func(d *API) {
		d.Metrics = func(_ context.Context, to io.Writer) error {
			_, _ = io.WriteString(to, "agents 2\n")
			return errors.New("it broke")
		}
	}, TCP{})
	response, text := asks{client: over(h.socket)}.do(t, http.MethodGet, metricsPath, "")
	require.Equal(t, http.StatusInternalServerError, response.StatusCode)
	require.NotContains(t, text, "agents 2")
	require.NotContains(t, text, "it broke")
}

// TestMetricsAreOptional checks that an API without metrics answers with 404.
func TestMetricsAreOptional(t *testing.T) {
	h := build(t, nil, TCP{})
	response, _ := asks{client: over(h.socket)}.do(t, http.MethodGet, metricsPath, "")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}
