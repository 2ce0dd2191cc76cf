// Package enrolment owns what a global and a server that becomes its zone say to each other about membership: the join
// string that an operator carries, the service that gives and renews credentials, and the URI in a zone's certificate; and the registry of what a global has
// issued to each zone, with the authority that signs it; and the credential that a zone holds, with how it joins
// and renews. Both sides import it. It uses the protocol's errors and port (package kds), of which it is a neighbour service;
// it must not know how the global decides whom to let in, nor the settings of either server.
package enrolment
