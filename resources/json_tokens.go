package resources

import (
	"bytes"
	"encoding/json"
	"io"
)

// jsonToken is a token of a JSON text: one of `{}[]` with the kind of its value, or a value with its text.
type jsonToken struct {
	kind nodeKind
	// delim is one of `{}[]`, or zero.
	delim byte
	// text is that of a node.
	text string
}

// jsonTokens yields the tokens of a text.
type jsonTokens interface {
	More() bool
	// token returns io.EOF after the last token.
	token() (jsonToken, error)
	InputOffset() int64
}

// tokensOf returns the tokens of data. For each name and value, a json.Decoder allocates an error and discards it,
// which costs more than all other reading. So a body that is one valid value, as most are, is read without it.
func tokensOf(data []byte) jsonTokens {
	if json.Valid(data) {
		return &validTokens{data: data}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return decodedTokens{dec}
}

// decodedTokens are the tokens of a json.Decoder that uses json.Number.
type decodedTokens struct{ *json.Decoder }

func (d decodedTokens) token() (jsonToken, error) {
	tok, err := d.Token()
	switch t := tok.(type) {
	case bool:
		return wordToken(map[bool]string{false: "false", true: "true"}[t]), err
	case json.Number:
		return jsonToken{kind: numberNode, text: t.String()}, err
	case string:
		return jsonToken{kind: stringNode, text: t}, err
	case json.Delim:
		return delimToken(byte(t)), err
	}
	return jsonToken{}, err
}

func delimToken(c byte) jsonToken {
	if c == '[' || c == ']' {
		return jsonToken{kind: arrayNode, delim: c}
	}
	return jsonToken{kind: objectNode, delim: c}
}

// wordToken is the token of a value that is not a string.
func wordToken(word string) jsonToken {
	switch word {
	case "null":
		return jsonToken{}
	case "true", "false":
		return jsonToken{kind: boolNode, text: word}
	default:
		return jsonToken{kind: numberNode, text: word}
	}
}

// validTokens are the tokens of one value that json.Valid accepts, in UTF-8.
type validTokens struct {
	data []byte
	at   int
}

// InputOffset returns the end of the last token.
func (v *validTokens) InputOffset() int64 { return int64(v.at) }

// More reports whether the current array or object has another element.
func (v *validTokens) More() bool {
	next := v.next()
	return next < len(v.data) && v.data[next] != ']' && v.data[next] != '}'
}

// next returns the start of the next token.
func (v *validTokens) next() int {
	at := v.at
	for at < len(v.data) && bytes.IndexByte([]byte(" \t\r\n,:"), v.data[at]) >= 0 {
		at++
	}
	return at
}

func (v *validTokens) token() (jsonToken, error) {
	begin := v.next()
	if begin == len(v.data) {
		v.at = begin
		return jsonToken{}, io.EOF
	}
	switch c := v.data[begin]; c {
	case '{', '}', '[', ']':
		v.at = begin + 1
		return delimToken(c), nil
	case '"':
		text, err := v.text(begin)
		return jsonToken{kind: stringNode, text: text}, err
	}
	end := begin
	for end < len(v.data) && bytes.IndexByte([]byte(" \t\r\n,:]}"), v.data[end]) < 0 {
		end++
	}
	v.at = end
	return wordToken(string(v.data[begin:end])), nil
}

// text reads the string that begins at begin.
func (v *validTokens) text(begin int) (string, error) {
	end, escaped := begin+1, false
	for v.data[end] != '"' {
		if v.data[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	v.at = end + 1
	if !escaped {
		return string(v.data[begin+1 : end]), nil
	}
	var text string
	err := json.Unmarshal(v.data[begin:v.at], &text)
	return text, err
}
