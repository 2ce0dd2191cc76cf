package xds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server/programtest"
)

// static is a bootstrap that holds what proxies get by discovery. Names get a number, so that it holds any number of
// configurations.
type static struct {
	t         *testing.T
	bootstrap *bootstrapv3.Bootstrap
	// from says for each number where it is from; kinds counts what is held of each type.
	from     []string
	kinds    map[string]int
	clusters map[string]bool
}

func newStatic(t *testing.T) *static {
	const ads = `{"node":{"id":"a","cluster":"a"},"dynamicResources":{"adsConfig":{"apiType":"DELTA_GRPC","transportApiVersion":"V3","grpcServices":[{"envoyGrpc":{"clusterName":"ads"}}]}},
	  "staticResources":{"clusters":[{"name":"ads","connectTimeout":"1s","typedExtensionProtocolOptions":{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions":{"@type":"type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions","explicitHttpConfig":{"http2ProtocolOptions":{}}}}}]}}`
	s := &static{t: t, bootstrap: &bootstrapv3.Bootstrap{}, kinds: map[string]int{}, clusters: map[string]bool{}}
	if err := protojson.Unmarshal([]byte(ads), s.bootstrap); err != nil {
		t.Fatal(err)
	}
	return s
}

// yaml adds the documents of a golden file.
func (s *static) yaml(from string, text []byte) {
	s.t.Helper()
	for _, doc := range strings.Split(string(text), "\n---\n") {
		doc = strings.TrimPrefix(doc, "---\n")
		if !strings.Contains(doc, "'@type': ") {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			s.t.Fatalf("%s: %v", from, err)
		}
		packed := &anypb.Any{}
		if err := protojson.Unmarshal(raw, packed); err != nil {
			s.t.Fatalf("%s: %v\n%s", from, err, doc)
		}
		m, err := packed.UnmarshalNew()
		if err != nil {
			s.t.Fatalf("%s: %v", from, err)
		}
		s.add(from, m)
	}
}

// add holds a resource in the form in which a bootstrap may have it: routes and filters in a listener of their own.
func (s *static) add(from string, m proto.Message) {
	s.t.Helper()
	s.from = append(s.from, from)
	name := fmt.Sprintf("n%d", len(s.from)-1)
	s.kinds[string(m.ProtoReflect().Descriptor().Name())]++
	to := s.bootstrap.StaticResources
	switch m := m.(type) {
	case *clusterv3.Cluster:
		if s.clusters[m.GetName()] { // the first keeps its name, which listeners may want to be there
			m.Name = name + "_" + m.GetName()
		}
		s.clusters[m.GetName()] = true
		if m.GetType() == clusterv3.Cluster_EDS && m.GetEdsClusterConfig().GetServiceName() == "" {
			m.EdsClusterConfig.ServiceName = m.GetName()
		}
		to.Clusters = append(to.Clusters, m)
	case *listenerv3.Listener:
		m.Name = name + "_" + m.GetName()
		if at := m.GetAddress().GetSocketAddress(); at != nil {
			at.PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: s.port()} // each has its own
		}
		to.Listeners = append(to.Listeners, m)
	case *routev3.RouteConfiguration:
		m.ValidateClusters = wrapperspb.Bool(false)
		s.listener(name, &hcmv3.HttpConnectionManager{StatPrefix: name, HttpFilters: []*hcmv3.HttpFilter{s.router()},
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: m}})
	case *corev3.TypedExtensionConfig:
		config := m.GetTypedConfig()
		if isForwarder(m.GetName()) {
			last, err := config.UnmarshalNew()
			if err != nil {
				s.t.Fatal(err)
			}
			s.listener(name, last)
			return
		}
		if strings.Contains(config.GetTypeUrl(), "filters.network.") {
			s.listener(name, &tcpv3.TcpProxy{StatPrefix: name, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "ads"}},
				&listenerv3.Filter{Name: m.GetName(), ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}})
			return
		}
		s.listener(name, &hcmv3.HttpConnectionManager{StatPrefix: name, HttpFilters: []*hcmv3.HttpFilter{
			{Name: m.GetName(), ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}, s.router()},
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{Name: name}}})
	}
}

func (s *static) port() uint32 { return uint32(1000 + len(s.from)) }

func (s *static) router() *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: s.pack(&routerv3.Router{})}}
}

func (s *static) pack(m proto.Message) *anypb.Any {
	s.t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		s.t.Fatal(err)
	}
	return packed
}

// listener holds a listener with filters before a last one.
func (s *static) listener(name string, last proto.Message, filters ...*listenerv3.Filter) {
	filters = append(filters, &listenerv3.Filter{Name: "last", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: s.pack(last)}})
	s.bootstrap.StaticResources.Listeners = append(s.bootstrap.StaticResources.Listeners, &listenerv3.Listener{
		Name: name, Address: endpoint{"127.0.0.1", s.port()}.proto(), FilterChains: []*listenerv3.FilterChain{{Filters: filters}}})
}

// validate returns Envoy's error about the bootstrap, and where what it names is from.
func (s *static) validate() error {
	s.t.Helper()
	raw, err := protojson.Marshal(s.bootstrap)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "envoy.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		s.t.Fatal(err)
	}
	envoy, err := programtest.Envoy()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := exec.Command(envoy, "--mode", "validate", "-c", file, "--log-level", "error").CombinedOutput()
	if err == nil {
		return nil
	}
	if len(out) == 0 {
		return err
	}
	where := ""
	for i, from := range s.from {
		if strings.Contains(string(out), fmt.Sprintf("n%d_", i)) || strings.Contains(string(out), fmt.Sprintf("'n%d'", i)) {
			where += " " + from
		}
	}
	return fmt.Errorf("%s: %.2000s", where, out)
}

// TestEnvoyTakesAllThatIsGenerated holds golden configurations, and what comes of a policy of each type in each place, and
// of confs with all fields, against a real Envoy.
func TestEnvoyTakesAllThatIsGenerated(t *testing.T) {
	t.Parallel()
	s := newStatic(t)
	for _, pattern := range []string{"testdata/*.golden.yaml", "testdata/network/*.golden.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if file != filepath.Join("testdata", "grpc.golden.yaml") { // for a client without Envoy
				s.yaml(file, text)
			}
		}
	}
	before := len(s.from)
	for _, one := range enforcedPolicies(t) {
		decoder := json.NewDecoder(bytes.NewReader(configWith(t, one)))
		for {
			var doc string
			if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			s.yaml(string(one.Type)+" "+string(one.Spec.JSON()), []byte(doc))
		}
	}
	for _, kind := range []string{"Cluster", "Listener", "RouteConfiguration", "TypedExtensionConfig"} {
		if s.kinds[kind] < 10 {
			t.Errorf("%d of %s are looked at", s.kinds[kind], kind)
		}
	}
	if before < 30 || len(s.from) < 10*before/5 {
		t.Errorf("%d resources of golden files and %d in all", before, len(s.from))
	}
	if err := s.validate(); err != nil {
		t.Error(err)
	}
	s.add("a cluster that Envoy does not take", &clusterv3.Cluster{Name: "broken", LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED})
	if err := s.validate(); err == nil {
		t.Error("Envoy takes a cluster whose endpoints nobody chooses: does it look at all?")
	}
}

// enforcedPolicies returns the policies of testdata/enforced.
func enforcedPolicies(t *testing.T) (out []*resources.Resource) {
	t.Helper()
	read := func(file string, into any) {
		raw, err := os.ReadFile(filepath.Join("testdata", "enforced", file))
		if err == nil {
			err = yaml.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add := func(typ resources.Type, list string, conf any) {
		out = append(out, testResource(resources.Key{Type: typ, Mesh: "default", Name: "p"}, nil, map[string]any{list: conf}))
	}
	confs, whole := map[resources.Type]map[string]any{}, map[resources.Type][]any{}
	read("confs.yaml", &confs)
	read("whole.yaml", &whole)
	for typ, lists := range confs {
		for list, conf := range lists {
			add(typ, list, conf)
		}
	}
	for typ, list := range whole {
		for _, conf := range list {
			add(typ, "default", conf)
		}
	}
	for file, list := range map[string]string{"fields.yaml": "to", "received.yaml": "rules"} {
		all := map[resources.Type]any{}
		read(file, &all)
		for typ, items := range all {
			add(typ, list, items)
		}
	}
	return out
}
