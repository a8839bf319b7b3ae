package routeapi

import (
	"encoding/json"
	"net/url"
)

// GroupsPath is where routd lists, adds, shows, changes and removes groups.
const GroupsPath = "/v1/groups"

// GroupPath is the address of one group.
func GroupPath(folder string) string { return GroupsPath + "/" + url.PathEscape(folder) }

// GroupPatch changes a part of a group, by PATCH GroupPath; the rest stays.
type GroupPatch struct {
	Name *string `json:"name,omitempty"`
	// Config is a JSON merge patch (RFC 7396): objects are merged, null removes a setting.
	Config json.RawMessage `json:"config,omitempty"`
}
