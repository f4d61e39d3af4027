package signin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/identity"
)

var (
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ann = identity.Caller{Kind: identity.Operator, Name: "ann", Role: "operator"}
)

func TestCode(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		holds bool
	}{
		"at once":         {0, true},
		"almost too late": {CodeTime - time.Millisecond, true},
		"after its time":  {CodeTime, false},
		"long after it":   {24 * time.Hour, false},
	} {
		var l List
		code := l.Invite(ann, "", time.Time{}, now, CodeTime)
		_, in := l.Use(code+"x", now)
		require.Nil(t, in, name)
		secret, in := l.Use(code, now.Add(test.after))
		require.Equal(t, test.holds, in != nil, name)
		if in != nil {
			require.Equal(t, ann, in.Who)
			require.NotEqual(t, code, secret)
			require.Same(t, in, l.Of(secret, now))
			require.Nil(t, l.Of(code, now), "a code is no secret")
			require.Regexp(t, "^s[0-9a-f]{8}$", in.ID())
		}
		_, again := l.Use(code, now)
		require.Equal(t, !test.holds, again != nil, "%s: a code holds once", name)
	}
}

func TestSignInEnds(t *testing.T) {
	var l List
	secret, in := l.Use(l.Invite(ann, "", time.Time{}, now, CodeTime), now)
	require.NotNil(t, l.Of(secret, now.Add(Time-time.Second)))
	require.Nil(t, l.Of(secret, now.Add(Time)))
	require.True(t, l.Holds(in))
	l.End(in)
	require.False(t, l.Holds(in))
	require.Nil(t, l.Of(secret, now))

	short := now.Add(time.Hour)
	secret, in = l.Use(l.Invite(ann, "t1", short, now, CodeTime), now)
	require.Equal(t, short, in.Until, "no longer than the token")
	require.Equal(t, "t1", in.Token)
	require.Nil(t, l.Of(secret, short))
	_, in = l.Use(l.Invite(ann, "t2", now.Add(48*time.Hour), now, CodeTime), now)
	require.Equal(t, now.Add(Time), in.Until)
}

func TestOldestGoes(t *testing.T) {
	var l List
	secret, first := l.Use(l.Invite(ann, "", time.Time{}, now, CodeTime), now)
	for range maxKept {
		require.NotNil(t, l.Of(secret, now))
		_, in := l.Use(l.Invite(ann, "", time.Time{}, now, CodeTime), now)
		require.NotNil(t, in)
	}
	require.Nil(t, l.Of(secret, now))
	require.False(t, l.Holds(first))
	require.Len(t, l.browsers, maxKept)

	code := l.Invite(ann, "", time.Time{}, now, CodeTime)
	for range maxKept {
		l.Invite(ann, "", time.Time{}, now, CodeTime)
	}
	_, in := l.Use(code, now)
	require.Nil(t, in)
	l.Invite(ann, "", time.Time{}, now.Add(CodeTime), CodeTime)
	require.Len(t, l.codes, 1, "those that have expired go first")
}

// TestSignInsAreKept checks that sign-ins hold in the next program, with their ends, and that the file has no secret
// and is readable by its owner only.
func TestSignInsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sign-ins.json")
	var before, next, last List
	require.NoError(t, before.Open(path, now))
	secret, in := before.Use(before.Invite(ann, "t1", time.Time{}, now, CodeTime), now)
	other, out := before.Use(before.Invite(ann, "", time.Time{}, now, CodeTime), now)
	code := before.Invite(ann, "", time.Time{}, now, CodeTime)
	before.End(out)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), secret)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, next.Open(path, now))
	require.True(t, next.Any(now))
	again := next.Of(secret, now)
	require.Equal(t, []any{in.Who, in.Token, in.Until, in.ID()}, []any{again.Who, again.Token, again.Until, again.ID()})
	require.Nil(t, next.Of(other, now), "it was ended")
	_, used := next.Use(code, now)
	require.Nil(t, used, "a code ends with the program")
	require.Nil(t, next.Of(secret, now.Add(Time)))
	next.End(again)
	require.NoError(t, last.Open(path, now))
	require.False(t, last.Any(now))

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	var broken List
	require.ErrorContains(t, broken.Open(path, now), "reading the sign-ins")
	require.False(t, broken.Any(now))
}
