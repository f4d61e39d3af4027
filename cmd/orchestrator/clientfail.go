package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/supervisor/api"
	"orchestrator/wire"
)

// failed returns why the orchestrator could not be spoken to.
func (d *client) failed(ctx context.Context, err error) error {
	if over := d.ended(ctx); over != nil {
		return over
	}
	if stranger, ok := errors.AsType[*api.StrangerError](err); ok {
		return &failure{
			exit: exitDenied, code: wire.CodeDenied,
			message: fmt.Sprintf("not spoken to: what listens at %s belongs to another user (%d)", d.target.where(), stranger.UID),
			hint:    "Speak to an orchestrator as the user who started it",
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &failure{
			exit: exitDenied, code: wire.CodeDenied,
			message: "not allowed to speak to the orchestrator at " + d.target.where(),
			hint:    "It belongs to another user: only the one who started it may",
		}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return d.notRunning()
	case d.target.url != "":
		return d.unreachable(err)
	}
	return &failure{
		exit: exitNotRunning, code: codeNotRunning,
		message: "the orchestrator for " + d.target.subject + " does not answer",
		because: []string{rootCause(err).Error()},
		hint:    "Look whether it still runs: orchestrator status",
	}
}

// notRunning says that no orchestrator listens, and how to start one: by a start that
// is written as this command was, so that it is the same orchestrator.
func (d *client) notRunning() *failure {
	f := &failure{
		exit: exitNotRunning, code: codeNotRunning,
		message: "no orchestrator is running for " + d.target.subject,
		hint:    "Start it: orchestrator up" + d.target.named,
		details: map[string]any{"socket": d.target.where()},
	}
	if d.target.url != "" {
		f.message = "no orchestrator is running at " + d.target.url
		f.hint = elsewhereHint
		return f
	}
	if info, err := os.Stat(d.target.socket); err == nil && info.Mode().Type() != fs.ModeSocket {
		f.message = fmt.Sprintf("%s is no socket, so no orchestrator is behind it", d.target.socket)
		f.hint = "Name its configuration: -c FILE     or its state directory: --state-dir DIR"
	}
	return f
}

const elsewhereHint = "Its file (http.listen) says where it listens. On its own machine no address is needed: leave --host and $ORC_HOST out"

// unreachable returns why what is at an address could not be spoken to.
func (d *client) unreachable(err error) *failure {
	f := &failure{
		exit: exitNotRunning, code: codeNotRunning, message: "the orchestrator at " + d.target.url + " does not answer",
		because: []string{rootCause(err).Error()}, hint: elsewhereHint,
		details: map[string]any{"socket": d.target.where()},
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		f.because = []string{fmt.Sprintf("No host is called %q.", unknown.Name)}
		return f
	}
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		f.message = "the orchestrator at " + d.target.url + " was not spoken to: its certificate is not trusted"
		f.because = []string{wrong.Err.Error(), "Nothing was sent to it, and no token."}
		f.hint = "Trust it: export SSL_CERT_FILE=CERTIFICATE.pem, which its owner has (http.certificate)"
		return f
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		f.message = "what listens at " + d.target.url + " speaks http, not https"
		f.because = nil
		f.hint = "Write it so: --host http" + strings.TrimPrefix(d.target.url, "https")
	}
	return f
}

// rootCause is an error without the layers of the HTTP client, which would
// show people an address that they never typed.
func rootCause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// refused turns a refusal of the API into a failure.
func (d *client) refused(response *http.Response) *failure {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	var refusal wire.Refusal
	if err := wire.Decode(text, &refusal); err != nil || refusal.Error == nil {
		return d.stranger(response, string(text))
	}
	e := refusal.Error
	f := &failure{exit: exitOf(e.Code), code: e.Code, message: e.Message, hint: e.Hint, details: e.Details}
	switch {
	case e.Code == wire.CodeDenied && e.Hint == "" && d.target.inside:
		f.hint = "This command runs as an agent, which may not do this. Ask a person: request:ask-user"
	case e.Code == wire.CodeUnauthenticated && d.target.url != "":
		f.wantsToken(&d.target)
	case e.Code == wire.CodeNotFound && e.Details["agents"] != nil:
		f.wantsAgent(e.Details)
	case e.Code == wire.CodeConflict && e.Hint == "" && e.Details["reason"] == "wrong_state":
		if id, ok := e.Details["taskId"].(string); ok {
			f.hint = "Why it is so, and what can be done: orchestrator why " + plain.ID(id)
		}
	}
	return f
}

// wantsToken says where a token comes from, and what to do with one.
func (f *failure) wantsToken(t *target) {
	f.because = append(f.because, "Asked was "+t.url+", with the token of $ORC_TOKEN.")
	if t.token == "" {
		f.because = []string{"Asked was " + t.url + "; $ORC_TOKEN is not set."}
	}
	f.hint = "Ask its owner for a token: orchestrator token issue --sub NAME     then: export ORC_TOKEN=…"
}

// wantsAgent says which agents there are, and which of them is meant.
func (f *failure) wantsAgent(details map[string]any) {
	wrong, _ := details["agent"].(string)
	var names []string
	listed, _ := details["agents"].([]any)
	for _, each := range listed {
		if name, ok := each.(string); ok {
			names = append(names, name)
		}
	}
	f.message += didYouMean(wrong, names)
	f.because = append(f.because, f.hint)
	f.hint = "See which there are: orchestrator ps"
}

// stranger says that what answers is something else.
func (d *client) stranger(response *http.Response, said string) *failure {
	f := &failure{
		exit: exitNotRunning, code: codeNotRunning,
		message: fmt.Sprintf("what listens at %s is no orchestrator (HTTP %s)", d.target.where(), response.Status),
	}
	if d.target.url != "" {
		f.hint = elsewhereHint
	}
	if response.StatusCode == http.StatusBadRequest && strings.Contains(said, "HTTPS server") && d.target.url != "" {
		f.message = "what listens at " + d.target.url + " speaks https, not http"
		f.hint = "Write it so: --host https" + strings.TrimPrefix(d.target.url, "http")
	}
	return f
}

// exitOf is the exit code of a refusal.
func exitOf(code wire.Code) int {
	switch code {
	case wire.CodeInvalid:
		return exitUsage
	case wire.CodeDenied, wire.CodeUnauthenticated:
		return exitDenied
	case wire.CodeConflict:
		return exitConflict
	case wire.CodeNotFound:
		return exitNotFound
	case wire.CodeTimeout:
		return exitTimeout
	case wire.CodeInternal:
		return exitBug
	}
	return exitNo
}
