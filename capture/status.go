package capture

// State is the state of a capture.
type State string

// States of a capture.
const (
	Absent    State = "absent"
	Installed State = "installed"
	// Partial means that some of our rules are missing.
	Partial State = "partial"
	// Changed means that the table has rules, chains or settings that are not ours.
	Changed State = "changed"
)

// Status compares the kernel's rules with those that Install wrote.
type Status struct {
	State State `json:"state"`
	// Problems lists the differences from a complete capture.
	Problems []string `json:"problems,omitempty"`
	// Settings are the installed settings; nil if they are not readable.
	Settings *Settings `json:"settings,omitempty"`
	// Listeners are the ports that connections are redirected to.
	Listeners []Listener `json:"listeners,omitempty"`
}

// Listener is a port that connections are redirected to.
type Listener struct {
	Port uint16 `json:"port"`
	For  string `json:"for"`
	// Families lists IPv4, IPv6 or both, where the port is open. Connections of other families are refused.
	Families []string `json:"families"`
	// User has the port open; nil if nobody has.
	User *uint32 `json:"user,omitempty"`
	// Problem is why the proxy does not receive captured connections.
	Problem string `json:"problem,omitempty"`
}
