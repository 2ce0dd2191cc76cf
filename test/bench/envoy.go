package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// object is a part of Envoy's configuration as JSON.
type object = map[string]any

// envoyProcess is a real Envoy with static listeners on sockets in dir, and a client that they accept.
type envoyProcess struct {
	cmd    *exec.Cmd
	dir    string
	client *tls.Config
}

// extension returns a typed extension whose configuration is fields, merged with message if it is not nil.
func extension(name, messageType string, message proto.Message, fields object) (object, error) {
	config := object{"@type": "type.googleapis.com/" + messageType}
	if message != nil {
		packed, err := anypb.New(message)
		if err != nil {
			return nil, err
		}
		raw, err := protojson.Marshal(packed)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &config); err != nil {
			return nil, err
		}
	}
	for k, v := range fields {
		config[k] = v
	}
	return object{"name": name, "typed_config": config}, nil
}

// startEnvoy runs Envoy with one worker. listeners gets the transport socket to use.
func startEnvoy(ctx context.Context, dir, identity string,
	listeners func(transport object) ([]any, error)) (*envoyProcess, error) {
	binary, err := cluster.FindEnvoy("")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	transport, client, err := mutualTLS(identity)
	if err != nil {
		return nil, err
	}
	list, err := listeners(transport)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(object{"static_resources": object{"listeners": list}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "envoy.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, err
	}
	e := &envoyProcess{dir: dir, client: client}
	e.cmd = exec.CommandContext(ctx, binary, "-c", file, "-l", "error", "--concurrency", "1", "--disable-hot-restart")
	e.cmd.Stderr = os.Stderr
	return e, e.cmd.Start()
}

func (e *envoyProcess) stop() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func (e *envoyProcess) dial(socket string) (*tls.Conn, error) {
	raw, err := net.Dial("unix", filepath.Join(e.dir, socket))
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, e.client)
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn, conn.Handshake()
}

// ready waits until a listener accepts connections.
func (e *envoyProcess) ready(ctx context.Context, socket string) error {
	for {
		conn, err := e.dial(socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("envoy does not listen: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// get sends one request on an open connection. It fails unless the answer is 200.
func get(conn *tls.Conn, r *bufio.Reader) error {
	if _, err := conn.Write([]byte("GET /orders HTTP/1.1\r\nHost: backend\r\n\r\n")); err != nil {
		return err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("want 200, got %s", resp.Status)
	}
	return nil
}

// echo opens a connection, sends a line and waits until it comes back.
func (e *envoyProcess) echo(socket string) error {
	conn, err := e.dial(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 16))
	return err
}

// mutualTLS creates an authority, a transport socket for its servers, and a client with the identity.
func mutualTLS(identity string) (transport object, client *tls.Config, err error) {
	id, err := url.Parse(identity)
	if err != nil {
		return nil, nil, err
	}
	p, err := newProof(&x509.Certificate{URIs: []*url.URL{id}})
	if err != nil {
		return nil, nil, err
	}
	own, err := p.pair()
	if err != nil {
		return nil, nil, err
	}
	inline := func(kind string, der []byte) object {
		return object{"inline_string": string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))}
	}
	transport, err = extension("envoy.transport_sockets.tls",
		"envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", nil, object{
			"require_client_certificate": true,
			"common_tls_context": object{
				"tls_certificates": []any{object{"certificate_chain": inline("CERTIFICATE", p.Certificate),
					"private_key": inline("PRIVATE KEY", p.Key)}},
				"validation_context": object{"trusted_ca": inline("CERTIFICATE", p.Root)},
			},
		})
	return transport, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}}, err
}
