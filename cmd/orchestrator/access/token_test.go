package access

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

func TestTokenWords(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	later := now.Add(time.Minute)
	for _, c := range []struct {
		issued  wire.IssuedToken
		overlap int64
		want    []string
	}{
		{wire.IssuedToken{ID: "t1", Subject: "ann", Role: "viewer", ExpiresAt: object.Timestamp(later)}, 0, []string{
			"This is token t1 of ann, viewer, until " + term.Clock(object.Timestamp(later), now, time.TimeOnly) + ". It is shown once: keep it in a safe place.",
		}},
		{wire.IssuedToken{ID: "t2", Subject: "ann", Role: "operator"}, 0, []string{
			"This is token t2 of ann, operator. It is shown once: keep it in a safe place.", "Its messages on the bus are from IO:ann.",
		}},
		{wire.IssuedToken{ID: "a1", Actor: "HO:attic"}, 0, []string{
			"This is token a1 of HO:attic. It is shown once: keep it in a safe place.", "Older tokens of HO:attic are no longer valid.",
		}},
		{wire.IssuedToken{ID: "a1", Actor: "HO:attic"}, 60_000, []string{
			"This is token a1 of HO:attic. It is shown once: keep it in a safe place.",
			"Older tokens of HO:attic are valid until " + term.Clock(object.Timestamp(later), now, time.TimeOnly) + ".",
		}},
	} {
		require.Equal(t, c.want, tokenWords(&c.issued, c.overlap, now))
	}
}
