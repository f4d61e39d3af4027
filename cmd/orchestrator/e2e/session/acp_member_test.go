package session

import (
	"os"

	"github.com/coder/acp-go-sdk"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// acpMember runs an acpPeer.
func acpMember() {
	p := &stage.AcpPeer{}
	p.Conn = acp.NewAgentSideConnection(p, os.Stdout, os.Stdin)
	<-p.Conn.Done()
}
