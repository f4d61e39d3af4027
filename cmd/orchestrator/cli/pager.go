package cli

import (
	"io"
	"os"
	"strings"

	"orchestrator/cmd/orchestrator/term"
)

// page prints a long text through $PAGER, or less, if stdout is a terminal that it does not fit on. Without a pager it
// prints the text itself.
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
	env := append(os.Environ(), "LESS="+a.Getenv("LESS"))
	if a.Getenv("LESS") == "" {
		env = append(env, "LESS=FRX") // end if it fits, keep colors, leave the text on the screen
	}
	// If the shell does not find the pager, cat prints the text.
	process, err := os.StartProcess("/bin/sh", []string{"sh", "-c", command + " 2>/dev/null; test $? -ne 127 || cat"}, &os.ProcAttr{Files: []*os.File{read, stdout, os.Stderr}, Env: env})
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
