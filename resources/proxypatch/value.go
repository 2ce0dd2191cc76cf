package proxypatch

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// messageOf returns an empty message of a kind.
func messageOf(kind string) proto.Message {
	switch kind {
	case kindCluster:
		return &clusterv3.Cluster{}
	case kindListener:
		return &listenerv3.Listener{}
	case kindNetworkFilter:
		return &listenerv3.Filter{}
	case kindHTTPFilter:
		return &hcmv3.HttpFilter{}
	}
	return &routev3.VirtualHost{}
}

// parse parses an Envoy value from YAML. Fields may be in snake case or camel case. Unknown fields, and extension types
// that this server does not know, are errors.
func parse(kind, text string) (proto.Message, error) {
	if len(text) > maxValueBytes {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), maxValueBytes)
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("is not YAML: %s", clean(err))
	}
	if raw[0] != '{' || string(raw) == "{}" { // it is JSON without white space
		return nil, fmt.Errorf("want an object with the fields of Envoy's %s", messageOf(kind).ProtoReflect().Descriptor().Name())
	}
	return decode(raw, messageOf(kind))
}

// decode decodes JSON into a message of the type of empty.
func decode(raw []byte, empty proto.Message) (proto.Message, error) {
	m := empty.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("is not Envoy's %s: %s", empty.ProtoReflect().Descriptor().FullName(), clean(err))
	}
	return m, nil
}

// clean returns the text of a protobuf error, whose spaces vary on purpose.
func clean(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return strings.TrimPrefix(strings.TrimPrefix(text, "proto: "), "proto: ")
}

// open unpacks a message of a type that is linked in.
func open(a *anypb.Any) (proto.Message, error) {
	if a == nil {
		return nil, fmt.Errorf("has no typed config")
	}
	m, err := a.UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("%s: %s", a.GetTypeUrl(), clean(err))
	}
	return m, nil
}

// seal packs a message, deterministically.
func seal(m proto.Message) (*anypb.Any, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: raw}, nil
}
