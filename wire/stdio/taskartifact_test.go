package stdio

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// shelf stores content by its hash.
type shelf map[string]string

func (s shelf) store(content string) (string, error) {
	sum := sha256.Sum256([]byte(content))
	ref := delegation.ArtifactRef(hex.EncodeToString(sum[:]))
	s[ref] = content
	return ref, nil
}

func (s shelf) load(ref string) (string, error) {
	content, ok := s[ref]
	if !ok {
		return "", errors.New("there is no " + ref)
	}
	return content, nil
}

// requireAttached requires that a response with its content put back equals the original, digit
// for digit.
func requireAttached(t *testing.T, r *delegation.Response, limit int) {
	t.Helper()
	kept, detached := shelf{}, *r
	before := append([]delegation.Artifact(nil), r.Artifacts...)
	require.NoError(t, detached.Detach(limit, kept.store))
	require.Equal(t, before, append([]delegation.Artifact(nil), r.Artifacts...), "it is not changed in place")
	long := false
	for i, a := range detached.Artifacts {
		if a.Content == r.Artifacts[i].Content {
			require.Equal(t, r.Artifacts[i], a)
			require.True(t, len(a.Content) <= limit || a.Ref != "")
			continue
		}
		long = true
		require.Equal(t, delegation.Artifact{Name: a.Name, Type: a.Type, Ref: a.Ref}, a)
		require.True(t, delegation.IsArtifactRef(a.Ref))
		require.Contains(t, string(detached.Document), a.Ref)
	}
	require.Equal(t, long, delegation.HasArtifactRefs(detached.Document))
	require.False(t, delegation.HasArtifactRefs(r.Document))
	same, err := delegation.Attach(r.Document, shelf{}.load)
	require.NoError(t, err)
	require.Equal(t, string(r.Document), string(same))

	whole, err := delegation.Attach(detached.Document, kept.load)
	require.NoError(t, err)
	back, wrong := wire.ReadTaskResponse(whole, 64)
	require.Nil(t, wrong, "%s", whole)
	back.Document, back.Notes = r.Document, r.Notes
	if r.Status == delegation.Cancelled {
		back.Fault = r.Fault // the error is dropped
	}
	require.Equal(t, r, back)
	if !strings.Contains(string(r.Document), `ref`) { // ref may be null in the original
		require.Equal(t, string(r.Document), string(whole))
	}

	halt := errors.New("the disk is full")
	failed := *r
	err = failed.Detach(limit, func(string) (string, error) { return "", halt })
	require.Equal(t, long, errors.Is(err, halt))
	require.Equal(t, r, &failed)
}

// Rows: D-35, T-48.
func TestArtifactsAreDetachedAndAttached(t *testing.T) {
	const line = `{ "id":"1","status":"completed","result":1,"n":1.50,"artifacts" : [ {"name":"a","type":"text/plain","content":"short"} ,` +
		`{ "content" : "long\n\"text\" \u00e9\/<&>" , "name":"b","type":"x/y","later":{"n":1.0} },` +
		`{"name":"c","type":"x/y","content":"just as long as b"},{"name":"d","type":"x/y","ref":"s3://d"},` +
		`{"name":"e","type":"x/y","content":"\"it looks as if it was spelled\""} ],"metadata":{"agent":"scale"} }`
	r := responded(t, line)
	for limit := range 40 {
		requireAttached(t, r, limit)
	}
	kept := shelf{}
	detached := *r
	require.NoError(t, detached.Detach(10, kept.store))
	require.Len(t, kept, 3)
	b, c, e := detached.Artifacts[1].Ref, detached.Artifacts[2].Ref, detached.Artifacts[4].Ref
	require.Equal(t, `{ "id":"1","status":"completed","result":1,"n":1.50,"artifacts" : [ {"name":"a","type":"text/plain","content":"short"} ,`+
		`{ "content" : "" , "name":"b","type":"x/y","later":{"n":1.0} ,"ref":"`+b+`"},`+
		`{"name":"c","type":"x/y","content":"","ref":"`+c+`"},{"name":"d","type":"x/y","ref":"s3://d"},`+
		`{"name":"e","type":"x/y","content":"","ref":"`+e+`"} ],"metadata":{"agent":"scale"} }`, string(detached.Document))
	require.Equal(t, "just as long as b", kept[c], "it can be read by people")
	require.Equal(t, `"long\n\"text\" \u00e9\/<&>"`, kept[b], "but not where another spelling would be lost")

	delete(kept, b)
	delete(kept, e)
	kept[e] = "\xff"
	some, err := delegation.Attach(detached.Document, kept.load)
	require.EqualError(t, err, "loading the content of artifact 1: there is no "+b+"\nloading the content of artifact 4: it is not text")
	require.Contains(t, string(some), `"content":"just as long as b"}`)
	require.Contains(t, string(some), b)
	members, _, ok := object.Scan(some, 64, nil)
	require.True(t, ok)
	require.Len(t, members, 6)
}

// TestRefsThatSayNothing checks that a null or empty ref does not keep content from being
// detached.
//
// Rows: D-35.
func TestRefsThatSayNothing(t *testing.T) {
	for _, artifact := range []string{
		`{"ref":null,"name":"a","type":"t","content":"long"}`, `{"name":"a","ref":"","type":"t","content":"long"}`, `{"name":"a","type":"t","content":"long" , "ref":null }`,
	} {
		r := responded(t, `{"id":"1","status":"completed","artifacts":[`+artifact+`]}`)
		requireAttached(t, r, 3)
		kept := shelf{}
		detached := *r
		require.NoError(t, detached.Detach(3, kept.store))
		require.Len(t, kept, 1)
	}
	both := responded(t, `{"id":"1","status":"completed","artifacts":[{"name":"a","type":"t","content":"long","ref":"mine"}]}`)
	requireAttached(t, both, 3)
	detached := *both
	require.NoError(t, detached.Detach(3, shelf{}.store))
	require.Equal(t, both, &detached, "it has a ref of its own")
}

// TestArtifactsOfOurOwn checks a response of the orchestrator itself, which has no document yet.
//
// Rows: D-35.
func TestArtifactsOfOurOwn(t *testing.T) {
	kept := shelf{}
	r := &delegation.Response{ID: "1", Status: delegation.Completed, Artifacts: []delegation.Artifact{{Name: "a", Type: "t", Content: "<long>"}}}
	require.NoError(t, r.Detach(3, kept.store))
	require.Nil(t, r.Document)
	require.Empty(t, r.Artifacts[0].Content)
	whole, err := delegation.Attach(delegation.AppendResponse(nil, r), kept.load)
	require.NoError(t, err)
	require.Equal(t, `{"id":"1","status":"completed","artifacts":[{"name":"a","type":"t","content":"<long>"}]}`+"\n", string(whole))
}

// TestRefsThatAreNotOurs checks that only stored content is loaded, and only into a response.
// Otherwise a caller that knows a hash could get the content by a request.
//
// Rows: D-35.
func TestRefsThatAreNotOurs(t *testing.T) {
	ref := delegation.ArtifactRef(strings.Repeat("0a", 32))
	require.True(t, delegation.IsArtifactRef(ref))
	hash, ok := delegation.ArtifactHash(ref)
	require.True(t, ok)
	require.Equal(t, strings.Repeat("0a", 32), hash)
	for _, other := range []string{"", "sha256:", ref + "0", ref[:len(ref)-1], strings.ToUpper(ref), strings.Replace(ref, "0a", "0A", 1), "sha512:" + ref[7:], " " + ref} {
		require.False(t, delegation.IsArtifactRef(other), other)
		hash, ok = delegation.ArtifactHash(other)
		require.False(t, ok, other)
		require.Empty(t, hash)
	}
	for _, line := range []string{
		`{"id":"1","type":"t","payload":{},"status":"x","artifacts":[{"ref":"` + ref + `"}]}`,
		`{"id":"1","artifacts":[{"ref":"` + ref + `"}]}`, `{"id":"1","status":"completed","result":{"artifacts":[{"ref":"` + ref + `"}]}}`,
		`{"id":"1","status":"completed","artifacts":[7,"` + ref + `",{"ref":7},{"refs":"` + ref + `"},{"ref":"` + ref + `0"}]}`,
		`{"id":"1","status":"completed","artifacts":{"ref":"` + ref + `"}}`, `{"id":"1","status":"completed","artifacts":null}`,
		`["` + ref + `"]`, `"` + ref, ``,
	} {
		require.False(t, delegation.HasArtifactRefs(wire.Raw(line)), line)
		same, err := delegation.Attach(wire.Raw(line), func(string) (string, error) { panic("it is not ours") })
		require.NoError(t, err)
		require.Equal(t, line, string(same))
	}
	for _, spelled := range []string{ref, `\u0073` + ref[1:]} {
		line := []byte(`{"id":"1","status":"completed","artifacts":[{"name":"a","type":"t","ref":"` + spelled + `"}]}`)
		reader := Reader{Agent: "a", Depth: 64, Given: func(string) bool { return true }}
		refused, ok := reader.Parse(line).(*wire.Refused)
		require.True(t, ok, "no agent can give such a ref")
		require.Equal(t, "/artifacts/0/ref", refused.Err.Details["pointer"])
		_, err := wire.ReadTaskResponse(line, 64)
		require.Nil(t, err, "but it may be told of one whose content is lost")
	}
}
