package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

func TestObjectReadersRefuseWithInvalid(t *testing.T) {
	require.Equal(t, CodeInvalid, object.Invalid("/payload", "is wrong").Code)
}
