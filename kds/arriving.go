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

// Limits of what a peer may send, in bytes and in numbers. Every message is checked against them before anything else,
// and one that exceeds them ends the stream: no Causeway or Kuma peer comes near. A fault in one resource is a refusal
// by name instead.
const (
	// maxWord bounds types, node ids and versions, which both sides only compare. maxNonce bounds nonces, which are
	// only repeated.
	maxWord  = 253
	maxNonce = 4 << 10
	// maxFullName bounds `<name>.<mesh>`.
	maxFullName = maxWireName + 1 + maxWireName
	// maxVersionInfo bounds system_version_info: a revision and the traces of a change.
	maxVersionInfo = 4 << 10
	// maxSubscribed bounds the names in a subscription; only "*" has a meaning.
	maxSubscribed = 1000
	// maxNames bounds the names in one message. A message of MaxMessageSize has room for about half as many real
	// resources.
	maxNames = 200_000
)

// checked wraps receive and fails if check finds a fault. All messages of a stream pass through it: behind it names,
// types, nonces and versions are of bounded size and printable, and names contain a dot.
func checked[M proto.Message](receive func() (M, error), check func(M) error) func() (M, error) {
	return func() (M, error) {
		m, err := receive()
		if err == nil {
			err = check(m)
		}
		return m, err
	}
}

// checkRequest checks the form of a request; handle judges what it means. What an inventory has was checked when it was
// made.
func checkRequest(r *discovery.DeltaDiscoveryRequest, known *inventories) error {
	if err := checkWords(r.GetTypeUrl(), r.GetResponseNonce(), r.GetNode().GetId()); err != nil {
		return err
	}
	if n := len(r.GetResourceNamesSubscribe()) + len(r.GetResourceNamesUnsubscribe()); n > maxSubscribed {
		return fmt.Errorf("%w: it subscribes to %d names, want at most %d", ErrRequest, n, maxSubscribed)
	}
	if n := len(r.GetInitialResourceVersions()); n > maxNames {
		return fmt.Errorf("%w: initial_resource_versions has %d names, want at most %d", ErrRequest, n, maxNames)
	}
	if len(r.GetInitialResourceVersions()) == 0 || known.of(r.GetInitialResourceVersions()) != nil {
		return nil
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

// checkResponse checks the form of a response. The names of its resources are checked one by one later, where each can
// be refused.
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
	// No resource here can have such a name.
	r.RemovedResources = slices.DeleteFunc(r.RemovedResources,
		func(name string) bool { return checkFullName(name) != nil })
	return nil
}

func checkWords(typeURL, nonce, id string) error {
	for _, w := range [...]struct {
		field, value string
		most         int
	}{{"type_url", typeURL, maxWord}, {"the nonce", nonce, maxNonce}, {"the node's id", id, maxWord}} {
		if !isText(w.value, ' ', w.most) {
			return fmt.Errorf("%w: %s is %q: want at most %d printable characters", ErrRequest, w.field,
				truncate(w.value), w.most)
		}
	}
	return nil
}

// isWord accepts printable ASCII without spaces, and the empty string.
func isWord(s string) bool { return isText(s, '!', maxWord) }

// isText accepts printable ASCII from the character first on, up to most bytes.
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

// checkFullName accepts `<name>.<mesh>`; the mesh may be empty.
func checkFullName(name string) error {
	if len(name) > maxFullName || strings.IndexByte(name, '.') < 1 || strings.ContainsFunc(name, notInNames) {
		return fmt.Errorf("%q is not of the form NAME.MESH", truncate(name))
	}
	return nil
}

// Nested messages are checked like the message itself (package messages) before they are decoded: in memory they can be
// many times larger than on the wire.
const (
	// maxValues bounds the values of a spec. Users may write no more (package resources).
	maxValues = resources.MaxValues + resources.MaxAliasedNodes
	// sparse is the size in bytes up to which no content can be too dense.
	sparse = 64 << 10
)

// checkText checks JSON inside a resource.
func checkText(raw []byte) error {
	if len(raw) <= sparse {
		return nil
	}
	return messages.CheckJSON(raw, maxValues, resources.MaxDepth)
}

// decodeMessage decodes a message nested in another one.
func decodeMessage(raw []byte, into proto.Message) error {
	if len(raw) > sparse {
		if err := messages.Check(into, raw); err != nil {
			return err
		}
	}
	return proto.Unmarshal(raw, into)
}

// Limits of a resource's labels, in numbers and bytes.
const (
	maxLabels     = 256
	maxLabelBytes = 64 << 10
)

// checkLabels bounds the labels of one resource; validation judges their content.
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
