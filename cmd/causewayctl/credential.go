package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/credential/session"
)

// The environment variables for credentials, besides the flags.
const (
	tokenEnv     = "CAUSEWAY_TOKEN"
	tokenFileEnv = "CAUSEWAY_TOKEN_FILE"
	pinEnv       = "CAUSEWAY_CA_SHA256"
	// tokenFileFlag is the name of the flag in errors.
	tokenFileFlag = "--token-file"
)

// credentialFlags are the credentials of the caller and the means to verify the server.
type credentialFlags struct {
	token, tokenFile      string
	clientCert, clientKey string
	pin                   string
	// session is the file of the context's session; sessionOf is the context, for errors.
	session, sessionOf string
	flags              *pflag.FlagSet
	// noEnv ignores the environment, because a context has a credential of its own.
	noEnv bool
}

func (c *credentialFlags) add(f *pflag.FlagSet) {
	c.flags = f
	f.StringVar(&c.token, "token", "",
		"user `token`; prefer "+tokenEnv+" or --token-file, which other users of this machine cannot see")
	fromEnv := os.Getenv(tokenFileEnv)
	if fromEnv == "" && os.Getenv(tokenEnv) == "" {
		fromEnv = besideFile("admin.token")
	}
	f.StringVar(&c.tokenFile, "token-file", fromEnv, "`file` with the user token; also "+tokenFileEnv)
	f.StringVar(&c.clientCert, "client-cert", "", "PEM `file` of a client certificate")
	f.StringVar(&c.clientKey, "client-key", "", "PEM `file` of its key")
	f.StringVar(&c.pin, "ca-sha256", os.Getenv(pinEnv),
		"SHA-256, in `hex`, of the certificate of the server's CA, in place of --ca; also "+pinEnv)
}

// apply completes the configuration of a client.
func (c *credentialFlags) apply(config *api.ClientConfig, caFile string) (err error) {
	if err := c.noneEmpty(); err != nil {
		return err
	}
	if config.Token, err = c.readToken(); err != nil {
		return err
	}
	if config.Token != "" && c.clientCert != "" {
		return usagef("a token and --client-cert are both given: give one, so that the caller is unambiguous")
	}
	if c.session != "" {
		source := &session.Source{Path: c.session, Server: config.Address}
		config.TokenSource = func(ctx context.Context) (string, error) {
			token, err := source.Token(ctx)
			return token, signInAgain(c.sessionOf, err)
		}
	}
	if (config.Token != "" || c.session != "") && !strings.HasPrefix(config.Address, "https://") && !loopbackURL(config.Address) {
		return usagef("--address %s: a token is not sent in plaintext to another machine: use https", config.Address)
	}
	if caFile == "" && c.pin == "" && c.clientCert == "" && c.clientKey == "" {
		return nil
	}
	if err := c.trust(config, caFile); err != nil {
		return err
	}
	if (c.clientCert == "") != (c.clientKey == "") {
		return usagef("--client-cert and --client-key require each other")
	}
	if c.clientCert != "" {
		pair, err := credential.Pair("--client-cert", c.clientCert, "--client-key", c.clientKey)
		if err != nil {
			return usagef("%w", err)
		}
		config.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// trust sets the authority that verifies the server: the one in a file, the pinned one, or the system's.
func (c *credentialFlags) trust(config *api.ClientConfig, caFile string) (err error) {
	config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		if config.TLS.RootCAs, err = credential.Pool("--ca", caFile); err != nil {
			return usagef("%w", err)
		}
	}
	if c.pin != "" {
		return c.pinned(config.TLS, caFile)
	}
	return nil
}

// noneEmpty fails if a flag for a credential is empty, for example because a script's variable was unset: the command
// must not continue without the credential. A flag overrides the environment, even an empty variable.
func (c *credentialFlags) noneEmpty() error {
	for _, flag := range []string{"token", "token-file", "client-cert", "client-key", "ca", "ca-sha256", "config"} {
		if f := c.flags.Lookup(flag); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return usagef("--%s is empty: give it a value, or leave it out", flag)
		}
	}
	for _, env := range []string{"CAUSEWAY_CLIENT_CERT", "CAUSEWAY_CLIENT_KEY"} {
		if _, there := os.LookupEnv(env); there && !c.flags.Changed("client-cert") {
			return usagef("nothing reads the variable %s: give --client-cert and --client-key, or unset it", env)
		}
	}
	asks := c.noEnv || c.flags.Changed("token") || c.flags.Changed("token-file") || c.flags.Changed("client-cert")
	knows := c.noEnv || c.flags.Lookup("ca").Value.String() != "" || c.pin != ""
	for env, overruled := range map[string]bool{tokenEnv: asks, tokenFileEnv: asks, caEnv: knows, pinEnv: knows} {
		if value, there := os.LookupEnv(env); there && !overruled && strings.TrimSpace(value) == "" {
			return usagef("the variable %s is set and empty: give it a value, or unset it", env)
		}
	}
	return nil
}

// readToken reads the token from the flags, or else from the environment. Two tokens are an error, as is one that
// cannot be read.
func (c *credentialFlags) readToken() (string, error) {
	file := c.flags.Changed("token-file")
	env := os.Getenv(tokenEnv)
	if c.noEnv {
		env = ""
	}
	switch flag := c.flags.Changed("token"); {
	case flag && file:
		return "", usagef("--token and --token-file are both given: give one")
	case flag:
		return oneToken("--token", c.token)
	case !file && env != "" && c.tokenFile != "":
		return "", usagef("%s and %s are both set: set one", tokenEnv, tokenFileEnv)
	case c.tokenFile != "":
		token, err := credential.Token(tokenFileFlag, c.tokenFile)
		if err != nil {
			return "", usagef("%w", err)
		}
		return oneToken(tokenFileFlag, token)
	case env != "":
		return oneToken(tokenEnv, env)
	}
	return "", nil
}

// oneToken returns the token without surrounding white space. It refuses a token with white space inside, which would
// be cut in transit.
func oneToken(from, token string) (string, error) {
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", usagef("%s: the token contains white space, or there is more than one token", from)
	}
	return token, nil
}

var errPin = errors.New(
	"no certificate of the server matches --ca-sha256: is this the intended server?")

// pinned makes the client verify the server by the certificate in the server's chain that the pin names.
func (c *credentialFlags) pinned(config *tls.Config, caFile string) error {
	want, err := hex.DecodeString(c.pin)
	if err != nil || len(want) != sha256.Size {
		return usagef("--ca-sha256: want 64 hex digits, as the server prints them at start")
	}
	if caFile != "" {
		return usagef("--ca and --ca-sha256 are both given: give one")
	}
	config.InsecureSkipVerify = true //nolint:gosec // VerifyConnection does it, by the pin
	config.VerifyConnection = func(state tls.ConnectionState) error {
		roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
		found := false
		for _, cert := range state.PeerCertificates {
			if sum := sha256.Sum256(cert.Raw); bytes.Equal(sum[:], want) {
				roots.AddCert(cert)
				found = true
			}
			intermediates.AddCert(cert)
		}
		if !found {
			return errPin
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates,
			DNSName: state.ServerName})
		return err
	}
	return nil
}

// loopbackURL reports whether an address can only mean this machine.
func loopbackURL(address string) bool {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
