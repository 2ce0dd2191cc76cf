package access

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/credential/contexts"
	"github.com/causeway-mesh/causeway/server"
)

// adminContextFile is a context file for causewayctl in a server's data directory. It contains no secret.
const adminContextFile = "context.yaml"

// WriteAdminContext writes the context by which the first admin reaches the HTTP API on the same machine, to a file of
// dir that only the server's user can read. name is the context's, api the bound address; a wildcard address is reached
// over loopback. ca is the PEM file of the authority that signed the certificate off loopback. tokenFile is the admin's
// token; empty if loopback is open. It returns the file's path, and writes only changes. It rewrites a damaged file,
// which contains only what the server knows.
func WriteAdminContext(dir, name string, api net.Addr, ca, tokenFile string) (path string, err error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path = filepath.Join(absolute, adminContextFile)
	host, port, err := net.SplitHostPort(api.String())
	if err != nil {
		return "", fmt.Errorf("address of the HTTP API: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	next := contexts.Context{Name: name, Address: "http://" + net.JoinHostPort(host, port)}
	if !server.IsLoopback(api) {
		next.Address, next.CA = "https://"+net.JoinHostPort(host, port), ca
	}
	next.TokenFile = tokenFile
	for _, file := range []*string{&next.CA, &next.TokenFile} {
		if *file == "" {
			continue
		}
		if *file, err = filepath.Rel(dir, *file); err != nil {
			return "", err
		}
	}
	before, err := contexts.Read(path)
	if errors.Is(err, credential.ErrEmpty) || errors.Is(err, contexts.ErrContent) {
		before, err = contexts.New(path), nil
	}
	if err != nil {
		return "", err
	}
	if before.CurrentContext == name && slices.Equal(before.Contexts, []contexts.Context{next}) {
		return path, nil
	}
	before.CurrentContext, before.Contexts = name, []contexts.Context{next}
	return path, before.Save()
}
