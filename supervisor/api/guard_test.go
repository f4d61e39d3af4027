package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows: A-164, K-06.
func TestContentTypes(t *testing.T) {
	h := build(t, nil, TCP{})
	for value, good := range map[string]bool{
		"application/json":                  true,
		"application/json; charset=utf-8":   true,
		"Application/JSON;charset=UTF-8":    true,
		`application/json; charset="utf-8"`: true,
		"application/json; charset=latin1":  false,
		"application/json; charset=":        false,
		"application/jsonl":                 false,
		"application/vnd.x+json":            false,
		"application/x-www-form-urlencoded": false,
		"text/plain":                        false,
		"text/plain, application/json":      false,
		"multipart/form-data; boundary=x":   false,
		"json":                              false,
		"":                                  false,
	} {
		for _, way := range []asks{{client: over(""), url: h.tcp.URL()}, {client: over(h.socket)}} {
			for _, path := range []string{"operations/look", "server/tasks", "servers/register"} {
				way.header = http.Header{"X-Api-Key": {"orc_coder"}, "Content-Type": {value}}
				status, text := way.post(t, path, "{}")
				want := http.StatusOK
				if !good {
					want = http.StatusUnsupportedMediaType
					require.Contains(t, text, `"code":"media_type"`)
				}
				require.Equal(t, want, status, "%q at %s: %s", value, path, text)
				status, _ = way.post(t, path, "")
				require.Equal(t, http.StatusOK, status, "without a body there is nothing to read")
			}
		}
	}
	a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {"orc_coder"}}}
	status, _ := a.post(t, "operations/look", "{}")
	require.Equal(t, http.StatusOK, status, "who says nothing says JSON")
	a.header["Content-Type"] = []string{"application/json", "text/plain"}
	status, _ = a.post(t, "operations/look", "{}")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	delete(a.header, "Content-Type")
	a.header["Content-Encoding"] = []string{"gzip"}
	status, _ = a.post(t, "operations/look", "{}")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
}

// Rows: A-164, K-06.
func TestBodyThatIsTooLarge(t *testing.T) {
	h := build(t, nil, TCP{})
	a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {"orc_coder"}}}
	status, _ := a.post(t, "operations/look", "{}"+strings.Repeat(" ", 1<<10-2))
	require.Equal(t, http.StatusOK, status)
	status, text := a.post(t, "operations/look", "{}"+strings.Repeat(" ", 1<<10-1))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, text, `"code":"too_large"`)
}

// TestStrangersBodyIsNotRead checks that the body of an unauthenticated caller is not read.
func TestStrangersBodyIsNotRead(t *testing.T) {
	h := build(t, nil, TCP{})
	request, err := http.NewRequest(http.MethodPost, h.tcp.URL()+"/api/v1/tasks", neverRead{t})
	require.NoError(t, err)
	request.ContentLength = 1 << 20
	request.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 1 << 40}}
	response, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("the door has asked for it")
	return 0, http.ErrBodyNotAllowed
}
