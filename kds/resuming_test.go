package kds

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/messages"
)

// resumption is a request of a peer that has n resources.
func resumption(n int) *discovery.DeltaDiscoveryRequest {
	r := &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "zone-1"}, TypeUrl: "MeshTrafficPermission",
		ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: map[string]string{}}
	for i := range n {
		r.InitialResourceVersions[fmt.Sprintf("policy-%d.default", i)] = strings.Repeat("ab", 30)
	}
	return r
}

func encodedRequest(t testing.TB, r *discovery.DeltaDiscoveryRequest) []byte {
	t.Helper()
	raw, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// FuzzResume checks that decodeResume agrees with Protobuf, on the first message with these versions and on the next.
func FuzzResume(f *testing.F) {
	request := encodedRequest(f, resumption(60))
	f.Add(request)
	f.Add(append(request, request...))                                                                 // each name occurs twice
	f.Add(append(request, "\x2a\x04\x12\x02ab"...))                                                    // an entry without a name
	f.Add(append(request, "\x2a\x08\x12\x02ab\x0a\x02.b"...))                                          // version and name
	f.Add(append(request, "\x2a\x07\x0a\x03a.\xff\x12\x00"...))                                        // no text
	f.Add(append(request, "\x2a\x0b\x0a\x03a.b\x12\x01a\x18\x01"...))                                  // an unknown field
	f.Add(append(request, "\x2a\x88\x80\x00\x0a\x03a.b\x12\x01a"...))                                  // a length that is padded
	f.Add(append(request, "\x2a\x0b\x0a\x03a.b"...))                                                   // cut off
	f.Add(append(request, encodedRequest(f, &discovery.DeltaDiscoveryRequest{ResponseNonce: "1"})...)) // what comes later counts, too
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want discovery.DeltaDiscoveryRequest
		refused := proto.Unmarshal(raw, &want)
		all := newInventories()
		kept := []*inventory{}
		for range 2 {
			into := &arrival{inventories: all}
			if !decodeResume(raw, into) {
				if !proto.Equal(&into.request, &discovery.DeltaDiscoveryRequest{}) {
					t.Errorf("left %v behind", &into.request)
				}
				continue
			}
			if refused != nil || !proto.Equal(&into.request, &want) {
				t.Errorf("%q is %v by hand, and %v by Protobuf (%v)", raw, &into.request, &want, refused)
			}
			kept = append(kept, all.share(into.request.InitialResourceVersions))
		}
		if len(kept) == 2 && kept[0] != kept[1] {
			t.Error("the same versions are kept twice")
		}
	})
}

// TestResumesShare checks that what two peers have is kept and decoded once, and that what differs is not taken for the
// same. It counts allocations, so it is not parallel.
func TestResumesShare(t *testing.T) {
	const resources = 1000
	all := newInventories()
	decode := func(r *discovery.DeltaDiscoveryRequest) *inventory {
		into := &arrival{inventories: all}
		if !decodeResume(encodedRequest(t, r), into) || !maps.Equal(into.request.InitialResourceVersions, r.InitialResourceVersions) {
			t.Fatal("it is not decoded by hand")
		}
		return all.share(into.request.InitialResourceVersions)
	}
	first := decode(resumption(resources))
	if second := decode(resumption(resources)); second != first {
		t.Error("the same versions are kept twice")
	}
	other := resumption(resources)
	other.InitialResourceVersions["policy-7.default"] = "c"
	if decode(other) == first {
		t.Error("another version is taken for the same")
	}
	less := resumption(resources - 1)
	if decode(less) == first {
		t.Error("one resource less is taken for the same")
	}
	raw := encodedRequest(t, resumption(resources))
	if got := testing.AllocsPerRun(100, func() {
		if !decodeResume(raw, &arrival{inventories: all}) {
			t.Error("it is not decoded by hand")
		}
	}); got > 20 {
		t.Errorf("what another peer has, too, is decoded with %v allocations", got)
	}
	into := &arrival{inventories: all}
	if !decodeResume(raw, into) {
		t.Fatal("it is not decoded by hand")
	}
	if all.of(into.request.InitialResourceVersions) != first {
		t.Error("what another peer has, too, has to be looked for again")
	}
	if all.of(maps.Clone(first.versions)) != nil {
		t.Error("another map is taken for what was checked")
	}
	if first.size == 0 { // it is alive until here
		t.Error("an inventory has no size")
	}
}

// TestResumesKeepWhatIsCounted checks that of what a peer has little more is kept than counts, even if its message says
// it in many more bytes: tags and lengths of ten bytes each.
func TestResumesKeepWhatIsCounted(t *testing.T) {
	const entries = 100_000
	long := func(b []byte, v uint64) []byte {
		for range 9 {
			b, v = append(b, byte(v)|0x80), v>>7
		}
		return append(b, byte(v))
	}
	field := func(b []byte, number protowire.Number, value []byte) []byte {
		b = long(b, protowire.EncodeTag(number, protowire.BytesType))
		return append(long(b, uint64(len(value))), value...)
	}
	var raw []byte
	for i := range entries {
		raw = field(raw, requestVersions, field(field(nil, entryName, fmt.Appendf(nil, "%05d.", i)), entryVersion, []byte("1")))
	}
	all := newInventories()
	into := &arrival{inventories: all}
	before := inUse()
	if !decodeResume(raw, into) {
		t.Fatal("it is not decoded by hand")
	}
	kept := all.share(into.request.InitialResourceVersions)
	into.request.Reset()
	if grown := inUse() - before; len(kept.versions) != entries || grown > int64(kept.size)*3/2 {
		t.Errorf("%d bytes are kept for %d versions, and %d are counted", grown, len(kept.versions), kept.size)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(raw)
}

// TestDenseRequestsCostNothing checks that requests that decode to much more than their size are refused before
// anything of their size is made, also by decodeResume. It measures allocations, so it is not parallel.
func TestDenseRequestsCostNothing(t *testing.T) {
	for name, one := range map[string]string{
		"empty names":    "\x1a\x00",
		"empty versions": "\x2a\x00",
		"one version":    "\x2a\x06\x0a\x01a\x12\x01b",
		"one version and more than a peer says otherwise": "\x2a\x06\x0a\x01a\x12\x01b\x1a\x00",
	} {
		t.Run(name, func(t *testing.T) {
			data := mem.BufferSlice{mem.SliceBuffer(strings.Repeat(one, MaxMessageSize/len(one)))}
			into := &arrival{inventories: newInventories()}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := newCodec().Unmarshal(data, into)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, messages.ErrDense) {
				t.Errorf("%v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 10; took > 256 {
				t.Errorf("it took %d KiB", took)
			}
		})
	}
}
