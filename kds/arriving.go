package kds

import (
	"fmt"
	"slices"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
)

// What a peer may say, in bytes and in numbers. A message is held to these before anything is done with it, and one that is not
// within them ends the stream: no peer of ours or of the ecosystem comes near. What is wrong with one resource is refused by name instead.
const (
	// maxWord bounds types, node ids and versions, which both sides only compare; maxNonce what is only repeated.
	maxWord  = 253
	maxNonce = 4 << 10
	// maxFullName is that of `<name>.<mesh>`.
	maxFullName = maxWireName + 1 + maxWireName
	// maxVersionInfo bounds system_version_info: a revision and the traces of a change.
	maxVersionInfo = 4 << 10
	// maxSubscribed bounds the names of a subscription, of which only "*" has a meaning.
	maxSubscribed = 1000
	// maxNames bounds the names in one message; one of MaxMessageSize has room for about half as many of real resources.
	maxNames = 200_000
)

// checked yields what receive does, as long as check finds nothing wrong with it. It is the one place where a stream's words come in:
// behind it names, types, nonces and versions are of bounded size and printable, and names have a dot.
func checked[M proto.Message](receive func() (M, error), check func(M) error) func() (M, error) {
	return func() (M, error) {
		m, err := receive()
		if err == nil {
			err = check(m)
		}
		return m, err
	}
}

// checkRequest judges a request as such; whether it means something is for handle.
func checkRequest(r *discovery.DeltaDiscoveryRequest) error {
	if err := checkWords(r.GetTypeUrl(), r.GetResponseNonce(), r.GetNode().GetId()); err != nil {
		return err
	}
	if n := len(r.GetResourceNamesSubscribe()) + len(r.GetResourceNamesUnsubscribe()); n > maxSubscribed {
		return fmt.Errorf("%w: it subscribes to %d names, want at most %d", ErrRequest, n, maxSubscribed)
	}
	if n := len(r.GetInitialResourceVersions()); n > maxNames {
		return fmt.Errorf("%w: initial_resource_versions has %d names, want at most %d", ErrRequest, n, maxNames)
	}
	for name, version := range r.GetInitialResourceVersions() {
		if err := checkFullName(name); err != nil {
			return fmt.Errorf("%w: initial_resource_versions: %w", ErrRequest, err)
		}
		if !isWord(version) {
			return fmt.Errorf("%w: initial_resource_versions: the version of %s is %q", ErrRequest, name, truncate(version))
		}
	}
	return nil
}

// checkResponse judges a response as such. The names of its resources are judged one by one, where each can be refused.
func checkResponse(r *discovery.DeltaDiscoveryResponse) error {
	if err := checkWords(r.GetTypeUrl(), r.GetNonce(), r.GetControlPlane().GetIdentifier()); err != nil {
		return err
	}
	if info := r.GetSystemVersionInfo(); len(info) > maxVersionInfo {
		return fmt.Errorf("%w: system_version_info has %d bytes, want at most %d", ErrRequest, len(info), maxVersionInfo)
	}
	if n := len(r.GetResources()) + len(r.GetRemovedResources()); n > maxNames {
		return fmt.Errorf("%w: it has %d resources and removals, want at most %d", ErrRequest, n, maxNames)
	}
	for _, item := range r.GetResources() {
		if item.GetName() == "" {
			return fmt.Errorf("%w: a resource has no name", ErrRequest)
		}
	}
	// Nothing here is called so.
	r.RemovedResources = slices.DeleteFunc(r.RemovedResources, func(name string) bool { return checkFullName(name) != nil })
	return nil
}

func checkWords(typeURL, nonce, id string) error {
	for _, w := range [...]struct {
		field, value string
		most         int
	}{{"type_url", typeURL, maxWord}, {"the nonce", nonce, maxNonce}, {"the node's id", id, maxWord}} {
		if !isText(w.value, ' ', w.most) {
			return fmt.Errorf("%w: %s is %q: want at most %d printable characters", ErrRequest, w.field, truncate(w.value), w.most)
		}
	}
	return nil
}

// isWord accepts printable ASCII without spaces, and nothing at all.
func isWord(s string) bool { return isText(s, '!', maxWord) }

// isText accepts printable ASCII from a character on.
func isText(s string, first byte, most int) bool {
	if len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] < first || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// checkFullName accepts `<name>.<mesh>`, the mesh of which may be empty.
func checkFullName(name string) error {
	if len(name) > maxFullName || strings.IndexByte(name, '.') < 1 || strings.ContainsFunc(name, notInNames) {
		return fmt.Errorf("%q is not of the form NAME.MESH", truncate(name))
	}
	return nil
}

// What is within a message is judged as the message is (package messages), before it is decoded: in memory it can be many times as
// large as on the wire.
const (
	// maxValues bounds the values of a spec. Users may write no more (package resources).
	maxValues = resources.MaxValues + resources.MaxAliasedNodes
	// sparse is the size in bytes up to which nothing can be too dense.
	sparse = 64 << 10
)

// checkText judges JSON that a resource holds.
func checkText(raw []byte) error {
	if len(raw) <= sparse {
		return nil
	}
	return messages.CheckJSON(raw, maxValues, resources.MaxDepth)
}

// decodeMessage reads a message that another one holds.
func decodeMessage(raw []byte, into proto.Message) error {
	if len(raw) > sparse {
		if err := messages.Check(into, raw); err != nil {
			return err
		}
	}
	return proto.Unmarshal(raw, into)
}

// Bounds of what a resource says beside its spec.
const (
	maxLabels     = 256
	maxLabelBytes = 64 << 10
)

// checkLabels bounds the labels of one resource; what they may say is for validation.
func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("%w: it has %d labels, want at most %d", errUndecodable, len(labels), maxLabels)
	}
	size := 0
	for key, value := range labels {
		if size += len(key) + len(value); size > maxLabelBytes {
			return fmt.Errorf("%w: its labels are larger than %d bytes", errUndecodable, maxLabelBytes)
		}
		if key == "" || strings.ContainsFunc(key, isControl) || strings.ContainsFunc(value, isControl) {
			return fmt.Errorf("%w: label %q: want printable characters", errUndecodable, truncate(key))
		}
	}
	return nil
}

func isControl(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }
