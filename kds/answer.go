package kds

import (
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/causeway-mesh/causeway/resources"
)

// Field numbers of an ACK: of DeltaDiscoveryRequest, and of the Node in it.
const (
	requestNode    protowire.Number = 1
	requestTypeURL protowire.Number = 2
	requestNonce   protowire.Number = 6
	nodeID         protowire.Number = 1
)

// arrival is what a stream of requests receives into, again and again: each message to each zone is answered by one, and
// nothing keeps that.
type arrival struct {
	request discovery.DeltaDiscoveryRequest
	node    corev3.Node // of an ACK
	// inventories finds what the peer says it has.
	inventories *inventories
}

// decodeAnswer decodes an ACK into what is used again, without reflection. It returns false if the request carries more
// than a node id, a type and a nonce, or is malformed; then the request in m is empty.
func decodeAnswer(b []byte, m *arrival) bool {
	m.request.Reset()
	if len(b) > maxNonce { // text below is one copy, and the decoded strings share it
		return false
	}
	var node *corev3.Node
	m.node.Reset()
	var t resources.Type
	var nonce string
	text := string(b)
	for len(b) > 0 {
		number, value, rest, ok := bytesField(b)
		if !ok {
			return false
		}
		end := len(text) - len(rest)
		b = rest
		switch number {
		case requestNode:
			id, ok := onlyID(value)
			if !ok || node != nil {
				return false
			}
			node = &m.node
			node.Id = text[end-len(id) : end]
		case requestTypeURL:
			d, known := resources.Lookup(resources.Type(value))
			if !known {
				return false
			}
			t = d.Type
		case requestNonce:
			if nonce = text[end-len(value) : end]; !utf8.Valid(value) {
				return false
			}
		default:
			return false
		}
	}
	if nonce == "" {
		return false
	}
	m.request.Node, m.request.TypeUrl, m.request.ResponseNonce = node, string(t), nonce
	return true
}

// onlyID returns the id of a node that has no other field. node ends with the id.
func onlyID(node []byte) ([]byte, bool) {
	number, id, rest, ok := bytesField(node)
	return id, ok && number == nodeID && len(rest) == 0 && utf8.Valid(id)
}

// bytesField reads one length-delimited field: bytes, a string or a message.
func bytesField(b []byte) (number protowire.Number, value, rest []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 || kind != protowire.BytesType {
		return 0, nil, nil, false
	}
	value, size := protowire.ConsumeBytes(b[n:])
	if size < 0 {
		return 0, nil, nil, false
	}
	return number, value, b[n+size:], true
}
