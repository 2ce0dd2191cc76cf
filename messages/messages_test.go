package messages

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

const tenMiB = 10 << 20

// field repeats a field with a value up to a message size.
func field(number protowire.Number, value []byte, size int) []byte {
	one := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	return bytes.Repeat(one, size/len(one))
}

// inside wraps a message in fields, the innermost first.
func inside(value []byte, numbers ...protowire.Number) []byte {
	for _, n := range numbers {
		value = protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), value)
	}
	return value
}

// TestDenseMessagesCostNothing checks that messages that would decode to hundreds of MiB are refused before decoding.
func TestDenseMessagesCostNothing(t *testing.T) {
	deep := []byte{}
	for range 200 {
		deep = inside(deep, 6, 1) // a list in a value in a list
	}
	for name, c := range map[string]struct {
		into proto.Message
		data []byte
	}{
		"empty resources":       {&discovery.DeltaDiscoveryResponse{}, field(2, nil, tenMiB)},
		"empty names":           {&discovery.DeltaDiscoveryRequest{}, field(3, nil, tenMiB)},
		"empty versions":        {&discovery.DeltaDiscoveryRequest{}, field(5, nil, tenMiB)},
		"aliases of a resource": {&discovery.DeltaDiscoveryResponse{}, inside(field(4, nil, tenMiB), 2)},
		"metadata of nulls":     {&discovery.DeltaDiscoveryRequest{}, inside(field(1, nil, tenMiB), 6, 2, 1, 3, 1)},
		"nested too deep": {&structpb.ListValue{},
			append(deep, field(1, []byte("padding of a value that is no value"), small)...)},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(c.data)}, c.into)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrDense) {
				t.Errorf("%v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 10; took > 256 {
				t.Errorf("it took %d KiB", took)
			}
		})
	}
}

// TestWhatPeersSendIsDecoded checks that messages with real names and resources pass, however many they have.
func TestWhatPeersSendIsDecoded(t *testing.T) {
	versions := map[string]string{}
	var resources []*discovery.Resource
	for i := range 60_000 {
		versions[fmt.Sprintf("p%d.default", i)] = fmt.Sprint(i)
		resources = append(resources, &discovery.Resource{
			Name: fmt.Sprintf("p%d.default", i), Version: "1", Resource: &anypb.Any{TypeUrl: "type.googleapis.com/x",
				Value: []byte("{}")},
		})
	}
	for _, m := range []proto.Message{
		&discovery.DeltaDiscoveryRequest{TypeUrl: "MeshTimeout", InitialResourceVersions: versions},
		&discovery.DeltaDiscoveryResponse{Resources: resources},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		half := len(data) / 2
		got := m.ProtoReflect().New().Interface()
		if err := Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data[:half]), mem.SliceBuffer(data[half:])},
			got); err != nil || !proto.Equal(got, m) {
			t.Errorf("%T of %d bytes: %v", m, len(data), err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(inside(field(1, nil, 1000), 6, 2, 1, 3, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &discovery.DeltaDiscoveryRequest{}
		if len(data) <= small/16 && Check(m, data) != nil && proto.Unmarshal(data, m) == nil {
			t.Errorf("a small message is refused: %x", data)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	var resources []*discovery.Resource
	for i := range 3000 {
		resources = append(resources, &discovery.Resource{
			Name: fmt.Sprintf("p%d.default", i), Version: "1", Resource: &anypb.Any{TypeUrl: "type.googleapis.com/x",
				Value: bytes.Repeat([]byte("x"), 300)},
		})
	}
	data, err := proto.Marshal(&discovery.DeltaDiscoveryResponse{Resources: resources})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Check(&discovery.DeltaDiscoveryResponse{}, data); err != nil {
			b.Fatal(err)
		}
	}
}
