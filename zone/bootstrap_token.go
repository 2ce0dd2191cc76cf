package zone

import (
	"fmt"
	"path/filepath"
	"regexp"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	injectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/credential_injector/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	codecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	contentv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/file_content/v3"
	genericv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/injected_credentials/generic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// tokenSecret is the name of the token among the bootstrap's secrets, which Envoy omits from its configuration dumps.
const tokenSecret = "dataplane_token" //nolint:gosec // a name, not a credential

// compactToken matches the compact form of a JSON Web Token.
var compactToken = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

func tokenSecrets(token string) []*tlsv3.Secret {
	if token == "" {
		return nil
	}
	return []*tlsv3.Secret{{Name: tokenSecret, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: token}},
	}}}}
}

// DescribeToken returns the file that tells a proxy where its token is. Envoy reads the token again whenever something
// is moved into the token's folder, which is how the kubelet and most others renew files. All versions of Envoy take it; see
// followed for a form without such a file.
func DescribeToken(file string) ([]byte, error) {
	secret, err := anypb.New(&tlsv3.Secret{Name: tokenSecret, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: file}}}}})
	if err != nil {
		return nil, err
	}
	json, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&discovery.DiscoveryResponse{Resources: []*anypb.Any{secret}})
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(json)
}

// tokenFilters returns the filters that add the token to every request to the zone, both for discovery and for access
// logs.
func tokenFilters(cfg *BootstrapConfig) ([]*hcmv3.HttpFilter, error) {
	secret := &tlsv3.SdsSecretConfig{Name: tokenSecret}
	switch {
	case cfg.RenewedTokenFile != "" && cfg.TokenSource == "":
		mutation, err := followed(cfg.RenewedTokenFile)
		if err != nil {
			return nil, err
		}
		return upstreamFilters(namedFilter{"envoy.filters.http.header_mutation", mutation})
	case cfg.RenewedTokenFile != "":
		secret.SdsConfig = &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: cfg.TokenSource}}}
	case cfg.Token == "":
		return nil, nil
	case !compactToken.MatchString(cfg.Token):
		return nil, fmt.Errorf("token: it is not one that causewayctl dataplane token prints") // without the token: errors are logged
	}
	generic, err := anypb.New(&genericv3.Generic{Credential: secret, Header: "authorization", HeaderValuePrefix: "Bearer "})
	if err != nil {
		return nil, err
	}
	return upstreamFilters(namedFilter{"envoy.filters.http.credential_injector",
		&injectorv3.CredentialInjector{Overwrite: true, Credential: &corev3.TypedExtensionConfig{
			Name: "envoy.http.injected_credentials.generic", TypedConfig: generic,
		}}})
}

// followed sets the token of a file as a header. Envoy reads the file again whenever something is moved into its folder.
// Its configuration shows the name of the file, not its content. A version before 1.40 does not start with it; with a secret
// of the bootstrap, it would keep the first token.
func followed(file string) (*mutationv3.HeaderMutation, error) {
	formatter, err := anypb.New(&contentv3.FileContent{})
	if err != nil {
		return nil, err
	}
	set := &corev3.HeaderValueOption{AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD, Header: &corev3.HeaderValue{
		Key: "authorization", Value: fmt.Sprintf("Bearer %%FILE_CONTENT(%s:%s)%%", file, filepath.Dir(file))}}
	return &mutationv3.HeaderMutation{Mutations: &mutationv3.Mutations{
		RequestMutations: []*rulesv3.HeaderMutation{{Action: &rulesv3.HeaderMutation_Append{Append: set}}},
		Formatters:       []*corev3.TypedExtensionConfig{{Name: "envoy.formatter.file_content", TypedConfig: formatter}},
	}}, nil
}

type namedFilter struct {
	name   string
	config proto.Message
}

// upstreamFilters returns the filters of a cluster's requests: one, and what sends them.
func upstreamFilters(first namedFilter) (out []*hcmv3.HttpFilter, err error) {
	for _, one := range []namedFilter{first, {"envoy.filters.http.upstream_codec", &codecv3.UpstreamCodec{}}} {
		config, err := anypb.New(one.config)
		if err != nil {
			return nil, err
		}
		out = append(out, &hcmv3.HttpFilter{Name: one.name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}})
	}
	return out, nil
}
