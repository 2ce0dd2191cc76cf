package kds

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// mostGarbage bounds the allocations for refusing a resource that fills a message, in bytes: a few copies of it.
const mostGarbage = 8 * MaxMessageSize

// TestDenseResourcesAreRefused checks that a resource nearly as large as a message, and fifty times that in memory, is
// refused before it is decoded, wherever it is dense. It does not run in parallel with others, since it measures
// allocations.
func TestDenseResourcesAreRefused(t *testing.T) {
	const size = MaxMessageSize * 8 / 10
	fill := func(one string) string { return strings.Repeat(one, size/len(one)) }
	inbounds := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(fill("\x12\x00"))) // networking.inbound
	for name, row := range map[string]struct {
		typ  resources.Type
		spec []byte
		// rest is the envelope beside its name and spec.
		rest []byte
		// status makes the text the status instead of the spec.
		status bool
	}{
		"objects of a spec": {typ: "MeshTimeout", spec: []byte(`{"x":[` + fill(`{"":0},`) + `0]}`)},
		"lists of a spec":   {typ: "MeshTimeout", spec: []byte(`{"x":[` + fill(`[],`) + `0]}`)},
		"a spec that is deep": {typ: "MeshTimeout",
			spec: []byte(`{"x":` + strings.Repeat("[", 9_000) + fill(" ") + strings.Repeat("]", 9_000) + `}`)},
		"members of a status":   {typ: "MeshService", spec: []byte(`{` + fill(`"a":0,`) + `"a":0}`), status: true},
		"inbounds of Dataplane": {typ: "Dataplane", spec: inbounds},
		"labels": {typ: "MeshTimeout", spec: []byte("{}"),
			rest: protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(fill("\x2a\x00")))},
	} {
		t.Run(name, func(t *testing.T) {
			envelope := &meshpb.KumaResource{Meta: &meshpb.KumaResource_Meta{Name: "r", Mesh: "default"},
				Spec: &anypb.Any{Value: row.spec}}
			if row.typ == "Dataplane" {
				envelope.Spec.TypeUrl = "type.googleapis.com/" +
					string((&meshpb.Dataplane{}).ProtoReflect().Descriptor().FullName())
			}
			if row.status {
				envelope.Spec, envelope.Status = &anypb.Any{Value: []byte("{}")}, envelope.Spec
			}
			value, err := proto.Marshal(envelope)
			if err != nil {
				t.Fatal(err)
			}
			wire := &discovery.Resource{Name: "r.default",
				Resource: &anypb.Any{TypeUrl: resourceTypeURL, Value: append(value, row.rest...)}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = Decode(row.typ, wire)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, messages.ErrDense) {
				t.Errorf("%v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > mostGarbage {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}
