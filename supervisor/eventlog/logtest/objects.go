package logtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
)

var _ eventlog.Objects = (*Memory)(nil)

// PutObject implements eventlog.Objects.
func (m *Memory) PutObject(ctx context.Context, hash string, content []byte) error {
	if err := m.ask(ctx); err != nil {
		return err
	}
	m.entries.mu.Lock()
	defer m.entries.mu.Unlock()
	if m.entries.objects == nil {
		m.entries.objects = make(map[string][]byte)
	}
	m.entries.objects[hash] = bytes.Clone(content)
	return nil
}

// GetObject implements eventlog.Objects.
func (m *Memory) GetObject(ctx context.Context, hash string) ([]byte, error) {
	if err := m.ask(ctx); err != nil {
		return nil, err
	}
	m.entries.mu.Lock()
	defer m.entries.mu.Unlock()
	content, ok := m.entries.objects[hash]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(content), nil
}

// RunObjects checks that the objects of two hubs of one team pass the rules.
func RunObjects(t *testing.T, one, other eventlog.Objects) {
	t.Run("an object comes back at another hub", func(t *testing.T) {
		for _, size := range []int{1, 64<<10 + 1, 512 << 10, 5 << 20, 16 << 20} {
			hash, content := object(t, size)
			_, err := other.GetObject(t.Context(), hash)
			require.ErrorIs(t, err, fs.ErrNotExist)
			given := bytes.Clone(content)
			require.NoError(t, one.PutObject(t.Context(), hash, given))
			clear(given)
			for _, hub := range []eventlog.Objects{other, one} {
				requireObject(t, hub, hash, content)
			}
		}
	})
	t.Run("an object can be stored again", func(t *testing.T) {
		hash, content := object(t, 600<<10)
		var all sync.WaitGroup
		for range 3 {
			for _, hub := range []eventlog.Objects{one, other} {
				all.Go(func() {
					if err := hub.PutObject(t.Context(), hash, content); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		requireObject(t, one, hash, content)
	})
	t.Run("a cancelled context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		hash, content := object(t, 100)
		require.ErrorIs(t, one.PutObject(ctx, hash, content), context.Canceled)
		_, err := one.GetObject(ctx, hash)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// object returns random content with its name.
func object(t *testing.T, size int) (hash string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	_, err := rand.Read(content)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), content
}

func requireObject(t *testing.T, hub eventlog.Objects, hash string, want []byte) {
	t.Helper()
	have, err := hub.GetObject(t.Context(), hash)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, have), "another content")
}
