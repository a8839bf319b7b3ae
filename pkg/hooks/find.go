package hooks

import (
	"context"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Found is a hook of a group.
type Found struct {
	groupconfig.Hook
	Name, Folder, JID string
}

// Find returns the hook whose address ends with an id, nil if there is none.
func Find(ctx context.Context, r store.Reader, id string) (*Found, error) {
	h := Found{JID: msg.PlatformHook + ":" + id}
	h.Folder = msg.AddressedFolder(h.JID)
	g, err := r.Group(ctx, h.Folder)
	if err != nil || g == nil {
		return nil, err
	}
	var ok bool
	if h.Name, h.Hook, ok = groupconfig.ReadHook(g.Config, strings.TrimPrefix(id, h.Folder+".")); !ok {
		return nil, nil
	}
	return &h, nil
}
