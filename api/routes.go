package api

import (
	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// Route identifies one row of the table of all routes. Handle accepts nothing else, so every route has a row.
type Route int

// The routes, in the order of the table.
const (
	RouteIndex Route = iota
	RouteResourceTypes
	RoutePolicyTypes
	RouteWhoAmI
	RouteOpenAPI
	RouteCanI
	RouteIssueUserToken
	RouteRevokeUserToken
	RouteRevokeUserCertificate
	RouteAudit
	RouteGlobalInsight
	RouteBackup
	RouteKeys
	RouteRotateKey
	RouteImportKey
	RouteRetireKey
	RouteReplicas
	RouteZoneSyncHere

	RouteBatch
	RouteKRI
	RouteList
	RouteGet
	RoutePut
	RouteDelete
	RouteListInMesh
	RouteGetInMesh
	RoutePutInMesh
	RouteDeleteInMesh
	RouteReveal
	RouteRevealInMesh
	RouteZoneOverviews
	RouteZoneOverview
	RouteDataplaneOverviews
	RouteDataplaneOverviewsInMesh
	RouteDataplaneOverview
	RouteRollout

	RouteProxyRules
	RouteProxyPolicies
	RouteProxyLayout
	RouteProxyConfig
	RouteProxyStats
	RouteProxyClusters
	RouteProxyCertificates
	RouteInboundPolicies
	RouteOutboundPolicies
	RouteTouchedDataplanes
	RouteServicePolicies
	RouteExplain
	RouteExplainAtDataplane
	RouteExplainAtService
	RouteLint
	RouteAccess
	RouteTrust
	RouteShadowReport
	RouteDenialReport
	RouteSuggest

	RouteSVID
	RouteDataplaneToken
	RouteIngressToken
	RouteRevokeDataplaneToken
	RouteSecrets
	RoutePutSecret
	RouteDeleteSecret

	RouteZoneSync
	RouteZoneAcceptDeletes
	RouteZoneResync
	RouteZoneJoin
	RouteZoneToken
	RouteZoneTokenOfPeers
	RouteZoneCredentials
	RouteZoneRevoke
	RouteAdoptions
	RouteZoneAdopt
	RouteZoneEnable
	RouteZoneDisable
	RouteZoneDelete

	routeCount
)

const (
	read                = resources.VerbRead
	write               = resources.VerbCreate + "," + resources.VerbUpdate
	server, thing, mesh = access.ScopeServer, access.ScopeResource, access.ScopeMesh
	namespace           = access.ScopeNamespace

	// Parameters of the query that several routes have.
	inNamespace = "namespace"
	whose       = "namespace,zone"
	forms       = "form,format"
	selected    = "size,offset,name,namespace,filter,tag,gateway"

	dataplane = string(resources.TypeDataplane)
	zoneType  = string(resources.TypeZone)
)

// rows is the table of routes.
var rows = [routeCount]Row{
	RouteIndex:         {Pattern: "GET /{$}", On: onBoth},
	RouteResourceTypes: {Pattern: "GET /_resources", On: onBoth},
	RoutePolicyTypes:   {Pattern: "GET /policies", On: onBoth},
	RouteWhoAmI:        {Pattern: "GET /who-am-i", On: onBoth},
	RouteOpenAPI:       {Pattern: "GET /openapi.json", On: onBoth},
	RouteCanI:          {Pattern: "POST /_can-i", On: onBoth},
	RouteIssueUserToken: {Pattern: "POST /tokens/user", On: onBoth, Verb: resources.VerbIssue,
		Type: resources.AccessUserToken, Scope: thing, ByThing: true},
	RouteRevokeUserToken: {Pattern: "POST /tokens/user/{id}/_revoke", On: onBoth, Verb: resources.VerbRevoke,
		Type: resources.AccessUserToken, Scope: server, Name: "id"},
	RouteRevokeUserCertificate: {Pattern: "POST /certificates/user/{serial}/_revoke", On: onBoth,
		Verb: resources.VerbRevoke, Type: resources.AccessUserCertificate, Scope: server, Name: "serial"},
	RouteAudit: {Pattern: "GET /_audit", On: onBoth, Verb: read, Type: resources.AccessAuditLog, Scope: server,
		EveryNamespace: true, Query: "since,user,type,mesh,namespace,name,event,outcome,after,last,limit,wait"},
	RouteGlobalInsight: {Pattern: "GET /global-insight", On: onBoth, Verb: read, Type: resources.AccessServer,
		Scope: server, Expensive: true, Policies: true},
	RouteBackup: {Pattern: "POST /_backup", On: onBoth, Verb: resources.VerbBackUp, Type: resources.AccessServer,
		Scope: server, Expensive: true},
	RouteKeys: {Pattern: "GET /_keys", On: onBoth, Verb: read, Type: resources.AccessKey, Scope: server},
	RouteRotateKey: {Pattern: "POST /_keys/{purpose}/_rotate", On: onBoth, Verb: resources.VerbRotate,
		Type: resources.AccessKey, Scope: server, Name: "purpose", Query: "zone"},
	RouteImportKey: {Pattern: "POST /_keys/{purpose}/_import", On: OnZone, Verb: resources.VerbRotate,
		Type: resources.AccessKey, Scope: server, Name: "purpose"},
	RouteRetireKey: {Pattern: "POST /_keys/{purpose}/{id}/_retire", On: onBoth, Verb: resources.VerbRotate,
		Type: resources.AccessKey, Scope: server, Name: "purpose"},
	RouteReplicas: {Pattern: "GET /_replicas", On: onBoth, Verb: read, Type: zoneType, Scope: server},
	RouteZoneSyncHere: {Pattern: "GET /_sync", On: OnZone, Verb: read, Type: resources.AccessServer, Scope: server,
		Waits: true, Query: "type," + watchQuery},

	RouteBatch: {Pattern: "POST /_batch", On: onBoth, Verb: write, ByThing: true, Query: dryRunQuery, Policies: true},
	RouteKRI:   {Pattern: "GET /_kri/{kri}", On: onBoth, Verb: read, ByThing: true, Query: forms, Policies: true},
	RouteList: {Pattern: "GET /{plural}", On: onBoth, Verb: read, ByThing: true, Expensive: true,
		Query: selected + ",form," + watchQuery},
	RouteGet: {Pattern: "GET /{plural}/{name}", On: onBoth, Verb: read, ByThing: true, Name: "name",
		Query: whose + "," + forms},
	RoutePut: {Pattern: "PUT /{plural}/{name}", On: onBoth, Verb: write, ByThing: true, Name: "name",
		Query: inNamespace + "," + dryRunQuery, Conditional: true},
	RouteDelete: {Pattern: "DELETE /{plural}/{name}", On: onBoth, Verb: resources.VerbDelete,
		ByThing: true, Name: "name", Query: inNamespace, Conditional: true},
	RouteListInMesh: {Pattern: "GET /meshes/{mesh}/{plural}", On: onBoth, Verb: read, ByThing: true,
		Expensive: true, Query: selected + ",form," + watchQuery},
	RouteGetInMesh: {Pattern: "GET /meshes/{mesh}/{plural}/{name}", On: onBoth, Verb: read,
		ByThing: true, Name: "name", Query: whose + "," + forms},
	RoutePutInMesh: {Pattern: "PUT /meshes/{mesh}/{plural}/{name}", On: onBoth, Verb: write,
		ByThing: true, Name: "name", Query: inNamespace + "," + dryRunQuery, Conditional: true},
	RouteDeleteInMesh: {Pattern: "DELETE /meshes/{mesh}/{plural}/{name}", On: onBoth,
		Verb: resources.VerbDelete, ByThing: true, Name: "name", Query: inNamespace, Conditional: true},
	RouteReveal: {Pattern: "POST /{plural}/{name}/_reveal", On: onBoth,
		Verb: resources.VerbReadSecret, ByThing: true, Name: "name", Query: whose + "," + forms},
	RouteRevealInMesh: {Pattern: "POST /meshes/{mesh}/{plural}/{name}/_reveal", On: onBoth,
		Verb: resources.VerbReadSecret, ByThing: true, Name: "name", Query: whose + "," + forms},
	RouteZoneOverviews: {Pattern: "GET /zones/_overview", On: onBoth, Verb: read, Type: zoneType,
		Scope: thing, ByThing: true, Expensive: true, Overviews: true,
		Query: selected + "," + briefQuery + "," + watchQuery},
	RouteZoneOverview: {Pattern: "GET /zones/{name}/_overview", On: onBoth, Verb: read, Type: zoneType,
		Scope: thing, Name: "name", Query: whose},
	RouteDataplaneOverviews: {Pattern: "GET /dataplanes/_overview", On: onBoth, Verb: read, Type: dataplane,
		Scope: namespace, ByThing: true, Expensive: true, Overviews: true,
		Query: selected + "," + briefQuery + "," + problemsQuery + "," + watchQuery},
	RouteDataplaneOverviewsInMesh: {Pattern: "GET /meshes/{mesh}/dataplanes/_overview", On: onBoth, Verb: read,
		Type: dataplane, Scope: namespace, ByThing: true, Expensive: true, Overviews: true,
		Query: selected + "," + briefQuery + "," + problemsQuery + "," + watchQuery},
	RouteDataplaneOverview: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/_overview", On: onBoth, Verb: read,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Query: whose},
	RouteRollout: {Pattern: "GET /_rollout/{type}/{mesh}/{name}", On: onBoth, Verb: read, ByThing: true, Name: "name",
		Expensive: true, Query: whose},

	RouteProxyRules: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/_rules", On: onBoth, Verb: read,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose + ",grouped", Policies: true},
	RouteProxyPolicies: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/_policies", On: onBoth, Verb: read,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose, Policies: true},
	RouteProxyLayout: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/_layout", On: onBoth, Verb: read,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose, Policies: true},
	RouteProxyConfig: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/xds", On: onBoth, Verb: resources.VerbObserve,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose},
	RouteProxyStats: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/stats", On: onBoth, Verb: resources.VerbObserve,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose + ",format,match,unused"},
	RouteProxyClusters: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/clusters", On: onBoth, Verb: resources.VerbObserve,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose + ",format"},
	RouteProxyCertificates: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/certs", On: onBoth, Verb: resources.VerbObserve,
		Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose},
	RouteInboundPolicies: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/_inbounds/{kri}/_policies", On: onBoth,
		Verb: read, Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose, Policies: true},
	RouteOutboundPolicies: {Pattern: "GET /meshes/{mesh}/dataplanes/{name}/_outbounds/{kri}/_policies", On: onBoth,
		Verb: read, Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose, Policies: true},
	RouteTouchedDataplanes: {Pattern: "GET /meshes/{mesh}/{plural}/{name}/_resources/dataplanes", On: onBoth,
		Verb: read, ByThing: true, Name: "name", Expensive: true, Query: whose + ",name,size,offset", Policies: true},
	RouteServicePolicies: {Pattern: "GET /meshes/{mesh}/{plural}/{name}/_policies", On: onBoth, Verb: read,
		ByThing: true, Name: "name", Expensive: true, Query: whose, Policies: true},
	RouteExplain: {Pattern: "POST /meshes/{mesh}/_explain", On: onBoth, Verb: read, Type: dataplane,
		Scope: namespace, ByThing: true, Expensive: true},
	RouteExplainAtDataplane: {Pattern: "POST /meshes/{mesh}/dataplanes/{name}/_inbounds/{inbound}/_explain", On: onBoth,
		Verb: read, Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose},
	RouteExplainAtService: {Pattern: "POST /meshes/{mesh}/meshservices/{name}/_inbounds/{inbound}/_explain", On: onBoth,
		Verb: read, Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Expensive: true, Query: whose},
	RouteLint: {Pattern: "GET /meshes/{mesh}/_lint", On: onBoth, Verb: read, Type: string(resources.TypeMesh),
		Scope: mesh, Name: "mesh", Expensive: true},
	RouteAccess: {Pattern: "GET /meshes/{mesh}/_access", On: onBoth, Verb: read, Type: dataplane, Scope: namespace,
		ByThing: true, Expensive: true, EveryNamespace: true,
		Query: "zone,namespace,service,caller,method,path,size,offset,callers,callersOffset,reported"},
	RouteTrust: {Pattern: "GET /meshes/{mesh}/_trust", On: OnZone, Verb: read, Type: string(resources.TypeMesh),
		Scope: mesh, Name: "mesh"},
	RouteShadowReport: {Pattern: "GET /_report/shadow", On: onBoth, Verb: read, Type: resources.AccessServer,
		Scope: server, Expensive: true, Query: "zone,mesh,policy", Policies: true},
	RouteDenialReport: {Pattern: "GET /_report/denied", On: onBoth, Verb: read, Type: resources.AccessServer,
		Scope: server, Expensive: true, Query: "zone,mesh,since,size"},
	RouteSuggest: {Pattern: "GET /_suggest/permissions", On: onBoth, Verb: read, Type: resources.AccessServer,
		Scope: server, Expensive: true, Query: "zone,dataplane,mesh,namespace,since,paths", Policies: true},

	RouteSVID: {Pattern: "POST /meshes/{mesh}/dataplanes/{name}/_svid", On: OnZone,
		Verb: resources.VerbSign, Type: dataplane, Scope: namespace, ByThing: true, Name: "name", Query: inNamespace},
	RouteDataplaneToken: {Pattern: "POST /meshes/{mesh}/_dataplane-tokens", On: OnZone, Verb: resources.VerbIssue,
		Type: resources.AccessDataplaneToken, Scope: namespace, ByThing: true, Query: inNamespace},
	RouteIngressToken: {Pattern: "POST /zoneingresses/{name}/_token", On: OnZone, Verb: resources.VerbIssue,
		Type: resources.AccessDataplaneToken, Scope: server, Name: "name"},
	RouteRevokeDataplaneToken: {Pattern: "POST /_dataplane-tokens/_revoke", On: OnZone, Verb: resources.VerbRevoke,
		Type: resources.AccessDataplaneToken, Scope: server},

	RouteSecrets: {Pattern: "GET /meshes/{mesh}/_secrets", On: OnZone, Verb: read, Type: resources.AccessSecret,
		Scope: namespace, ByThing: true, Query: inNamespace},
	RoutePutSecret: {Pattern: "PUT /meshes/{mesh}/_secrets/{name}", On: OnZone, Verb: resources.VerbUpdate,
		Type: resources.AccessSecret, Scope: namespace, ByThing: true, Name: "name", Query: inNamespace},
	RouteDeleteSecret: {Pattern: "DELETE /meshes/{mesh}/_secrets/{name}", On: OnZone, Verb: resources.VerbDelete,
		Type: resources.AccessSecret, Scope: namespace, ByThing: true, Name: "name", Query: inNamespace},

	RouteZoneSync: {Pattern: "GET /zones/{name}/_sync", On: OnGlobal, Verb: read, Type: zoneType, Scope: thing,
		Name: "name", Waits: true, Query: "type," + watchQuery},
	RouteZoneAcceptDeletes: {Pattern: "POST /zones/{name}/_accept-deletes", On: onBoth,
		Verb: resources.VerbAcceptDeletes, Type: zoneType, Scope: thing, Name: "name", Query: "type,held"},
	RouteZoneResync: {Pattern: "POST /zones/{name}/_resync", On: onBoth, Verb: resources.VerbResync,
		Type: zoneType, Scope: thing, Name: "name", Query: "type"},
	RouteZoneJoin: {Pattern: "POST /zones/{name}/_join", On: OnGlobal, Verb: resources.VerbCreate,
		Type: zoneType, Scope: thing, Name: "name"},
	RouteZoneToken: {Pattern: "POST /zones/{name}/_token", On: OnGlobal, Verb: resources.VerbIssue,
		Type: resources.AccessZoneToken, Scope: thing, Name: "name"},
	RouteZoneTokenOfPeers: {Pattern: "POST /tokens/zone", On: OnGlobal, Verb: resources.VerbIssue,
		Type: resources.AccessZoneToken, Scope: thing, ByThing: true},
	RouteZoneCredentials: {Pattern: "GET /zones/{name}/_credentials", On: OnGlobal, Verb: read, Type: zoneType,
		Scope: thing, Name: "name"},
	RouteZoneRevoke: {Pattern: "POST /zones/{name}/_revoke", On: OnGlobal, Verb: resources.VerbRevoke, Type: zoneType,
		Scope: thing, Name: "name"},
	RouteAdoptions: {Pattern: "GET /_adoptions", On: OnGlobal, Verb: read, Type: zoneType, Scope: thing, ByThing: true},
	RouteZoneAdopt: {Pattern: "POST /zones/{name}/_adopt", On: OnGlobal, Verb: resources.VerbCreate, Type: zoneType,
		Scope: thing, Name: "name"},
	RouteZoneEnable: {Pattern: "POST /zones/{name}/_enable", On: OnGlobal, Verb: resources.VerbEnable, Type: zoneType,
		Scope: thing, Name: "name"},
	RouteZoneDisable: {Pattern: "POST /zones/{name}/_disable", On: OnGlobal, Verb: resources.VerbDisable,
		Type: zoneType, Scope: thing, Name: "name"},
	RouteZoneDelete: {Pattern: "POST /zones/{name}/_delete", On: OnGlobal, Verb: resources.VerbDelete, Type: zoneType,
		Scope: thing, Name: "name"},
}
