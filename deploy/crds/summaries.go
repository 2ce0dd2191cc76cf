package main

import "github.com/causeway-mesh/causeway/resources"

// policySummaries describe the purpose of each policy in a sentence.
var policySummaries = map[resources.Type]string{
	resources.TypeMeshTrafficPermission: "Who may call the inbounds of the selected proxies. A mesh without a permission " +
		"that allows it lets nobody in.",
	resources.TypeMeshTimeout: "How long connections and requests may take, for what proxies receive (rules) and for what they " +
		"send (to).",
	resources.TypeMeshRateLimit: "How many requests or connections the inbounds of the selected proxies take in a time.",
	resources.TypeMeshFaultInjection: "Faults for some of the requests that the selected proxies receive: aborts, delays, slow " +
		"answers.",
	resources.TypeMeshAccessLog: "Where proxies log the requests and connections that they receive (rules) and send (to), and " +
		"in which form.",
	resources.TypeMeshMetric:                "Which metrics the selected proxies offer, and where.",
	resources.TypeMeshTrace:                 "Where the selected proxies send traces, and of which share of the requests.",
	resources.TypeMeshLoadBalancingStrategy: "How calls to a destination are spread over its endpoints and zones.",
	resources.TypeMeshHealthCheck:           "How the selected proxies probe the endpoints of a destination.",
	resources.TypeMeshCircuitBreaker: "How many connections and requests a destination or an inbound gets at once, and when an " +
		"endpoint is left out.",
	resources.TypeMeshRetry:       "Which requests and connections to a destination are tried again.",
	resources.TypeMeshProxyPatch:  "Changes to the configuration of the selected proxies that no other policy can express.",
	resources.TypeMeshPassthrough: "What the selected proxies may call outside of the mesh without a MeshExternalService.",
	resources.TypeMeshTLS:         "Which versions and ciphers of TLS the selected proxies take, and whether plaintext is allowed.",
	resources.TypeMeshHTTPRoute:   "Which of the requests to a destination go to which backends, and how they are changed.",
	resources.TypeMeshTCPRoute:    "Which backends the connections to a destination go to.",
}
