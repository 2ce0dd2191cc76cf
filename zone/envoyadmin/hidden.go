package envoyadmin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// hidden replaces a secret, as Envoy itself writes it.
	hidden = "[redacted]"
	// envoysOwn is what Envoy writes in place of bytes: the same, in base64.
	envoysOwn = "W3JlZGFjdGVkXQ=="
)

// maxDepth limits the nesting of a proxy's response. Protobuf, which Envoy's responses are made of, stops at 100.
const maxDepth = 128

// errNoJSON reports a response that is not one JSON value.
var errNoJSON = errors.New("the answer of the proxy is not JSON")

// open is an object or a list that the reader is in.
type open struct {
	object bool
	// name is the name of the member whose value comes next; wanted means that a name comes next.
	name   string
	wanted bool
	// header is the text of the member "key": Envoy writes headers as a key and a value.
	header string
	// secret means that it is the value of a secret's name.
	secret bool
	items  int
}

// hideSecrets returns an Envoy response without the secrets that come from policies, such as an Authorization header of
// a route: Envoy redacts only the keys that it knows. resources.Sensitive defines what a secret is; the path of a
// kubelet's probe is one too. It reads token by token, so it needs no more memory than the response's bytes. Errors:
// errNoJSON.
func hideSecrets(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	out.Grow(len(raw))
	in := []open{{}}
	for {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && len(in) == 1 && in[0].items == 1:
			return out.Bytes(), nil
		case err != nil || len(in) > maxDepth || len(in) == 1 && in[0].items > 0:
			return nil, errNoJSON
		}
		at := &in[len(in)-1]
		if delim, ok := token.(json.Delim); ok && (delim == ']' || delim == '}') {
			out.WriteString(delim.String())
			in = in[:len(in)-1]
			continue
		}
		if text, ok := token.(string); ok && at.wanted {
			at.name, at.wanted = text, false
			at.separate(&out)
			appendText(&out, text)
			out.WriteByte(':')
			continue
		}
		if !at.object {
			at.separate(&out)
		}
		at.wanted = at.object
		switch v := token.(type) {
		case json.Delim:
			out.WriteString(v.String())
			in = append(in, open{object: v == '{', wanted: v == '{', name: at.name,
				secret: at.secret || resources.IsSecretText(at.name, "")})
		case string:
			appendText(&out, at.shown(v))
		case nil:
			out.WriteString("null")
		default:
			fmt.Fprint(&out, v)
		}
	}
}

// separate writes the comma before everything but the first.
func (o *open) separate(out *bytes.Buffer) {
	if o.items++; o.items > 1 {
		out.WriteByte(',')
	}
}

// places are members that name the location of a secret, not the secret.
var places = []string{"filename", "environment_variable", "name", "sds_config"}

// shown returns the text, or its replacement if it is a secret.
func (o *open) shown(text string) string {
	if o.object && o.name == "key" {
		o.header = text
	}
	value := o.name == "value" || o.name == "raw_value"
	switch {
	case text == "" || text == envoysOwn:
		return text
	case o.secret && !slices.Contains(places, o.name), resources.IsSecretText(o.name, text),
		o.object && value && resources.IsSecretHeader(o.header), injection.IsProbePath(text):
		return hidden
	}
	return text
}

func appendText(out *bytes.Buffer, text string) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text has an encoding
	out.Truncate(out.Len() - 1)
}
