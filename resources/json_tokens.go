package resources

import (
	"bytes"
	"encoding/json"
	"io"
)

// jsonTokens yields the tokens of a json.Decoder that uses json.Number.
type jsonTokens interface {
	More() bool
	Token() (json.Token, error)
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
	return dec
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

// Token returns io.EOF after the last token.
func (v *validTokens) Token() (json.Token, error) {
	begin := v.next()
	if begin == len(v.data) {
		v.at = begin
		return nil, io.EOF
	}
	switch c := v.data[begin]; c {
	case '{', '}', '[', ']':
		v.at = begin + 1
		return json.Delim(c), nil
	case '"':
		return v.text(begin)
	}
	end := begin
	for end < len(v.data) && bytes.IndexByte([]byte(" \t\r\n,:]}"), v.data[end]) < 0 {
		end++
	}
	v.at = end
	switch word := string(v.data[begin:end]); word {
	case "null":
		return nil, nil
	case "true", "false":
		return word == "true", nil
	default:
		return json.Number(word), nil
	}
}

// text reads the string that begins at begin.
func (v *validTokens) text(begin int) (json.Token, error) {
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
