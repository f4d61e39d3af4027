package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// page is a file that is worth compressing.
var page = strings.Repeat("<p>The team.</p>\n", 100)

// try serves files like the ones of the web view.
func try(method, path string, header ...string) *http.Response {
	h := serving(func() (map[string]*asset, error) {
		return pack(fstest.MapFS{
			"assets/index.html":      {Data: []byte(page)},
			"assets/app.js":          {Data: []byte(page)},
			"assets/app-0123abcd.js": {Data: []byte(page)},
			"assets/icon.svg":        {Data: []byte("<svg/>")},
			"assets/deep/style.css":  {Data: []byte("p{}")},
			"assets/vendor.sha256":   {Data: []byte("x")},
		}, "assets")
	})
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		kind   string
		cache  string
	}{
		"/ui/":                       {200, "text/html; charset=utf-8", "no-cache"},
		"/ui/tasks":                  {200, "text/html; charset=utf-8", "no-cache"},
		"/ui/tasks/8f6a/log":         {200, "text/html; charset=utf-8", "no-cache"},
		"/ui/assets/index.html":      {200, "text/html; charset=utf-8", "no-cache"},
		"/ui/assets/app.js":          {200, "text/javascript; charset=utf-8", "no-cache"},
		"/ui/assets/app-0123abcd.js": {200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		"/ui/assets/icon.svg":        {200, "image/svg+xml", "no-cache"},
		"/ui/assets/deep/style.css":  {200, "text/css; charset=utf-8", "no-cache"},
		"/ui/assets/vendor.sha256":   {200, "application/octet-stream", "no-cache"},
		"/ui/assets/missing":         {404, "text/plain; charset=utf-8", "no-cache"},
		"/ui/assets/../index.html":   {404, "text/plain; charset=utf-8", "no-cache"},
		"/ui/agents/a.b":             {200, "text/html; charset=utf-8", "no-cache"},
	} {
		answer := try(http.MethodGet, path)
		require.Equal(t, want.status, answer.StatusCode, path)
		require.Equal(t, want.kind, answer.Header.Get("Content-Type"), path)
		require.Equal(t, want.cache, answer.Header.Get("Cache-Control"), path)
		require.Equal(t, policy, answer.Header.Get("Content-Security-Policy"), path)
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", answer.Header.Get("Referrer-Policy"), path)
	}
}

func TestCompression(t *testing.T) {
	for accepted, packed := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "deflate": false, "GZIP": true, "gzip; q=x": false,
	} {
		answer := try(http.MethodGet, "/ui/", "Accept-Encoding", accepted)
		require.Equal(t, packed, answer.Header.Get("Content-Encoding") == "gzip", accepted)
		require.Equal(t, "Accept-Encoding", answer.Header.Get("Vary"))
		body := io.Reader(answer.Body)
		if packed {
			require.Less(t, answer.ContentLength, int64(len(page)))
			unpacked, err := gzip.NewReader(answer.Body)
			require.NoError(t, err)
			body = unpacked
		}
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, page, string(text))
	}
	require.Empty(t, try(http.MethodGet, "/ui/assets/icon.svg", "Accept-Encoding", "gzip").Header.Get("Content-Encoding"), "that would be longer")
}

func TestTags(t *testing.T) {
	plain := try(http.MethodGet, "/ui/").Header.Get("ETag")
	packed := try(http.MethodGet, "/ui/", "Accept-Encoding", "gzip").Header.Get("ETag")
	require.Regexp(t, `^"[\w-]{24}"$`, plain)
	require.NotEqual(t, plain, packed, "a strong tag is that of one encoding")
	for header, want := range map[string]int{plain: 304, `"x", W/` + plain: 304, "*": 304, packed: 200, `"x"`: 200} {
		answer := try(http.MethodGet, "/ui/", "If-None-Match", header)
		require.Equal(t, want, answer.StatusCode, header)
		require.Equal(t, plain, answer.Header.Get("ETag"))
	}
	head := try(http.MethodHead, "/ui/")
	text, err := io.ReadAll(head.Body)
	require.NoError(t, err)
	require.Empty(t, text)
	require.Equal(t, "1700", head.Header.Get("Content-Length"))
}

// The files of the program can be served.
func TestAssets(t *testing.T) {
	h := Assets()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui/", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "<!doctype html>")
}
