package cli

import (
	"io"
	"os"
	"os/signal"
	"strings"

	"orchestrator/cmd/orchestrator/term"
)

// page prints a text. If stdout is a terminal and the text does not fit, it goes through $PAGER, or less.
func (a *App) page(text string) error {
	stdout, ok := a.Stdout.(*os.File)
	command := a.Getenv("PAGER")
	if command == "" {
		command = "less"
	}
	if rows := term.Rows(a.Stdout); !ok || rows == 0 || strings.Count(text, "\n") < rows || a.Getenv("TERM") == "dumb" {
		return a.Print("%s", text)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	env := os.Environ()
	if a.Getenv("LESS") == "" {
		env = append(env, "LESS=FRX") // end if it fits, keep colors, leave the text on the screen
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // Ctrl-C is for the pager, which has the terminal
	defer signal.Stop(interrupts)
	// If the shell does not find the pager, cat prints the text.
	process, err := os.StartProcess("/bin/sh", []string{"sh", "-c", command + "; test $? -ne 127 || cat"}, &os.ProcAttr{Files: []*os.File{read, stdout, os.Stderr}, Env: env})
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		return a.Print("%s", text)
	}
	_, _ = io.WriteString(write, text) // the reader may leave before the end
	_ = write.Close()
	_, err = process.Wait()
	return err
}
