package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// loot is what must not be found anywhere: each secret in every form in which it could leak.
type loot struct {
	forms map[string][]byte // by kind and form
	kinds map[string]int    // the number of secrets of each kind
}

func newLoot() *loot { return &loot{forms: map[string][]byte{}, kinds: map[string]int{}} }

// tellingPart is how many letters of a token's signature prove a leak.
const tellingPart = 24

// addText adds a token or a passphrase: unchanged, and in the forms of addBytes. For a token, the start and the end of
// the signature count too: half a token does not belong in a log either.
func (l *loot) addText(kind, text string) {
	l.addBytes(kind, []byte(text))
	if at := strings.LastIndexByte(text, '.'); strings.Count(text, ".") == 2 {
		signature := []byte(text[at+1:])
		l.addBytes(kind+", its signature", signature[:min(tellingPart, len(signature))])
		l.addBytes(kind+", its signature", signature[max(0, len(signature)-tellingPart):])
	}
}

// addBytes adds a secret. Base64 covers every text that contains it, such as PEM: in each of the three alignments of
// its bytes.
func (l *loot) addBytes(kind string, secret []byte) {
	l.kinds[kind]++
	add := func(form string, b []byte) { l.forms[fmt.Sprintf("%s %d as %s", kind, l.kinds[kind], form)] = b }
	add("bytes", secret)
	add("hex", []byte(hex.EncodeToString(secret)))
	add("HEX", []byte(strings.ToUpper(hex.EncodeToString(secret))))
	add("a number", []byte(new(big.Int).SetBytes(secret).String()))
	add("a list", bytes.Trim(fmt.Appendf(nil, "%d", secret), "[]"))
	for off, dependent := range []int{0, 2, 3} {
		padded := append(make([]byte, off), secret...)
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding,
			"base64 for URLs": base64.URLEncoding} {
			text := encoding.EncodeToString(padded)
			add(fmt.Sprintf("%s, off by %d", name, off), []byte(text[dependent:len(padded)/3*4]))
		}
	}
}

// addKey adds the secret part of a private key.
func (l *loot) addKey(kind string, key any) error {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		scalar, err := k.Bytes()
		if err != nil {
			return err
		}
		l.addBytes(kind, scalar)
	case ed25519.PrivateKey:
		l.addBytes(kind, k.Seed())
	default:
		return fmt.Errorf("%s: a key of type %T", kind, key)
	}
	return nil
}

// addDocument adds the keys in an opened secret: PEM, PKCS #8, or the seed of an Ed25519 key, in the fields of JSON or
// alone.
func (l *loot) addDocument(kind string, plain []byte) error {
	var document any
	if json.Unmarshal(plain, &document) != nil {
		document = string(plain)
	}
	return l.walk(kind, "", document)
}

func (l *loot) walk(kind, field string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			if err := l.walk(kind, name, one); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := l.walk(kind, field, one); err != nil {
				return err
			}
		}
	case string:
		return l.addString(kind, field, v)
	}
	return nil
}

func (l *loot) addString(kind, field, text string) error {
	var der []byte
	if block, _ := pem.Decode([]byte(text)); block != nil {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil
		}
		der = block.Bytes
	} else if der, _ = base64.StdEncoding.DecodeString(text); field == "private" && len(der) == ed25519.SeedSize {
		l.addBytes(kind, der)
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil //nolint:nilerr // it is something else than a key
	}
	return l.addKey(kind, key)
}

// leastEncoded is the least number of bytes of possible base64 that are decoded.
const leastEncoded = 40

// encoded returns the runs of possible base64.
func encoded(text []byte) [][]byte {
	runs := bytes.FieldsFunc(text, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("+/_-", r)
	})
	return slices.DeleteFunc(runs, func(run []byte) bool { return len(run) < leastEncoded })
}

// looseEnds removes what separates the lines of PEM: in text, in JSON, and in JSON in JSON.
var looseEnds = strings.NewReplacer("\n", "", "\r", "", " ", "", "\t", "", `\\n`, "", `\n`, "", `\`, "")

// in lists the loot in an output: unchanged, without line ends, or inside base64.
func (l *loot) in(given []byte) (found []string) {
	layers := [][]byte{given, []byte(looseEnds.Replace(string(given)))}
	for _, run := range append(encoded(given), encoded(layers[1])...) {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if inner, err := encoding.DecodeString(string(run[:len(run)/4*4])); err == nil {
				layers = append(layers, inner, []byte(looseEnds.Replace(string(inner))))
			}
		}
	}
	at := l.index()
	met := map[string]bool{}
	for _, layer := range layers {
		for i := range len(layer) - beginning + 1 {
			for _, form := range at[[beginning]byte(layer[i:])] {
				if !met[form] && bytes.HasPrefix(layer[i:], l.forms[form]) {
					met[form] = true
					found = append(found, form)
				}
			}
		}
	}
	return found
}

// beginning is how much of a form leads to it: less than the shortest has.
const beginning = 8

// index lists the forms by their beginnings, so that an output is read once for all of them: there are a thousand.
func (l *loot) index() map[[beginning]byte][]string {
	at := map[[beginning]byte][]string{}
	for form, secret := range l.forms {
		at[[beginning]byte(secret)] = append(at[[beginning]byte(secret)], form)
	}
	return at
}

// TestLootIsFound checks that a key is recognised in every form, on which TestNothingGivesKeysAway relies.
func TestLootIsFound(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	quoted, err := json.Marshal(map[string]string{"key": text})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(quoted))
	if err != nil {
		t.Fatal(err)
	}
	l := newLoot()
	if err := l.addDocument("key", quoted); err != nil {
		t.Fatal(err)
	}
	l.addText("token", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJlLW9mLWEtdG9rZW4")
	for name, given := range map[string]string{
		"PEM": text, "PEM in JSON": string(quoted), "PEM in JSON in JSON": string(twice),
		"indented PEM":  strings.ReplaceAll(text, "\n", "\n    "),
		"DER of PKCS 8": string(pkcs8), "DER of SEC 1": string(sec1),
		"base64 of DER":        base64.StdEncoding.EncodeToString(sec1),
		"base64 of PEM":        base64.StdEncoding.EncodeToString([]byte(text)),
		"base64 of the scalar": base64.StdEncoding.EncodeToString(scalar),
		"hex":                  fmt.Sprintf("%x", scalar), "HEX": fmt.Sprintf("%X", sec1),
		"a struct": fmt.Sprintf("%+v", new(big.Int).SetBytes(scalar)), "bytes": fmt.Sprintf("%v", []any{scalar}),
		"the end of a token": "bad token ...In0.c2lnbmF0dXJlLW9mLWEtdG9rZW4",
		"a token in JSON":    `{"token":"eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJlLW9mLWEtdG9rZW4"}`,
	} {
		if len(l.in([]byte("before "+given+" after"))) == 0 {
			t.Errorf("%s: not found in %s", name, given)
		}
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if found := l.in(append(public, "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJyb290In0."...)); len(found) > 0 {
		t.Errorf("in a public key, %v is found", found)
	}
}
