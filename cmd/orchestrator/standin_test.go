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
	"regexp"
	"sync"
)

// standIn is an orchestrator whose answers are files: stand-in SOCKET DIR.
// What is asked of it is written to DIR/asked, a line a request. It lets
// scripts see what a client makes of an answer that is hard to bring about.
//
// The answer to an operation is DIR/NAME.json, to a stream DIR/NAME.jsonl; one
// whose first line is "HTTP 404" has that status. DIR/NAME.91c0aa42.json is the
// one about the task whose id begins so, and DIR/NAME.2.json, or
// DIR/NAME.91c0aa42.2.json, what is answered the second time. A stream that is
// followed stays open, and so does an answer beside which there is a
// DIR/NAME.wait, until the client goes; beside a DIR/NAME.end it does not. After
// down it is gone.
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
	times := map[string]int{}
	var server http.Server
	down := make(chan struct{})
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		name, task := path.Base(r.URL.Path), ""
		if found := aboutTask.FindSubmatch(body); found != nil {
			task = "." + string(found[1])
		}
		asked.Lock()
		times[name+task]++
		file := fileOf(filepath.Join(dir, name), task, times[name+task])
		asked.Unlock()
		answer(w, file)
		asked.Lock()
		record(filepath.Join(dir, "asked"), fmt.Sprintf("%s %s %s\n", r.Method, r.URL, body))
		asked.Unlock()
		_, noWait := os.Stat(filepath.Join(dir, name+".wait"))
		_, noEnd := os.Stat(filepath.Join(dir, name+".end"))
		switch {
		case noWait == nil, r.URL.Query().Get("follow") == "true" && noEnd != nil:
			<-r.Context().Done()
		case path.Base(r.URL.Path) == "down":
			close(down)
		}
	})
	go func() { _ = server.Serve(listener) }()
	<-down
	_ = server.Shutdown(context.Background())
}

// aboutTask finds the task that a request is about.
var aboutTask = regexp.MustCompile(`"taskId":"([^"]{8})`)

// fileOf is the file that answers: the most special one that there is.
func fileOf(name, task string, time int) string {
	for _, stem := range []string{fmt.Sprintf("%s%s.%d", name, task, time), name + task, fmt.Sprintf("%s.%d", name, time), name} {
		for _, kind := range []string{".jsonl", ".json"} {
			if _, err := os.Stat(stem + kind); err == nil {
				return stem + kind
			}
		}
	}
	return name + ".json"
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
