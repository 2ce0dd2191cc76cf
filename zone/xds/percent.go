package xds

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// percent is a number that users write as 12 or as "12.5".
type percent float64

// UnmarshalJSON accepts a number or a string that holds one.
func (p *percent) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = quoted
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != n || n < 0 {
		return fmt.Errorf("%.40q: want a number of at least 0", text)
	}
	*p = percent(n)
	return nil
}

// percentOf reads a number; ok is false if there is none.
func percentOf(raw json.RawMessage) (n float64, ok bool) {
	var p percent
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return 0, false
	}
	return float64(p), true
}
