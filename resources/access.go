package resources

// Verbs of an AccessRule: the actions that the rule permits on the things that it names.
const (
	VerbRead = "read"
	// VerbReadSecret shows the secrets in a resource. Without it, the caller sees a hash. It needs VerbRead too.
	VerbReadSecret = "read-secret"
	VerbCreate     = "create"
	VerbUpdate     = "update"
	VerbDelete     = "delete"
	// VerbAssign gives a Dataplane an identity: AccessServiceAccount or AccessWorkload. Source: seed 003,
	// "TrafficTarget".
	VerbAssign = "assign"
	// VerbSign lets the caller request that the zone sign the identity of a Dataplane.
	VerbSign = "sign"
	// VerbIssue makes a token: AccessUserToken and AccessUserGroup, AccessDataplaneToken, AccessZoneToken.
	VerbIssue = "issue"
	// VerbRotate replaces and retires signing keys and authorities: AccessKey.
	VerbRotate = "rotate"
	// VerbRevoke revokes credentials.
	VerbRevoke = "revoke"
	// VerbEnable lets a zone take part again. VerbDisable stops it.
	VerbEnable  = "enable"
	VerbDisable = "disable"
	// VerbAcceptDeletes releases held deletions. VerbResync compares all resources with a zone.
	VerbAcceptDeletes = "accept-deletes"
	VerbResync        = "resync"
	// VerbUnguard lets the caller write a MeshProxyPatch with LabelUnguarded. It needs VerbCreate or VerbUpdate too.
	VerbUnguard = "unguard"
	// VerbObserve reads the admin interface of a Dataplane's proxy. It shows all that the proxy has, such as the names and
	// addresses of what it sends to, whether or not the caller may read their resources.
	VerbObserve = "observe"
	// VerbBackUp copies all data of the server, with secrets sealed: AccessServer.
	VerbBackUp = "back-up"
)

// AccessAny stands for every verb, type, mesh, namespace or name.
const AccessAny = "*"

// Things that permissions can name and that are not resources.
const (
	AccessServiceAccount = "ServiceAccount"
	AccessWorkload       = "Workload"
	AccessUserToken      = "UserToken"
	// AccessUserGroup is a group that an issued user token puts its user into.
	AccessUserGroup = "UserGroup"
	// AccessUserCertificate is a client certificate of a user. Its name is its serial number.
	AccessUserCertificate = "UserCertificate"
	AccessDataplaneToken  = "DataplaneToken"
	AccessZoneToken       = "ZoneToken"
	AccessKey             = "Key"
	AccessAuditLog        = "AuditLog"
	// AccessSecret is a secret that resources refer to by name. It can be written and listed, but not read.
	AccessSecret = "Secret"
	// AccessServer is the server as a whole, such as its data and its state.
	AccessServer = "Server"
)

// AccessVerbs returns all verbs. The caller owns the slice.
func AccessVerbs() []string {
	return []string{VerbRead, VerbReadSecret, VerbCreate, VerbUpdate, VerbDelete, VerbAssign, VerbSign, VerbIssue,
		VerbRotate, VerbRevoke,
		VerbEnable, VerbDisable, VerbAcceptDeletes, VerbResync, VerbUnguard, VerbObserve, VerbBackUp}
}

// AccessThings returns the things that permissions can name besides the types of the registry. The caller owns the
// slice.
func AccessThings() []string {
	return []string{AccessServiceAccount, AccessWorkload, AccessUserToken, AccessUserGroup, AccessUserCertificate,
		AccessDataplaneToken,
		AccessZoneToken, AccessKey, AccessAuditLog, AccessSecret, AccessServer}
}

// AccessRole is a set of permissions. Roles add up; nothing takes a permission away.
type AccessRole struct {
	Rules []AccessRule `json:"rules,omitempty"`
}

// AccessRule permits every combination of the values in its lists. If Meshes, Namespaces or Names is absent, the rule
// permits all of them.
type AccessRule struct {
	Verbs []string `json:"verbs,omitempty"`
	// Types are names of the registry or of AccessThings.
	Types  []string `json:"types,omitempty"`
	Meshes []string `json:"meshes,omitempty"`
	// Namespaces are those of the things themselves; "" means things that have none.
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
}

// AccessRoleBinding gives roles to people and programs.
type AccessRoleBinding struct {
	Subjects []AccessSubject `json:"subjects,omitempty"`
	// Roles are names of AccessRoles, or of the built-in roles admin and viewer.
	Roles []string `json:"roles,omitempty"`
}

// Kinds of AccessSubject.
const (
	SubjectUser  = "User"
	SubjectGroup = "Group"
)

// AccessSubject is a user, or all members of a group.
type AccessSubject struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// The built-in roles. They exist on every server and cannot be changed.
const (
	RoleAdmin  = "admin"
	RoleViewer = "viewer"
)
