package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var files embed.FS

// Paths of the pages and their files.
const (
	pagesPath  = "/ui/"
	assetsPath = pagesPath + "assets/"
	indexName  = "index.html"
)

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// An asset is a file in its transmitted form.
type asset struct {
	name      string
	text      []byte
	packed    []byte // with gzip; nil if that is not shorter
	tag       string // without quotes
	mediaType string
	hashed    bool // its name has a hash, so its content never changes
}

// Assets returns the handler of the pages. Each other path below /ui/ is a page, which
// the program in index.html shows. The files are compressed when they are first asked for.
func Assets() http.Handler {
	return serving(sync.OnceValues(func() (map[string]*asset, error) { return pack(files, "assets") }))
}

// serving returns a handler of files.
func serving(load func() (map[string]*asset, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		assets, err := load()
		if err != nil {
			http.Error(w, "the files of the web view cannot be read", http.StatusInternalServerError)
			return
		}
		name, ok := nameOf(r.URL.Path)
		file := assets[name]
		if !ok || file == nil {
			h.Set("Cache-Control", "no-cache")
			http.Error(w, "there is no such file in the web view", http.StatusNotFound)
			return
		}
		file.serve(w, r)
	})
}

// nameOf returns the name of the file for a path.
func nameOf(asked string) (name string, ok bool) {
	if name, ok := strings.CutPrefix(asked, assetsPath); ok && name != "" {
		return name, true
	}
	return indexName, strings.HasPrefix(asked, pagesPath)
}

// serve answers with the file.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h, text, tag := w.Header(), a.text, a.tag
	h.Set("Cache-Control", "no-cache")
	if a.hashed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", a.mediaType)
	if a.packed != nil {
		h.Add("Vary", "Accept-Encoding")
		if takesGzip(r.Header) {
			text, tag = a.packed, tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
		}
	}
	tag = strconv.Quote(tag)
	h.Set("ETag", tag)
	if matches(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // a browser that is gone has no use for it
	}
}

// takesGzip reports whether a client accepts gzip.
func takesGzip(h http.Header) bool {
	for word := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(word), ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		value, found := strings.CutPrefix(strings.ReplaceAll(quality, " ", ""), "q=")
		q, err := strconv.ParseFloat(value, 64)
		return !found || err == nil && q > 0
	}
	return false
}

// matches reports whether a tag is in a header If-None-Match.
func matches(header, tag string) bool {
	for word := range strings.SplitSeq(header, ",") {
		if word = strings.TrimSpace(word); word == "*" || strings.TrimPrefix(word, "W/") == tag {
			return true
		}
	}
	return false
}

// mediaTypes are the media types of the files. The table of the system may differ.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
	".json": "application/json", ".map": "application/json", ".txt": "text/plain; charset=utf-8", ".woff2": "font/woff2",
}

// pack reads the files below a folder.
func pack(from fs.FS, folder string) (map[string]*asset, error) {
	all := make(map[string]*asset)
	hashed := regexp.MustCompile(`[.-][0-9a-f]{8,}\.[a-z0-9.]+$`)
	err := fs.WalkDir(from, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		short := strings.TrimPrefix(name, folder+"/")
		a := &asset{
			name: short, text: text, tag: base64.RawURLEncoding.EncodeToString(sum[:18]), hashed: hashed.MatchString(short),
			mediaType: cmp.Or(mediaTypes[path.Ext(name)], mime.TypeByExtension(path.Ext(name)), "application/octet-stream"),
		}
		if a.packed, err = zip(text); err != nil {
			return fmt.Errorf("compressing %s: %w", name, err)
		}
		all[short] = a
		return nil
	})
	return all, err
}

// zip returns a text with gzip, or nil if that saves less than a tenth.
func zip(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil || b.Len() > len(text)*9/10 {
		return nil, err
	}
	return b.Bytes(), nil
}
