package stage

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
	"slices"
	"sync"

	"orchestrator/agents"
	"orchestrator/wire"
)

// standIn runs an orchestrator with canned answers: stand-in SOCKET DIR. It writes each request
// as a line to DIR/asked. Scripts use it for answers that a real orchestrator seldom gives.
//
// The answer to an operation is DIR/NAME.json, and a stream is DIR/NAME.jsonl. A first line
// "HTTP 404" sets the status. DIR/NAME.91c0aa42.json is the answer about the task whose id
// begins so. DIR/NAME.2.json, or DIR/NAME.91c0aa42.2.json, is the second answer. A followed
// stream stays open until the client goes, unless there is a DIR/NAME.end. So does an answer
// with a DIR/NAME.wait. The operation down ends the program.
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

// aboutTask matches the task of a request.
var aboutTask = regexp.MustCompile(`"taskId":"([^"]{8})`)

// fileOf returns the file with the answer, the most specific one.
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

// answer sends a file in pieces, as a real answer would arrive.
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
		return // like the orchestrator, which sends headers with the first line
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

// scripted is the agent's side. Its argument is a socket on which the test listens. Input from the
// socket goes to stdout, and stdin goes to the socket. When the test closes its half, a second
// connection provides the exit code. The end of stdin ends the scripted agent unless it has the argument
// stays.
func scripted() {
	words, err := net.Dial("unix", os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	code, err := net.Dial("unix", os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	if _, err := fmt.Fprintln(code, os.Getpid(), os.Getenv("ORC_RUN_ID")); err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(words, os.Stdin)
		_ = words.(*net.UnixConn).CloseWrite()
		if !slices.Contains(os.Args[2:], "stays") {
			os.Exit(0)
		}
	}()
	_, _ = io.Copy(os.Stdout, words)
	last := make([]byte, 1)
	_, _ = code.Read(last)
	os.Exit(int(last[0]))
}

// worker is an agent made with the SDK. The result of each task is its payload.
func worker() {
	err := agents.Stdio().Work(context.Background(), func(_ context.Context, task wire.Task) (any, error) {
		return task.Payload, nil
	})
	if err != nil {
		os.Exit(1)
	}
}
