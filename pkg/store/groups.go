package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
)

const selectGroups = `SELECT folder, name, created_at, config FROM registered_groups`

func scanGroup(scan Scan) (g msg.Group, err error) {
	var config string
	if err = scan(&g.Folder, &g.Name, &g.CreatedAt, &config); err != nil {
		return g, fmt.Errorf("scan group: %w", err)
	}
	g.Config = json.RawMessage(config)
	return g, nil
}

// Groups returns every registered group, sorted by folder.
func (r Reader) Groups(ctx context.Context) ([]msg.Group, error) {
	return All(ctx, r, scanGroup, selectGroups+` ORDER BY folder`)
}

// Group returns one group, nil if the folder is not registered.
func (r Reader) Group(ctx context.Context, folder string) (*msg.Group, error) {
	groups, err := All(ctx, r, scanGroup, selectGroups+` WHERE folder = ?`, folder)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	return &groups[0], nil
}

// PutGroup registers a group. If its folder is registered already, nothing
// changes and fresh is false.
func (tx *Tx) PutGroup(g *msg.Group) (fresh bool, err error) {
	n, err := tx.Change(`INSERT INTO registered_groups (folder, name, created_at, config) VALUES (?,?,?,?)
		ON CONFLICT (folder) DO NOTHING`, g.Folder, g.Name, g.CreatedAt, string(g.Config))
	return n > 0, err
}
