package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"
)

// standIn is an orchestrator whose answers are files: stand-in SOCKET DIR.
// What is asked of it is written to DIR/asked, a line a request. It lets
// scripts see what a client makes of an answer that is hard to bring about.
//
// The answer to an operation is DIR/NAME.json, to a stream DIR/NAME.jsonl; one
// whose first line is "HTTP 404" has that status. A stream that is followed
// stays open, and so does an answer beside which there is a DIR/NAME.wait,
// until the client goes. After down it is gone.
func standIn() {
	socket, dir := os.Args[1], os.Args[2]
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		fatal(err)
	}
	var asked sync.Mutex
	var server http.Server
	down := make(chan struct{})
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		name := path.Base(r.URL.Path)
		if _, err := os.Stat(filepath.Join(dir, name+".jsonl")); err == nil {
			name += ".jsonl"
		} else {
			name += ".json"
		}
		answer(w, filepath.Join(dir, name))
		asked.Lock()
		record(filepath.Join(dir, "asked"), fmt.Sprintf("%s %s %s\n", r.Method, r.URL, body))
		asked.Unlock()
		_, noWait := os.Stat(filepath.Join(dir, path.Base(r.URL.Path)+".wait"))
		switch {
		case noWait == nil, r.URL.Query().Get("follow") == "true":
			<-r.Context().Done()
		case path.Base(r.URL.Path) == "down":
			close(down)
		}
	})
	go func() { _ = server.Serve(listener) }()
	<-down
	_ = server.Shutdown(context.Background())
}

// answer sends a file, as a client would get it piece by piece.
func answer(w http.ResponseWriter, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	var status int
	if _, err := fmt.Sscanf(string(text), "HTTP %d\n", &status); err == nil {
		_, text, _ = bytes.Cut(text, []byte("\n"))
		w.WriteHeader(status)
	}
	if len(text) == 0 {
		return // like the real one, which begins to answer with the first line
	}
	_, _ = w.Write(text)
	_ = http.NewResponseController(w).Flush()
}

func record(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fatal(err)
	}
	defer f.Close()
	_, _ = f.WriteString(line)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
