package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"orchestrator/agents"
	"orchestrator/wire"
)

// puppet is the agent's side. Its argument is a socket on which the test listens. Input from the
// socket goes to stdout, and stdin goes to the socket. When the test closes its half, a second
// connection provides the exit code. The end of stdin ends the puppet unless it has the argument
// stays.
func puppet() {
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

// labourer is an agent made with the SDK. The result of each task is its payload.
func labourer() {
	err := agents.Stdio().Work(context.Background(), func(_ context.Context, task wire.Task) (any, error) {
		return task.Payload, nil
	})
	if err != nil {
		os.Exit(1)
	}
}
