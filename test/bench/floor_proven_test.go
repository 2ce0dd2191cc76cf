package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"testing"
)

// TestProofs checks that both users of an authority meet by mutual TLS with what it signed.
func TestProofs(t *testing.T) {
	t.Parallel()
	const identity = "spiffe://default.zone-1.mesh.local/workload/frontend"
	id, err := url.Parse(identity)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProof(&x509.Certificate{URIs: []*url.URL{id}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := p.config()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	served := make(chan error, 1)
	server := tls.Server(theirs, config)
	go func() { served <- server.Handshake() }()
	client := config.Clone()
	client.ServerName = "127.0.0.1"
	if err := tls.Client(ours, client).Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if uris := server.ConnectionState().PeerCertificates[0].URIs; len(uris) != 1 || uris[0].String() != identity {
		t.Errorf("the client is %v", uris)
	}
	if _, _, err := mutualTLS(identity); err != nil {
		t.Error(err)
	}
}
