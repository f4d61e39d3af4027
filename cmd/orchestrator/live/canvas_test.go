package live

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func framed(caret int, rows ...string) frame { return frame{rows: rows, caret: caret} }

// Rows are replaced in place, and only changed rows are written.
func TestCanvas(t *testing.T) {
	c := canvas{framed(-1)}
	require.Empty(t, c.erase(nil), "nothing is there")
	require.Equal(t, "one\ntwo"+hide, string(c.change(nil, framed(-1, "one", "two"))))
	require.Empty(t, c.change(nil, framed(-1, "one", "two")))
	require.Equal(t, "\r\x1b[1A\nthree"+wipeRow+"\r", string(c.change(nil, framed(-1, "one", "three"))))
	require.Equal(t, "\r\x1b[1A"+"1"+wipeRow+"\n"+"> x"+wipeRow+"\r"+reveal+"\x1b[3C", string(c.change(nil, framed(3, "1", "> x"))))
	require.Equal(t, "\r\x1b[1A"+wipe+"alone"+hide, string(c.change(nil, framed(-1, "alone"))))
	require.Equal(t, "\r"+wipe+reveal, string(c.erase(nil)))
	require.Empty(t, c.change(nil, framed(-1)), "nothing is to be there")
}
