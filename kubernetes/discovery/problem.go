package discovery

import "fmt"

// Problem is something about an object that its author should change. It becomes an Event of the object.
type Problem struct {
	// Reason is one word, Message what to change.
	Reason, Message string
}

// Reasons of problems.
const (
	ReasonNoMesh      = "NoMesh"
	ReasonPort        = "PortConflict"
	ReasonPast        = "PortPastProxy"
	ReasonNameTaken   = "NameTaken"
	ReasonInvalid     = "NotInMesh"
	ReasonHostNetwork = "HostNetwork"
	ReasonTooMany     = "TooManyPorts"
	ReasonIdentities  = "TooManyIdentities"
	ReasonFull        = "NamespaceFull"
	ReasonTooBig      = "TooBig"
	ReasonNotCaptured = "NotCaptured"
	ReasonNoAddress   = "NoAddress"
	ReasonOtherCA     = "OtherCA"
)

func problem(reason, format string, args ...any) Problem {
	return Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
