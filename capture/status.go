package capture

// State is what is there of a capture.
type State string

// States of a capture.
const (
	Absent    State = "absent"
	Installed State = "installed"
	// Partial means that rules of ours are missing.
	Partial State = "partial"
	// Changed means that the table has rules, chains or settings that are not ours.
	Changed State = "changed"
)

// Status is what the kernel has, compared with what Install put there.
type Status struct {
	State State `json:"state"`
	// Problems says what differs from a whole capture.
	Problems []string `json:"problems,omitempty"`
	// Settings are those that were installed; nil if they are not readable.
	Settings *Settings `json:"settings,omitempty"`
	// Listeners are the ports that connections are redirected to.
	Listeners []Listener `json:"listeners,omitempty"`
}

// Listener is a port that connections are redirected to.
type Listener struct {
	Port uint16 `json:"port"`
	For  string `json:"for"`
	// Families has IPv4, IPv6 or both, where the port is open. Connections of others are refused.
	Families []string `json:"families"`
	// User has the port open; nil if nobody has.
	User *uint32 `json:"user,omitempty"`
	// Problem says why captured connections are not in the hands of the proxy.
	Problem string `json:"problem,omitempty"`
}
