package proxypatch

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	tagsv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// NeedsVerb ends the reasons of refusals.
const NeedsVerb = ": only a policy with the label causeway.io/unguarded may, whose writer needs the verb unguard"

// danger is something that an ordinary patch may not add to a message: an extension that is not allowed there, a file
// or secret of the machine, or a protected cluster.
type danger struct {
	reason string
	// unit is the list or map item that contains it, such as a filter or a route, or the whole message.
	unit protoreflect.Message
	// what is the extension or source itself if reason does not say all of it, or nil.
	what proto.Message
}

// dangers lists the dangers in a message, one per occurrence. It looks into packed messages.
func dangers(m proto.Message, at exposure, protected map[string]bool) []danger {
	s := search{at: at, protected: protected}
	if m != nil {
		s.message(m.ProtoReflect(), m.ProtoReflect())
	}
	return s.found
}

// gained returns the first reason in after that is neither in before, in the same unit, nor as often in the proxy's own
// configuration. The proxy's own dangers may be in a changed unit, because a list says what may change there, but stay
// what they are: routes do not begin to come from another server. Those of another patch may not be in a changed unit:
// the text of a script, for example, belongs to its author.
func gained(own, before, after []danger) string {
	before, left := slices.Clone(before), slices.Clone(own)
	var changed []danger
	for _, d := range after {
		i := slices.IndexFunc(before, d.same)
		if i < 0 {
			changed = append(changed, d)
			continue
		}
		before = slices.Delete(before, i, i+1)
		if i = slices.IndexFunc(left, d.same); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	for _, d := range changed {
		i := slices.IndexFunc(left, d.alike)
		if i < 0 {
			return d.reason
		}
		left = slices.Delete(left, i, i+1)
	}
	return ""
}

// same reports whether two dangers are the same, in equal units.
func (d danger) same(o danger) bool {
	return d.reason == o.reason && (d.unit == o.unit || proto.Equal(d.unit.Interface(), o.unit.Interface()))
}

// alike reports whether two dangers are the same, in whatever units. A packed message may be encoded in several ways.
func (d danger) alike(o danger) bool {
	if d.reason != o.reason || (d.what == nil) != (o.what == nil) {
		return false
	}
	if d.what == nil || proto.Equal(d.what, o.what) {
		return true
	}
	a, errA := protojson.Marshal(d.what)
	b, errB := protojson.Marshal(o.what)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// search collects dangers.
type search struct {
	at        exposure
	protected map[string]bool
	found     []danger
	unit      protoreflect.Message // the unit of the current message
}

func (s *search) note(format string, args ...any) {
	s.found = append(s.found, danger{reason: fmt.Sprintf(format, args...), unit: s.unit})
}

// noteAs notes a danger whose reason does not say all of it.
func (s *search) noteAs(what proto.Message, format string, args ...any) {
	s.note(format, args...)
	s.found[len(s.found)-1].what = what
}

// message searches a message that belongs to a unit.
func (s *search) message(m, unit protoreflect.Message) {
	s.unit = unit
	if a, ok := m.Interface().(*anypb.Any); ok {
		s.extension(a, unit)
		return
	}
	s.fields(m)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Kind() == protoreflect.MessageKind {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					s.message(v.Message(), v.Message())
					return true
				})
			}
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := range v.List().Len() {
				s.message(v.List().Get(i).Message(), v.List().Get(i).Message())
			}
		default:
			s.message(v.Message(), unit)
		}
		return true
	})
}

func (s *search) extension(a *anypb.Any, unit protoreflect.Message) {
	inner, err := open(a)
	if err != nil {
		s.noteAs(a, "brings %s, which this server cannot read", typeName(a))
		return
	}
	if name := typeName(a); !mayBring(name, s.at) {
		s.note("brings the extension %s, which not everybody may add here", name)
		if _, elsewhere := allowed[name]; !elsewhere { // lists say what of the others may change
			s.found[len(s.found)-1].what = inner
		}
	}
	s.message(inner.ProtoReflect(), unit)
}

// fields notes the dangers in a message itself.
func (s *search) fields(m protoreflect.Message) {
	switch v := m.Interface().(type) {
	case *corev3.DataSource:
		if v.GetEnvironmentVariable() != "" {
			s.note("reads the environment variable %s", v.GetEnvironmentVariable())
		}
	case *corev3.Pipe:
		s.note("names the socket %s of the machine", v.GetPath())
	case *corev3.EnvoyInternalAddress:
		s.noteAs(v, "names an internal listener")
	case *corev3.ConfigSource:
		s.noteAs(v, "names a source of configuration")
	case *tlsv3.SdsSecretConfig:
		s.note("names the secret %s", v.GetName())
	case *corev3.GrpcService_GoogleGrpc:
		s.noteAs(v, "calls a gRPC service with credentials of the machine")
	case *tlsv3.TlsKeyLog:
		s.note("writes the keys of connections to the file %s of the machine", v.GetPath())
	case *limitv3.LocalRateLimit:
		if s.at == exposed && len(v.GetRequestHeadersToAddWhenNotEnforced()) > 0 {
			s.note("adds headers to requests after they were judged")
		}
	case *tagsv3.CustomTag_Environment:
		s.note("reads the environment variable %s", v.GetName())
	case *corev3.HttpUri:
		if s.at == exposed {
			s.note("calls %s", v.GetUri())
		}
	case *routev3.RouteAction:
		if v.GetClusterHeader() != "" || v.GetClusterSpecifierPlugin() != "" || v.GetInlineClusterSpecifierPlugin() != nil {
			s.note("sends requests to a cluster that the request names")
		}
	case *routev3.WeightedCluster_ClusterWeight:
		if v.GetClusterHeader() != "" {
			s.note("sends requests to a cluster that the request names")
		}
	case *routev3.RouteAction_RequestMirrorPolicy:
		if v.GetClusterHeader() != "" {
			s.note("sends requests to a cluster that the request names")
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		eachText(fd, v, func(text string) { s.text(string(fd.Name()), text) })
		return true
	})
}

// ofMachine are parts of the names of fields that hold file names.
var ofMachine = []string{"filename", "filepath", "file_path", "_file", "log_path", "directory", "socket_path"}

// readsMachine finds the commands of format strings that read from the machine.
var readsMachine = regexp.MustCompile(`(?i)%\s*(ENVIRONMENT|FILE_CONTENT|SECRET)\b`)

func (s *search) text(field, text string) {
	switch {
	case text == "":
	case slices.ContainsFunc(ofMachine, func(part string) bool { return strings.Contains(field, part) }):
		s.note("names the file %s of the machine", text)
	case readsMachine.MatchString(text):
		s.note("has a format that reads from the machine: %.100q", text)
	case s.protected[text] || reserved(text) && (field == "name" || strings.Contains(field, "cluster")):
		s.note("refers to the cluster %s", text)
	}
}

// reserved reports whether only the server gives such names to resources.
func reserved(name string) bool {
	return strings.HasPrefix(name, "causeway_") || strings.HasPrefix(name, "self_inbound_")
}

// eachText visits the texts of a field.
func eachText(fd protoreflect.FieldDescriptor, v protoreflect.Value, visit func(string)) {
	text := func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch fd.Kind() {
		case protoreflect.StringKind:
			visit(v.String())
		case protoreflect.BytesKind:
			visit(string(v.Bytes()))
		}
	}
	switch {
	case fd.IsMap():
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if fd.MapKey().Kind() == protoreflect.StringKind {
				visit(k.String())
			}
			text(fd.MapValue(), v)
			return true
		})
	case fd.IsList():
		for i := range v.List().Len() {
			text(fd, v.List().Get(i))
		}
	default:
		text(fd, v)
	}
}
