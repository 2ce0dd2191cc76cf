package api

import (
	"bytes"
	"encoding/json"
)

// leftOutOf returns the number of omitted resources that a response reports: for the whole response, for its proxies,
// and for those of its results.
func leftOutOf(raw []byte) int {
	if !bytes.Contains(raw, []byte(`"leftOut"`)) {
		return 0
	}
	type counted struct {
		LeftOut int             `json:"leftOut"`
		Proxies json.RawMessage `json:"proxies"`
	}
	sum := func(c *counted) int {
		var proxies struct {
			LeftOut int `json:"leftOut"`
		}
		_ = json.Unmarshal(c.Proxies, &proxies) // a list of proxies has no such count
		return c.LeftOut + proxies.LeftOut
	}
	var answer struct {
		counted
		Results []counted `json:"results"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return 0
	}
	n := sum(&answer.counted)
	for i := range answer.Results {
		n += sum(&answer.Results[i])
	}
	return n
}
