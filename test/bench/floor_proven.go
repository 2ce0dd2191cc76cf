package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// proof is what one end of the floor proves itself by, and the authority of both.
type proof struct{ Root, Certificate, Key []byte }

// newProof creates an authority, and one certificate by it with the names given, for both ends: who they are makes no
// difference to what it costs.
func newProof(names *x509.Certificate) (proof, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return proof{}, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return proof{}, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: names.IPAddresses, URIs: names.URIs, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	if err != nil {
		return proof{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return proof{root, certificate, private}, err
}

// pair returns the certificate with its key.
func (p proof) pair() (tls.Certificate, error) {
	key, err := x509.ParsePKCS8PrivateKey(p.Key)
	return tls.Certificate{Certificate: [][]byte{p.Certificate}, PrivateKey: key}, err
}

// config returns the configuration of either end, which requires a certificate of the other.
func (p proof) config() (*tls.Config, error) {
	root, err := x509.ParseCertificate(p.Root)
	if err != nil {
		return nil, err
	}
	own, err := p.pair()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, Certificates: []tls.Certificate{own},
	}, nil
}

// serverOf returns the server of the floor: by mutual TLS if there is a proof, in JSON.
func serverOf(by string) (*grpc.Server, error) {
	options := []grpc.ServerOption{grpc.ForceServerCodecV2(frames{})}
	if by != "" {
		var p proof
		if err := json.Unmarshal([]byte(by), &p); err != nil {
			return nil, err
		}
		config, err := p.config()
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	return grpc.NewServer(options...), nil
}

// meet answers the first message of a stream with one of the size of a policy.
func meet(stream grpc.ServerStream) error {
	var said []byte
	if err := stream.RecvMsg(&said); err != nil {
		return err
	}
	answer := make([]byte, paceBytes)
	if err := stream.SendMsg(&answer); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// floorOfComing returns how long it takes until as many bare gRPC streams have opened, all at once, each on its own
// connection by mutual TLS, have sent a message of size bytes, and have received one.
func floorOfComing(ctx context.Context, streams, size int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &floor{cancel: cancel}
	defer f.close()
	p, err := newProof(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		return 0, err
	}
	by, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	address, err := f.startChild(ctx, string(by))
	if err != nil {
		return 0, err
	}
	config, err := p.config()
	if err != nil {
		return 0, err
	}
	collect()
	said, met, start := make([]byte, size), make(chan error, streams), time.Now()
	for range streams {
		f.readers.Go(func() { come(ctx, address, config, said, met) })
	}
	for range streams {
		if err := <-met; err != nil {
			return 0, fmt.Errorf("the floor: %w", err)
		}
	}
	return time.Since(start), nil
}

// come opens one of the streams, and keeps it until ctx ends.
func come(ctx context.Context, address string, config *tls.Config, said []byte, met chan<- error) {
	conn, err := dialBy(address, credentials.NewTLS(config))
	if err != nil {
		met <- err
		return
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &streamDesc, "/floor/Meet")
	if err == nil {
		err = sendMessage(stream, said)
	}
	if err == nil {
		var answer []byte
		err = stream.RecvMsg(&answer)
	}
	met <- err
	<-ctx.Done()
}
