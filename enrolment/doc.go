// Package enrolment owns the membership of zones, for both sides: the join string that an operator carries, the service
// that issues and renews credentials, the URI in a zone's certificate, the registry of what a global has issued to each
// zone, the authority that signs it, and the credential that a zone holds and how it joins and renews. It uses the
// errors and the port of the protocol (package kds). It does not depend on how the global decides which zones to admit,
// nor on the settings of either server.
package enrolment
