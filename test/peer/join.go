package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
)

// Join exchanges a join string for the certificate of a zone, as a zone does. ca verifies the global.
func Join(ctx context.Context, joinString string, ca *x509.CertPool) (tls.Certificate, error) {
	var out tls.Certificate
	offer, err := enrolment.ParseJoinString(joinString)
	if err != nil {
		return out, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return out, err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	member := enrolment.ZoneIdentity{Zone: offer.Zone, ID: fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{member.URI()}}, key)
	if err != nil {
		return out, err
	}
	conn, err := grpc.NewClient(offer.Addresses[0],
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS13})))
	if err != nil {
		return out, err
	}
	defer conn.Close()
	got, err := enrolment.Membership{Conn: conn}.Join(ctx, &enrolmentpb.JoinRequest{Token: offer.Token, Csr: csr})
	if err != nil {
		return out, err
	}
	out.PrivateKey = key
	for rest := []byte(got.Certificate); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out, nil
		}
		out.Certificate = append(out.Certificate, block.Bytes)
	}
}
