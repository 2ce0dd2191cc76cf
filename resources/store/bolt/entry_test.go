package bolt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`[^\x00]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		k := resources.Key{Type: resources.TypeMeshTimeout, Mesh: text.Draw(t, "mesh"),
			Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name")}
		r := storetest.Resource(k, rapid.Int().Draw(t, "content"), rapid.MapOf(text, text).Draw(t, "labels"))
		r.Revision = rapid.Uint64().Draw(t, "revision")
		r.CreationTime = time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "created")).UTC()
		r.ModificationTime = time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "modified")).UTC()
		if rapid.Bool().Draw(t, "status") {
			r.Status = json.RawMessage(`{"text":"<&>"}`)
		}
		key := store.EncodeKey(k)
		value, err := store.EncodeValue(key, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.DecodeEntry(key, value)
		if err != nil {
			t.Fatal(err)
		}
		if !storetest.Equal(got, r) {
			t.Fatalf("got %s want %s", storetest.Describe([]*resources.Resource{got}),
				storetest.Describe([]*resources.Resource{r}))
		}
		again, err := store.EncodeValue(key, got)
		if err != nil || !bytes.Equal(again, value) {
			t.Fatalf("encoded again it differs: %v", err)
		}
		at := rapid.IntRange(0, len(value)-1).Draw(t, "flipped byte")
		value[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "flipped bit")
		if _, err := store.DecodeEntry(key, value); err == nil {
			t.Fatalf("flipped bit in byte %d was not noticed", at)
		}
	})
}

// FuzzDecode feeds the decoder anything under a valid checksum: it must not panic, and what it accepts must survive
// being written and read again.
func FuzzDecode(f *testing.F) {
	r := kilobyte(1, 1)
	key := store.EncodeKey(r.Key)
	value, err := store.EncodeValue(key, r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key, value[store.ChecksumSize:])
	f.Add([]byte("Mesh\x00\x00\x00default"), []byte(`{"revision":1,"spec":{}}`))
	f.Add([]byte("Mesh\x00\x00\x00default"), []byte(`{"revision":1}`))
	f.Add([]byte("Nothing\x00\x00\x00x"), []byte(`{"spec":{"a":1}}`))
	f.Add([]byte("x"), []byte(`null`))
	f.Fuzz(func(t *testing.T, key, body []byte) {
		value := append(binary.BigEndian.AppendUint32(nil, store.Checksum(key, body)), body...)
		if got, err := store.DecodeEntry(key, body); err == nil {
			t.Fatalf("accepted without a checksum: %+v", got)
		}
		got, err := store.DecodeEntry(key, value)
		if err != nil {
			return
		}
		encoded, err := store.EncodeValue(key, got)
		if err != nil {
			t.Fatalf("%s cannot be written again: %v", got.Key, err)
		}
		again, err := store.DecodeEntry(store.EncodeKey(got.Key), encoded)
		if err != nil || !storetest.Equal(again, got) {
			t.Fatalf("%s differs when written and read again: %v", got.Key, err)
		}
	})
}
